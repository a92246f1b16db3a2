"""map.json, format 1: which files an export holds, and in which blob each of the user's tensors stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.net import Blob, Net
from onnx2caffe.canon import Note, Shape
from onnx2caffe.errors import UnreadableFile
from onnx2caffe.textfile import read_text

__all__ = [
    "FORMAT",
    "CaffeSegment",
    "ExportMap",
    "OnnxSegment",
    "Place",
    "Port",
    "Promise",
    "Segment",
    "TvmSegment",
    "promises",
    "read",
    "write",
]

FORMAT = 1


@dataclass(frozen=True)
class Port:
    """An input or output of the user's model: name, shape, and dtype as numpy calls it."""

    name: str
    shape: Shape
    dtype: str


@dataclass(frozen=True)
class Place:
    """Where a tensor crosses a segment's border: the blob, and the tensor's ONNX shape.

    `stored`: the shape of a Caffe blob, where that is another one for the same values in the same order. `mean`: what
    the head subtracted, per channel, to make this input of a net: the mapper can do that instead.
    """

    blob: str
    shape: Shape
    stored: Shape | None = None
    mean: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Promise:
    """A tensor that an export holds: its blob, the layer after which that is read ("" = the whole net), ONNX shape."""

    segment: int
    blob: str
    shape: Shape
    layer: str = ""


@dataclass(frozen=True)
class CaffeSegment:
    """A written Caffe net; inputs and outputs by the user's tensor names."""

    prototxt: str
    caffemodel: str
    inputs: Mapping[str, Place]
    outputs: Mapping[str, Place]


@dataclass(frozen=True)
class OnnxSegment:
    """A part that stays ONNX; tensor names to the names in its file.

    `c`: where it is C too: "header", "function", and its "arguments" in order, each with the name in the file.
    """

    file: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    c: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TvmSegment:
    """A TVM module: `files` by what they are (text, json, params, library).

    `inputs`: tensor -> its name in the module; `outputs`: tensor -> its number among the module's results. `c`: how to
    call it where it is C, as for an ONNX part.
    """

    dialect: str
    files: Mapping[str, str]
    inputs: Mapping[str, Place]
    outputs: Mapping[str, Place]
    build: Mapping[str, Any]
    c: Mapping[str, Any] = field(default_factory=dict)


Segment = CaffeSegment | OnnxSegment | TvmSegment


@dataclass(frozen=True)
class ExportMap:
    """The whole of map.json. `files`: name -> sha256; `layers`: Caffe layer -> the user's nodes.

    `ranges`: least and greatest number to which the user's file quantises a tensor, where `--strip-qdq` took that out.
    `single_wk`: "prototxt" and "caffemodel" of all nets as one, for a single `.wk`.
    """

    tool: str
    target: str
    source_file: str
    source_sha256: str
    files: Mapping[str, str]
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    segments: Sequence[Segment]
    tensors: Mapping[str, Promise]
    layers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    single_wk: Mapping[str, str] = field(default_factory=dict)


def promises(blobs: Mapping[ir.Value, Blob], net: Net, segment: int = 0) -> dict[str, Promise]:
    """What a finished net can be held to: every user tensor whose values stand in one of its blobs."""
    return {
        tensor.name: Promise(segment, name, tensor.shape, net.moments.get(blob.name, ""))
        for value, blob in blobs.items()
        if value.const_value is None and (name := net.twins.get(blob.name, blob.name)) in net.shapes
        for tensor in canon.tensors(value)
    }


