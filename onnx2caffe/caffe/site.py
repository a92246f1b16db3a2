"""A layer in its place, as a rule looks at it: from a net of ours, or from any prototxt, however odd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from onnx2caffe.caffe.layers import LAYERS, Input, Layer, LayerError
from onnx2caffe.caffe.layers.base import Shape, check_blob
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.params import from_message, take_foreign_fields
from onnx2caffe.caffe.proto import Message, message
from onnx2caffe.caffe.read import ALIASES
from onnx2caffe.caffe.textscan import Entry, scan
from onnx2caffe.caffe.upgrade import from_v1, input_layers, runs_in_test
from onnx2caffe.errors import UnreadableFile
from onnx2caffe.textfile import read_text

__all__ = ["Site", "Sites", "is_blob", "of_net", "read_sites"]


@dataclass(frozen=True)
class Site:
    """One layer: its type by name, its parameters where they could be read, and shapes where they are known.

    `bottoms` and `tops` are blob names. `shapes` and `top_shapes` are empty where a shape could not be inferred, or
    where there are no bottoms or tops. `line`: in the prototxt, from 1 (0: none). `fields`: the names written in the
    layer, with those of its messages as `pooling_param.pool`. `unknown`: those that no schema of ours has. `problem`:
    why Caffe would refuse the layer. `training`: Caffe leaves the layer out in the TEST phase. `nodes`: the user's ONNX
    nodes it stands for.
    """

    type: str
    layer: Layer | None
    shapes: Sequence[Shape]
    top_shapes: Sequence[Shape]
    name: str = ""
    bottoms: Sequence[str] = ()
    tops: Sequence[str] = ()
    line: int = 0
    fields: frozenset[str] = field(default_factory=frozenset)
    unknown: Sequence[str] = ()
    problem: str = ""
    training: bool = False
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sites:
    """A net as layers in order, with the shapes that could be inferred; `unknown`: fields of no schema, with lines."""

    layers: Sequence[Site]
    shapes: dict[str, Shape]
    unknown: Sequence[tuple[str, int]] = ()

    def __iter__(self) -> Iterator[Site]:
        return (site for site in self.layers if not site.training)

    def readers(self, blob: str) -> list[Site]:
        """The layers that read a blob without writing it in place."""
        return self._readers.get(blob, [])

    @cached_property
    def _readers(self) -> dict[str, list[Site]]:
        found: dict[str, list[Site]] = {}
        for site in self:
            for blob in dict.fromkeys(site.bottoms):
                if blob not in site.tops:
                    found.setdefault(blob, []).append(site)
        return found

    @property
    def inputs(self) -> list[tuple[str, Site]]:
        """The tops of Input layers."""
        return [(top, site) for site in self if site.type == "Input" for top in site.tops]

    @property
    def outputs(self) -> dict[str, Site]:
        """The blobs nobody reads, with the layer that wrote each last; in the file's order."""
        read = {blob for site in self for blob in site.bottoms if blob not in site.tops}
        return {top: site for site in self for top in site.tops if top not in read}


def of_net(net: Net) -> Sites:
    """The sites of a net of ours."""
    return Sites(
        [
            Site(
                placed.layer.type,
                placed.layer,
                [net.shapes[b] for b in placed.bottoms],
                [net.shapes[t] for t in placed.tops],
                placed.name,
                placed.bottoms,
                placed.tops,
                nodes=tuple(placed.sources),
            )
            for placed in net
        ],
        net.shapes,
    )


def read_sites(path: Path, mark: str = "") -> Sites:
    """The layers of any prototxt, of both generations; what cannot be understood is said in the sites.

    `mark`: how further tops end that mark one of the layer's own ("" where there are no such marks).

    Raises:
        UnreadableFile: not in protobuf's text format, or no net.

    """
    text = read_text(path, "a prototxt")
    try:
        entries = scan(text)
    except UnreadableFile as problem:
        raise UnreadableFile(f"{path} is not a prototxt: {problem.message}") from problem
    if not any(entry.name in {"layer", "layers", "input"} for entry in entries):
        raise UnreadableFile(f"{path} has no layers")
    return _Reading(text, mark).run(entries)


_HEAD = frozenset({"name", "input", "input_dim", "input_shape"})
_SAME_SHAPE = frozenset({"RReLU", "Python"})
"""Types without a class of ours whose top has the bottom's shape."""


