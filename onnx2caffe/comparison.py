"""`compare`: any Caffe net, ours or another tool's, against the user's model, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnx2caffe import mapfile
from onnx2caffe.caffe.read import read_net
from onnx2caffe.canon import Shape
from onnx2caffe.errors import UnreadableFile, UsageError
from onnx2caffe.export import MAP_SUFFIX
from onnx2caffe.filekind import CAFFEMODEL, ONNX, PROTOTXT, need
from onnx2caffe.mapfile import CaffeSegment, ExportMap
from onnx2caffe.runtimes.base import Feeds
from onnx2caffe.runtimes.ort import Reference
from onnx2caffe.verify.candidates import candidates
from onnx2caffe.verify.foreign import UserGraph, map_foreign
from onnx2caffe.verify.inputs import Pictures, all_runs, names_file
from onnx2caffe.verify.proof import prove
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.scores import Proof

__all__ = ["CompareOptions", "Comparison", "compare"]

_RUNS = 3
_PROBED_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What a comparison may be told. `names`: blob -> tensor. `runs`: None is 3, or the given files alone."""

    names: Mapping[str, str] = field(default_factory=dict)
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    runs: int | None = None
    inputs: Sequence[str] = ()
    pictures: Pictures = field(default_factory=Pictures)
    caffe_python: Path | None = None
    caffe_run: bool = True
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Comparison:
    """The figures, and the tensors of the model that no blob was found for (outputs first)."""

    proof: Proof
    unmapped: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether no compared tensor differs."""
        return self.proof.ok


def compare(model: Path, prototxt: Path, caffemodel: Path, options: CompareOptions) -> Comparison:
    """Run a written net and the model on the same inputs, compare every tensor that has a blob.

    The tensors are found by the net's own map.json where one lies beside it, else by names.

    Raises:
        UsageError: names or shapes that do not fit, or nothing to compare.
        UnreadableFile: one of the files is not what it should be.
        NoReference: onnxruntime cannot run the model.
        RuntimeMissing: a runtime lacks a layer type of the net.

    """
    for path, kind in ((model, ONNX), (prototxt, PROTOTXT), (caffemodel, CAFFEMODEL)):
        need(path, kind)
        if not path.is_file():
            raise UnreadableFile(f"no such file: {path}")
    net = read_net(prototxt, caffemodel)
    files = (str(prototxt.resolve()), str(caffemodel.resolve()))
    own = None if options.names else _own_map(prototxt, files)
    shapes = {port.name: port.shape for port in own.inputs} if own else {}
    graph = UserGraph.of(model, {**shapes, **options.input_shapes}, net)
    if own is not None:
        _check_order(own, {info.name for info in graph.inputs})
    runs = _runs(graph, options)
    probe = _probe(model, graph, runs[0])
    if own is None:
        shapes = {name: value.shape for name, value in probe.items()}
        own = map_foreign(graph, net, files, shapes, _by_tensor(options.names))
    outputs = [port.name for port in own.outputs]
    half = any(probe[name].dtype == np.float16 for name in graph.heavy if name in probe)
    with candidates(options.caffe_python, options.caffe_run) as runtimes:
        user = UserModel(model, [*own.tensors], outputs, half)
        proof = prove(prototxt.parent, own, user, runs, runtimes, progress=options.progress)
    compared = {row.tensor for row in proof.rows}
    unmapped = [name for name in (*graph.outputs, *graph.makers) if name not in compared]
    return Comparison(proof, tuple(dict.fromkeys(unmapped)))


def _by_tensor(names: Mapping[str, str]) -> dict[str, str]:
    """Blob -> tensor the other way round; raise UsageError where two blobs would be one tensor."""
    chosen: dict[str, str] = {}
    for blob, tensor in names.items():
        if tensor in chosen:
            raise UsageError(f"--map {blob}={tensor}: {tensor!r} is blob {chosen[tensor]!r} already", "choose one")
        chosen[tensor] = blob
    return chosen


def _own_map(prototxt: Path, files: tuple[str, str]) -> ExportMap | None:
    """The map that our own export left beside a prototxt, made to read the files the user named; None without one."""
    export = next((export for export in _maps(prototxt) if _holds(export, prototxt.name)), None)
    if export is None:
        return None
    segments = [
        replace(s, prototxt=files[0], caffemodel=files[1])
        if isinstance(s, CaffeSegment) and s.prototxt == prototxt.name
        else s
        for s in export.segments
    ]
    return replace(export, segments=segments)


def _check_order(export: ExportMap, known: set[str]) -> None:
    """Raise UsageError where a segment reads what neither the model's inputs nor the segments before it give."""
    for segment in export.segments:
        if unknown := sorted(segment.inputs.keys() - known):
            raise UsageError(
                f"the map beside the net reads {unknown[0]!r}, which neither the model nor the map gives",
                "is it the map of another model?",
            )
        known = known | segment.outputs.keys()


def _maps(prototxt: Path) -> Iterator[ExportMap]:
    """The maps beside a prototxt; one that cannot be read matters if it has the prototxt's name."""
    for path in sorted(prototxt.parent.glob(f"*{MAP_SUFFIX}")):
        try:
            yield mapfile.read(path)
        except UnreadableFile:
            if path.name == prototxt.stem + MAP_SUFFIX:
                raise


def _holds(export: ExportMap, prototxt: str) -> bool:
    return any(isinstance(s, CaffeSegment) and s.prototxt == prototxt for s in export.segments)


def _runs(graph: UserGraph, options: CompareOptions) -> list[Feeds]:
    only_files = options.runs is None and any(names_file(text) for text in options.inputs)
    seeds = range(0 if only_files else options.runs or _RUNS)
    return list(all_runs(graph.inputs, seeds, options.inputs, options.pictures))


@dataclass(frozen=True)
class _Seen:
    shape: Shape
    dtype: np.dtype[Any]


def _probe(model: Path, graph: UserGraph, feeds: Feeds) -> dict[str, _Seen]:
    """Shape and dtype of every tensor of the model, from a run that holds only a part of the values at a time."""
    names = list(graph.makers)
    reference = Reference(model, names)
    known = [name for name in reference.tensors if name in graph.makers]
    seen: dict[str, _Seen] = {}
    for start in range(0, len(known), _PROBED_AT_ONCE):
        values = reference.run(feeds, known[start : start + _PROBED_AT_ONCE])
        seen |= {name: _Seen(value.shape, value.dtype) for name, value in values.items()}
    return seen
