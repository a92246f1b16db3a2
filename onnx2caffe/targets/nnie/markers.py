"""Marks for the mapper in the names of a net: `_cpu`, `_hp` behind layers, `_report` behind a further top.

A marked net no longer runs in Caffe, so it stands beside the plain one, which is the one that is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx2caffe.caffe.layers import Input
from onnx2caffe.caffe.names import unlike
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.rename import renamed
from onnx2caffe.caffe.site import of_net
from onnx2caffe.errors import UsageError, near
from onnx2caffe.targets.nnie.examine import examine
from onnx2caffe.targets.nnie.finish import NAME_LENGTH, plain
from onnx2caffe.targets.nnie.rules import Rule
from onnx2caffe.targets.nnie.segments import CPU, HP, REPORT, segments

__all__ = ["Choice", "Marks", "chosen", "marked", "with_marked_names"]

_PLACES, _COUNTS = "E08", "E09"
"""The rules about where marks may stand, and about how many segments and outputs they may make."""
_FEWER = "fewer marks: a --report is one more output of its segment, a --cpu ends the segment"


@dataclass(frozen=True)
class Marks:
    """What the user wants marked, by tensor, node or layer: run by himself, put out, computed in 16 bits."""

    cpu: Sequence[str] = ()
    report: Sequence[str] = ()
    hp: Sequence[str] = ()

    def __bool__(self) -> bool:
        return any((self.cpu, self.report, self.hp))


@dataclass(frozen=True)
class Choice:
    """What gets marks in one net.

    `layers`: layer -> its mark; `reports`: a layer and a top of it -> a name for the further top, without its mark.
    """

    layers: Mapping[str, str] = field(default_factory=dict)
    reports: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def renamed(self, blobs: Mapping[str, str], layers: Mapping[str, str]) -> Choice:
        """The same under other names, without the layers that have none."""
        return Choice(
            {layers[layer]: mark for layer, mark in self.layers.items() if layer in layers},
            {(layers[layer], blobs[top]): wish for (layer, top), wish in self.reports.items() if layer in layers},
        )

    def __or__(self, other: Choice) -> Choice:
        return Choice({**self.layers, **other.layers}, {**self.reports, **other.reports})


def chosen(nets: Sequence[Net], marks: Marks, tensors: Sequence[Mapping[str, tuple[str, str]]]) -> list[Choice]:
    """What the user's names stand for in each net.

    `tensors`: per net, a tensor's name -> its layer and its blob.

    Raises:
        UsageError: a name is nobody's, or a layer would run on the CPU and in 16 bits.

    """
    places = [_Places(net, known) for net, known in zip(nets, tensors, strict=True)]
    for option, names in (("--cpu", marks.cpu), ("--report", marks.report), ("--hp", marks.hp)):
        for name in names:
            _check_known(option, name, places)
    return [_chosen(place, marks) for place in places]


def marked(net: Net, choice: Choice, rules: Mapping[str, Rule]) -> Net:
    """The net with its marks; the same one where there are none.

    Plain names never end like marks, so no name comes twice.

    Raises:
        UsageError: by the rules, a mark may not stand there, or there are too many.

    """
    if choice == Choice():
        return net
    shapes, taken = dict(net.shapes), set[str]()
    layers = []
    for placed in net:
        extra = []
        for top in (top for top in placed.tops if (placed.name, top) in choice.reports):
            short = unlike(plain(choice.reports[placed.name, top]), taken, NAME_LENGTH - len(REPORT))
            taken.add(short)
            shapes[short + REPORT] = shapes[top]
            extra.append(short + REPORT)
        name = placed.name + choice.layers.get(placed.name, "")
        layers.append(replace(placed, name=name, tops=(*placed.tops, *extra)))
    result = _with_short_ports(replace(net, layers=layers, shapes=shapes))
    _check(result, rules)
    return result


def _with_short_ports(net: Net) -> Net:
    """Blobs that a mark brings to a border have names that the `.wk` keeps whole, like all that stand at one."""
    ports = dict.fromkeys(blob for part in segments(of_net(net)) for blob in (*part.inputs, *part.outputs))
    taken = set(net.shapes)
    blobs: dict[str, str] = {}
    for blob in (blob for blob in ports if len(blob) > NAME_LENGTH):
        blobs[blob] = unlike(blob, taken, NAME_LENGTH)
        taken.add(blobs[blob])
    return renamed(net, blobs)


def _check(net: Net, rules: Mapping[str, Rule]) -> None:
    asked = {id: rules[id] for id in (_PLACES, _COUNTS) if rules[id].forbidden}
    found = examine(of_net(net), asked)
    if found:
        texts = [f"layer {one.layer!r}: {one.text}" if one.layer else one.text for one in found]
        hint = _FEWER if found[0].rule == _COUNTS else found[0].remedy
        raise UsageError(f"the mapper refuses marks here ({found[0].rule}): {'; '.join(texts)}", hint)


def with_marked_names(net: Net, marked_net: Net) -> Net:
    """The net for the caffemodel: layers whose name got a mark stand in it under both names."""
    again = [two for one, two in zip(net, marked_net, strict=True) if one.name != two.name]
    return replace(net, layers=[*net.layers, *again])


class _Places:
    """What a name of the user's may stand for in a net: never what the net is given."""

    def __init__(self, net: Net, tensors: Mapping[str, tuple[str, str]]) -> None:
        self._layers = [placed for placed in net if not isinstance(placed.layer, Input)]
        names = {placed.name for placed in self._layers}
        self._tensors = {tensor: place for tensor, place in tensors.items() if place[0] in names}

    def names(self) -> Iterator[str]:
        yield from self._tensors
        for placed in self._layers:
            yield from (placed.name, *placed.sources)

    def is_tensor(self, name: str) -> bool:
        """Whether the net holds a tensor of this name."""
        return name in self._tensors

    def layers(self, name: str) -> set[str]:
        """The layers that make a tensor, stand for a node, or have the name."""
        if name in self._tensors:
            return {self._tensors[name][0]}
        return {placed.name for placed in self._layers if name == placed.name or name in placed.sources}

    def tops(self, name: str) -> set[tuple[str, str]]:
        """Layer and blob of a tensor, or of the last layer that a node or layer name stands for."""
        if name in self._tensors:
            return {self._tensors[name]}
        found = [placed for placed in self._layers if name == placed.name or name in placed.sources]
        return {(placed.name, top) for placed in found[-1:] for top in placed.tops}


def _check_known(option: str, name: str, places: Iterable[_Places]) -> None:
    known = dict.fromkeys(name for place in places for name in place.names())
    if name not in known:
        raise UsageError(
            f"{option} {name}: no tensor, node or layer that a net computes has that name", near(name, known)
        )


def _chosen(places: _Places, marks: Marks) -> Choice:
    cpu, hp = ({layer for name in names for layer in places.layers(name)} for names in (marks.cpu, marks.hp))
    if both := sorted(cpu & hp):
        raise UsageError(f"layer {both[0]!r} is marked _cpu and _hp", "choose one of --cpu and --hp")
    return Choice({**dict.fromkeys(cpu, CPU), **dict.fromkeys(hp, HP)}, _reported(places, marks.report))


def _reported(places: _Places, names: Sequence[str]) -> dict[tuple[str, str], str]:
    """What the further top for each (layer, top) that shall be put out is called after: the tensor, or the blob.

    In place, a blob holds several tensors, one after the other.
    """
    found: dict[tuple[str, str], str] = {}
    for name in names:
        for layer, top in sorted(places.tops(name)):
            found.setdefault((layer, top), name if places.is_tensor(name) else top)
    return found