def write(export: ExportMap, path: Path) -> None:
    """Write map.json: same export, same bytes."""
    path.write_text(json.dumps(_to_json(export), indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


def read(path: Path) -> ExportMap:
    """Read map.json.

    Raises:
        UnreadableFile: not a map of this format.

    """
    try:
        document = json.loads(read_text(path, "a map.json"))
        if document["format"] != FORMAT:
            raise UnreadableFile(f"{path}: map format {document['format']!r}, this version reads format {FORMAT}")
        return _from_json(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise UnreadableFile(f"{path} is no readable map.json: {type(problem).__name__}: {problem}") from problem


def _ports(ports: Sequence[Port]) -> list[dict[str, Any]]:
    return [{"name": p.name, "shape": list(p.shape), "dtype": p.dtype} for p in ports]


def _places(places: Mapping[str, Place]) -> dict[str, Any]:
    return {name: _place(place) for name, place in places.items()}


def _place(place: Place) -> dict[str, Any]:
    stored = {"stored": list(place.stored)} if place.stored is not None else {}
    mean = {"mean": list(place.mean)} if place.mean is not None else {}
    return {"blob": place.blob, "shape": list(place.shape), **stored, **mean}


def _called(c: Mapping[str, Any]) -> dict[str, Any]:
    return {"c": dict(c)} if c else {}


def _segment(segment: Segment) -> dict[str, Any]:
    if isinstance(segment, OnnxSegment):
        return {
            "kind": "onnx",
            "file": segment.file,
            "inputs": dict(segment.inputs),
            "outputs": dict(segment.outputs),
            **_called(segment.c),
        }
    if isinstance(segment, TvmSegment):
        return {
            "kind": "tvm",
            "dialect": segment.dialect,
            "files": dict(segment.files),
            "build": dict(segment.build),
            "inputs": _places(segment.inputs),
            "outputs": _places(segment.outputs),
            **_called(segment.c),
        }
    return {
        "kind": "caffe",
        "prototxt": segment.prototxt,
        "caffemodel": segment.caffemodel,
        "inputs": _places(segment.inputs),
        "outputs": _places(segment.outputs),
    }


def _promise(promise: Promise) -> dict[str, Any]:
    layer = {"layer": promise.layer} if promise.layer else {}
    return {"segment": promise.segment, "blob": promise.blob, **layer, "shape": list(promise.shape)}


def _to_json(export: ExportMap) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "tool": export.tool,
        "target": export.target,
        "source": {"file": export.source_file, "sha256": export.source_sha256},
        "files": dict(export.files),
        "inputs": _ports(export.inputs),
        "outputs": _ports(export.outputs),
        "segments": [_segment(s) for s in export.segments],
        "tensors": {name: _promise(p) for name, p in export.tensors.items()},
        "layers": {name: list(nodes) for name, nodes in export.layers.items()},
        "notes": [{"level": n.level, "text": n.text, "nodes": list(n.nodes)} for n in export.notes],
        **({"ranges": {name: list(ends) for name, ends in export.ranges.items()}} if export.ranges else {}),
        **({"single_wk": dict(export.single_wk)} if export.single_wk else {}),
    }


def _shape(dims: Sequence[Any]) -> Shape:
    return tuple(int(d) for d in dims)


def _read_ports(ports: Sequence[Any]) -> list[Port]:
    return [Port(p["name"], _shape(p["shape"]), p["dtype"]) for p in ports]


def _read_segments(segments: Sequence[Any]) -> Iterator[Segment]:
    for s in segments:
        if s["kind"] == "onnx":
            yield OnnxSegment(_plain(s["file"]), dict(s["inputs"]), dict(s["outputs"]), dict(s.get("c", {})))
        elif s["kind"] in ("caffe", "tvm"):
            inputs, outputs = ({name: _read_place(p) for name, p in s[key].items()} for key in ("inputs", "outputs"))
            if s["kind"] == "tvm":
                files = {what: _plain(name) for what, name in s["files"].items()}
                yield TvmSegment(s["dialect"], files, inputs, outputs, dict(s["build"]), dict(s.get("c", {})))
                continue
            yield CaffeSegment(_plain(s["prototxt"]), _plain(s["caffemodel"]), inputs, outputs)
        else:
            raise ValueError(f"segment kind {s['kind']!r}")


def _read_place(place: Mapping[str, Any]) -> Place:
    stored = _shape(place["stored"]) if "stored" in place else None
    mean = tuple(float(number) for number in place["mean"]) if "mean" in place else None
    return Place(place["blob"], _shape(place["shape"]), stored, mean)


def _plain(name: str) -> str:
    """A file name of the export's own folder; anything that leads elsewhere is refused."""
    if Path(name).name != name or "\\" in name:
        raise ValueError(f"segment file {name!r} is not in the map's folder")
    return name


def _from_json(document: Mapping[str, Any]) -> ExportMap:
    return ExportMap(
        tool=document["tool"],
        target=document["target"],
        source_file=document["source"]["file"],
        source_sha256=document["source"]["sha256"],
        files=dict(document["files"]),
        inputs=_read_ports(document["inputs"]),
        outputs=_read_ports(document["outputs"]),
        segments=list(_read_segments(document["segments"])),
        tensors={
            name: Promise(p["segment"], p["blob"], _shape(p["shape"]), p.get("layer", ""))
            for name, p in document["tensors"].items()
        },
        layers={name: list(nodes) for name, nodes in document["layers"].items()},
        notes=[Note(n["level"], n["text"], tuple(n["nodes"])) for n in document["notes"]],
        ranges={name: (float(low), float(high)) for name, (low, high) in document.get("ranges", {}).items()},
        single_wk=dict(document.get("single_wk", {})),
    )