class _Reading:
    def __init__(self, text: str, mark: str) -> None:
        self._text, self._mark = text, mark
        self._shapes: dict[str, Shape] = {}
        self._sites: list[Site] = []
        self._made: set[str] = set()
        """The tops of the layers so far, without those that only train."""

    def run(self, entries: Sequence[Entry]) -> Sites:
        known = message("NetParameter").DESCRIPTOR.fields_by_name
        self._inputs([entry for entry in entries if entry.name in _HEAD])
        for entry in entries:
            if entry.name in {"layer", "layers"}:
                self._layer(entry)
        unknown = [(entry.name, entry.line) for entry in entries if entry.name not in known]
        return Sites(self._sites, self._shapes, unknown)

    def _inputs(self, head: Sequence[Entry]) -> None:
        """The inputs of old files, as the Input layer that Caffe makes of them."""
        line = next((entry.line for entry in head if entry.name == "input"), 0)
        net = message("NetParameter")()
        try:
            text_format.Parse("\n".join(self._text[e.start : e.end] for e in head), net, allow_unknown_field=True)
            for param in input_layers(net):
                self._place(param, line)
        except (UnreadableFile, text_format.ParseError) as problem:
            self._sites.append(Site("Input", None, (), (), "input", (), tuple(net.input), line, problem=str(problem)))

    def _layer(self, entry: Entry) -> None:
        start, end = entry.body
        kind = "V1LayerParameter" if entry.name == "layers" else "LayerParameter"
        body, unknown = message(kind)(), tuple(_unknown(entry, message(kind).DESCRIPTOR))
        fields = frozenset(_names(entry))
        try:
            text_format.Parse(self._text[start:end], body, allow_unknown_field=True)
            param = from_v1(body) if entry.name == "layers" else body
            training = not runs_in_test(param)
        except (UnreadableFile, text_format.ParseError) as problem:
            damaged = self._damaged(entry, str(problem))
            self._made.update(damaged.tops)
            self._sites.append(damaged)
            return
        self._place(param, entry.line, fields, unknown, training=training)

    def _damaged(self, entry: Entry, problem: str) -> Site:
        """A layer that protobuf cannot read: what its text says of name, type and blobs."""
        said: dict[str, list[str]] = {}
        for part in entry.entries:
            value = self._text[part.start : part.end].partition(":")[2].strip().strip("\"'")
            said.setdefault(part.name, []).append(value)
        (name, *_), (type, *_) = said.get("name", [""]), said.get("type", [""])
        bottoms, tops = said.get("bottom", []), said.get("top", [])
        return Site(type, None, (), (), name, bottoms, tops, entry.line, problem=problem)

    def _place(
        self,
        param: Message,
        line: int,
        fields: frozenset[str] = frozenset(),
        unknown: Sequence[str] = (),
        *,
        training: bool = False,
    ) -> None:
        type = ALIASES.get(param.type, param.type)
        marks = self._take_marks(param)
        layer, problem, foreign = _parameters(type, param)
        bottoms = [self._shapes.get(blob) for blob in param.bottom]
        shapes = [shape for shape in bottoms if shape is not None]
        whole = len(shapes) == len(bottoms)
        tops: Sequence[Shape] = ()
        if not training:
            if whole and not problem:
                tops, problem = _outline(type, layer, param, shapes)
            problem = problem or self._miswired(param)
            for blob in param.top:
                self._shapes.pop(blob, None)
            self._shapes.update((blob, top) for blob, top in zip(param.top, tops, strict=False) if is_blob(top))
            self._shapes |= {mark: self._shapes[top] for mark, top in marks.items() if top in self._shapes}
            self._made.update(param.top, marks)
        self._sites.append(
            Site(
                type,
                layer,
                shapes if whole else (),
                tops,
                param.name,
                tuple(param.bottom),
                (*param.top, *marks),
                line,
                fields,
                (*unknown, *foreign),
                problem,
                training,
            )
        )

    def _miswired(self, param: Message) -> str:
        """Why Caffe would refuse a layer's blobs, or ""."""
        if unknown := [blob for blob in param.bottom if blob not in self._made]:
            return f"unknown bottom blob {unknown[0]!r}"
        fresh = [top for top in param.top if top not in param.bottom]
        if again := [top for top in fresh if top in self._made or fresh.count(top) > 1]:
            return f"top blob {again[0]!r} is produced by several layers"
        return ""

    def _take_marks(self, param: Message) -> dict[str, str]:
        """Takes the tops that are marks out of a layer; each with the top it marks."""
        first, *others = param.top or [""]
        marks = [top for top in others if self._mark and top.endswith(self._mark)]
        for top in marks:
            param.top.remove(top)
        plain = ((top, top.removesuffix(self._mark)) for top in marks)
        return {top: name if name in param.top else first for top, name in plain}


def _parameters(type: str, param: Message) -> tuple[Layer | None, str, list[str]]:
    """A layer of ours, or None; why Caffe would refuse its parameters; fields we have no meaning for."""
    if type not in LAYERS:
        return None, "", []
    foreign = take_foreign_fields(LAYERS[type], param)
    try:
        layer = from_message(LAYERS[type], param, len(param.top))
    except ValueError as problem:
        return None, str(problem), foreign
    if isinstance(layer, Input) and len(layer.shape) == 1:
        layer = Input(shape=layer.shape * len(param.top))
    return layer, "", foreign


def _outline(type: str, layer: Layer | None, param: Message, shapes: Sequence[Shape]) -> tuple[Sequence[Shape], str]:
    """Top shapes as far as they are known, and why Caffe would refuse the layer."""
    if layer is None:
        return _shapes_of_unknown(type, param, shapes), ""
    try:
        tops = layer.outline(shapes)
    except LayerError as problem:
        return shapes[:1] if type == "Eltwise" else (), str(problem)
    if len(tops) != len(param.top):
        return tops, f"has {len(param.top)} tops, makes {len(tops)}"
    return tops, ""


def is_blob(shape: Shape) -> bool:
    """Whether a blob may have this shape: what a file says of a layer that the user computes need not be one."""
    try:
        check_blob(shape)
    except LayerError:
        return False
    return True


def _shapes_of_unknown(type: str, param: Message, shapes: Sequence[Shape]) -> Sequence[Shape]:
    if type == "Custom":
        return [tuple(shape.dim) for shape in param.custom_param.shape]
    if type == "CReLU" and len(shapes[0]) > 1:
        n, c, *rest = shapes[0]
        return [(n, 2 * c, *rest)]
    return shapes[:1] if type in _SAME_SHAPE else ()


def _names(entry: Entry) -> Iterator[str]:
    for part in entry.entries:
        yield part.name
        yield from (f"{part.name}.{inner.name}" for inner in part.entries)


def _unknown(entry: Entry, descriptor: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of the fields that a message type does not have."""
    for part in entry.entries:
        known = descriptor.fields_by_name.get(part.name)
        if known is None:
            yield prefix + part.name
        elif known.message_type is not None:
            yield from _unknown(part, known.message_type, f"{prefix}{part.name}.")
