"""Marks for the mapper in the names of a net: `_cpu`, `_hp` behind layers, `_report` behind a further top.

A marked net no longer runs in Caffe, so it stands beside the plain one, which is the one that is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx2caffe.caffe.names import unlike
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.site import of_net
from onnx2caffe.errors import UsageError, near
from onnx2caffe.targets.nnie.examine import examine
from onnx2caffe.targets.nnie.finish import NAME_LENGTH, plain
from onnx2caffe.targets.nnie.rules import load_rules
from onnx2caffe.targets.nnie.segments import CPU, HP, REPORT

__all__ = ["Marks", "marked", "with_marked_names"]

_MARKS = "E08"
"""The rule about where marks may stand."""


@dataclass(frozen=True)
class Marks:
    """What the user wants marked, by tensor, node or layer: run by himself, put out, computed in 16 bits."""

    cpu: Sequence[str] = ()
    report: Sequence[str] = ()
    hp: Sequence[str] = ()

    def __bool__(self) -> bool:
        return any((self.cpu, self.report, self.hp))


def marked(nets: Sequence[Net], marks: Marks, tensors: Sequence[Mapping[str, tuple[str, str]]]) -> list[Net]:
    """The nets with their marks; one without any is the same net.

    `tensors`: per net, a tensor's name -> its layer and its blob.

    Raises:
        UsageError: a name is nobody's, a layer would run on the CPU and in 16 bits, or a mark may not stand there.

    """
    places = [_Places(net, known) for net, known in zip(nets, tensors, strict=True)]
    for option, names in (("--cpu", marks.cpu), ("--report", marks.report), ("--hp", marks.hp)):
        for name in names:
            _check_known(option, name, places)
    return [_checked(_marked(place, marks)) for place in places]


def _checked(net: Net) -> Net:
    rule = load_rules()[_MARKS]
    found = [f"layer {finding.layer!r}: {finding.text}" for finding in examine(of_net(net), {_MARKS: rule})]
    if found:
        raise UsageError(f"the mapper refuses marks here ({_MARKS}): {'; '.join(found)}", rule.remedy)
    return net


def with_marked_names(net: Net, marked_net: Net) -> Net:
    """The net for the caffemodel: layers whose name got a mark stand in it under both names."""
    again = [two for one, two in zip(net, marked_net, strict=True) if one.name != two.name]
    return replace(net, layers=[*net.layers, *again])


class _Places:
    """What a name of the user's may stand for in a net."""

    def __init__(self, net: Net, tensors: Mapping[str, tuple[str, str]]) -> None:
        self.net = net
        self._tensors = tensors

    def names(self) -> Iterator[str]:
        yield from self._tensors
        for placed in self.net:
            yield from (placed.name, *placed.sources)

    def is_tensor(self, name: str) -> bool:
        """Whether the net holds a tensor of this name."""
        return name in self._tensors

    def layers(self, name: str) -> set[str]:
        """The layers that make a tensor, stand for a node, or have the name."""
        if name in self._tensors:
            return {self._tensors[name][0]}
        return {placed.name for placed in self.net if name == placed.name or name in placed.sources}

    def tops(self, name: str) -> set[tuple[str, str]]:
        """Layer and blob of a tensor, or of the last layer that a node or layer name stands for."""
        if name in self._tensors:
            return {self._tensors[name]}
        found = [placed for placed in self.net if name == placed.name or name in placed.sources]
        return {(placed.name, top) for placed in found[-1:] for top in placed.tops}


def _check_known(option: str, name: str, places: Iterable[_Places]) -> None:
    known = dict.fromkeys(name for place in places for name in place.names())
    if name not in known:
        raise UsageError(f"{option} {name}: no tensor, node or layer of a net has that name", near(name, known))


def _marked(places: _Places, marks: Marks) -> Net:
    cpu, hp = ({layer for name in names for layer in places.layers(name)} for names in (marks.cpu, marks.hp))
    if both := sorted(cpu & hp):
        raise UsageError(f"layer {both[0]!r} is marked _cpu and _hp", "choose one of --cpu and --hp")
    reported = _reported(places, marks.report)
    if not cpu | hp and not reported:
        return places.net
    shapes = dict(places.net.shapes)
    layers = []
    for placed in places.net:
        suffix = CPU if placed.name in cpu else HP if placed.name in hp else ""
        extra = {reported[placed.name, top]: shapes[top] for top in placed.tops if (placed.name, top) in reported}
        shapes |= extra
        layers.append(replace(placed, name=placed.name + suffix, tops=(*placed.tops, *extra)))
    return replace(places.net, layers=layers, shapes=shapes)


def _reported(places: _Places, names: Sequence[str]) -> dict[tuple[str, str], str]:
    """The further top for each (layer, top) that shall be put out: the tensor's name, or the blob's, fit for a `.wk`.

    In place, a blob holds several tensors, one after the other.
    """
    taken = {blob.removesuffix(REPORT) for blob in places.net.shapes if blob.endswith(REPORT)}
    found: dict[tuple[str, str], str] = {}
    for name in names:
        for layer, top in sorted(places.tops(name)):
            if (layer, top) not in found:
                wanted = plain(name if places.is_tensor(name) else top)
                short = unlike(wanted, taken, NAME_LENGTH - len(REPORT))
                taken.add(short)
                found[layer, top] = short + REPORT
    return found
