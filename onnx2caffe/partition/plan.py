"""A model as pieces in order of execution: finished Caffe nets, and parts that stay ONNX between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.lower.lower import Lowered, Names, lower_part, obstacles
from onnx2caffe.caffe.names import Namer
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.rename import renamed
from onnx2caffe.caffe.rules import unfit
from onnx2caffe.errors import Blocked, NotConvertible, UsageError, near
from onnx2caffe.partition.cut import Part, cut
from onnx2caffe.partition.head import belongs_in_front
from onnx2caffe.partition.tail import behind_weights, decoding, joining, ruined
from onnx2caffe.partition.weights import macs
from onnx2caffe.partition.wiring import Wiring
from onnx2caffe.passes.editor import Editor
from onnx2caffe.targets.base import Target

__all__ = ["CHOSEN", "HEAD", "Piece", "Plan", "Wishes", "partitioned", "whole"]

HEAD, DECODE, COARSE, ASKED = "head", "decode", "8 bits ruin it", "asked for"
JOINED = "unlike maps joined"
BETWEEN, LATE = "between nets", "behind the last net"
CHOSEN = frozenset({HEAD, DECODE, JOINED, COARSE, ASKED, BETWEEN, LATE})
"""Why legal nodes stay ONNX all the same."""
_ROUNDS = frozenset({"QuantizeLinear"})
_TORN = "--strip-qdq keeps real numbers; rounding on the CPU between all layers would leave no net worth its name"
_UNKNOWN_SHAPE, _NO_INPUT, _NO_IDENTITY = 1 << 70, 1 << 60, 1 << 50
"""What crossing a border costs beyond bytes: a tensor that cannot, that no net can take in, that is not the user's."""


@dataclass(frozen=True)
class Wishes:
    """What the user says about the partition.

    `tail`: see `tail.py`. `cuts`: tensors, nodes or layers behind which nothing is Caffe. `recipes`: key -> variant.
    `names`: the user's tensor -> the blob name it shall have. `head`: what is subtracted from an input stays ONNX.
    """

    tail: str = "full"
    cuts: Sequence[str] = ()
    recipes: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    head: bool = False


@dataclass(frozen=True)
class Piece:
    """A part; for a Caffe part what it was lowered to, and the net to write."""

    part: Part
    lowered: Lowered | None = None
    net: Net | None = None


@dataclass(frozen=True)
class Plan:
    """The pieces; why each node of the others is on no net; all multiply-accumulates, and those on nets.

    `risks`: nodes on a net that `Wishes` would rather have elsewhere, and why.
    """

    pieces: tuple[Piece, ...]
    reasons: Mapping[ir.Node, str] = field(default_factory=dict)
    macs: int = 0
    net_macs: int = 0
    risks: Mapping[ir.Node, str] = field(default_factory=dict)

    @property
    def nets(self) -> list[Net]:
        """The Caffe nets, in order."""
        return [piece.net for piece in self.pieces if piece.net is not None]

    @property
    def share(self) -> float:
        """Which share of the multiply-accumulates runs on nets (1 where there are none)."""
        return self.net_macs / self.macs if self.macs else 1.0


def whole(model: ir.Model, target: Target, wishes: Wishes) -> Plan:
    """A plan of one net.

    Raises:
        NotConvertible: names every node that has no lowering.

    """
    graph = model.graph
    part = Part(1, tuple(graph), tuple(graph.inputs), tuple(graph.outputs))
    piece = _lowered(part, graph.name or "net", target, wishes, Names())
    _check_names([piece], wishes.names)
    wiring = Wiring(graph)
    counts = {node: macs(node) for node in wiring.nodes}
    better = _coarse(wiring, _tail(wiring, counts)) if wishes.tail == "auto" else {}
    better |= {node: HEAD for node in wiring.nodes if wishes.head and belongs_in_front(node)}
    total = sum(counts.values())
    return Plan((piece,), {}, total, total, {node: better[node] for node in wiring.nodes if node in better})


def partitioned(model: ir.Model, target: Target, wishes: Wishes) -> Plan:
    """A plan that leaves to ONNX what the target cannot have, and what the user wants there.

    Raises:
        NotConvertible: no layer with weights is legal (names every node that has no lowering), or values are rounded
            to integers between layers with weights, or a tensor has no room anywhere (names every such node).
        UsageError: a cut names nothing.

    """
    return _Partition(model, target, wishes).plan()


def _give_makers(graph: ir.Graph) -> None:
    """Let a node of its own make each output that is a constant or an input: no net hands those on."""
    edit = Editor(graph)
    copies = {value: edit.copied(value) for value in dict.fromkeys(graph.outputs) if value.producer() is None}
    for copy in copies.values():
        maker = copy.producer()
        assert maker is not None
        maker.meta["opaque"] = "no layer makes it: this output is an input or a constant"
    graph.outputs[:] = [copies.get(value, value) for value in graph.outputs]


def _tail(wiring: Wiring, counts: Mapping[ir.Node, int]) -> set[ir.Node]:
    """The nodes without weights behind them; none where there are no weights at all."""
    return behind_weights(wiring, counts) if any(counts.values()) else set()


def _coarse(wiring: Wiring, tail: AbstractSet[ir.Node]) -> dict[ir.Node, str]:
    """The nodes of a tail that eight bits do no good, and why."""
    ways = ((COARSE, ruined), (JOINED, joining), (DECODE, decoding))
    return {node: reason for reason, found in ways for node in found(wiring, tail)}


def _is_huge(value: ir.Value) -> bool:
    """Whether no CPU of a camera would have the memory either."""
    try:
        return math.prod(canon.shape(value)) > canon.MOST_ELEMENTS
    except ValueError:
        return False


def _between(parts: Sequence[Part]) -> Iterator[ir.Node]:
    """The nodes that run after one Caffe part and before another."""
    nets = [number for number, part in enumerate(parts) if part.caffe]
    return (node for part in parts[nets[0] : nets[-1]] if not part.caffe for node in part.nodes)


class _Partition:
    def __init__(self, model: ir.Model, target: Target, wishes: Wishes) -> None:
        self._model, self._target, self._wishes = model, target, wishes
        _give_makers(model.graph)
        self._wiring = Wiring(model.graph)
        self._by_size = True
        self._later: dict[ir.Node, int] = {}
        self._blocked = obstacles(model, target, wishes.recipes)
        if huge := [blocked for node, blocked in self._blocked.items() if any(map(_is_huge, node.outputs))]:
            raise NotConvertible(huge, "tensors of that size have no room anywhere: give smaller --input-shape")
        self._reasons = {node: blocked.why for node, blocked in self._blocked.items()}
        self._macs = {node: macs(node) for node in self._wiring.nodes}
        self._weights = self._macs if any(self._macs.values()) else dict.fromkeys(self._wiring.nodes, 1)
        self._bar_head()
        self._kept = self._bar_tail()

    def plan(self) -> Plan:
        while True:
            parts = self._cut()
            if not any(part.caffe for part in parts):
                raise NotConvertible(self._refusals(), "no layer with weights can be converted")
            if any(node.op_type in _ROUNDS for node in _between(parts)):
                rounding = [blocked for node, blocked in self._blocked.items() if node.op_type in _ROUNDS]
                raise NotConvertible(rounding, _TORN)
            if crowded := [part for part in parts if self._is_crowded(part)]:
                self._relieve(crowded[0])
                continue
            pieces, faults = self._pieces(parts)
            if not faults:
                return self._finished(pieces)
            self._reasons |= faults

    def _cut(self) -> list[Part]:
        return cut(
            self._wiring,
            set(self._reasons),
            self._weights,
            kept=self._kept,
            price=self._price,
            most=self._target.max_segments,
            later=self._later,
        )

    def _is_crowded(self, part: Part) -> bool:
        return part.caffe and bool(self._surplus(part))

    def _surplus(self, part: Part) -> str:
        """Why a part has too many inputs or outputs for a segment; "" where it has not."""
        for what, ports, most in (
            ("outputs", part.outputs, self._target.max_outputs),
            ("inputs", part.inputs, self._target.max_inputs),
        ):
            if len(ports) > most:
                return f"a segment has no more than {most} {what if most != 1 else what.removesuffix('s')}"
        return ""

    def _relieve(self, part: Part) -> None:
        """Ask less of the next cut, since a part has too many inputs or outputs.

        First that nothing stay on a net for its own sake, then that few values cross instead of few bytes, then that
        the work of single ports be done by a later net; then nodes without work stay ONNX, in the end the part.
        """
        if self._kept:
            self._kept = set()
        elif self._by_size:
            self._by_size = False
        elif own := self._work_of_ports(part):
            self._later |= dict.fromkeys(own, part.level + 2)
        else:
            self._bar(self._busiest(part) or part.nodes, self._surplus(part))

    def _crowd(self, part: Part) -> tuple[Sequence[ir.Value], int, dict[ir.Value, set[ir.Node]]]:
        """The ports of which a part has too many, how many of them there may be, and the nodes that hang on each."""
        inside = set(part.nodes)
        if len(part.outputs) > self._target.max_outputs:
            leading = {v: self._wiring.ancestors([self._wiring.makers[v]]) & inside for v in part.outputs}
            return part.outputs, self._target.max_outputs, leading
        readers = {v: inside.intersection(self._wiring.readers[v]) for v in part.inputs}
        return part.inputs, self._target.max_inputs, {v: self._wiring.closure(readers[v]) & inside for v in part.inputs}

    def _work_of_ports(self, part: Part) -> set[ir.Node]:
        """The nodes with weights that hang on one port alone, of those ports too many with the least work.

        None where that would be all such ports: what is left is then crowded by others.
        """
        ports, most, hanging = self._crowd(part)
        sharing = Counter(node for nodes in hanging.values() for node in nodes)
        alone = [{n for n in nodes if sharing[n] == 1 and self._weights[n]} for nodes in hanging.values()]
        able = sorted(filter(None, alone), key=lambda nodes: sum(self._weights[node] for node in nodes))
        surplus = len(ports) - most
        return set[ir.Node]().union(*able[:surplus]) if surplus < len(able) else set()

    def _busiest(self, part: Part) -> set[ir.Node]:
        """The node without weights that has most of the ports too many."""
        ports, _, hanging = self._crowd(part)
        at_ports = (
            [self._wiring.makers[value] for value in ports]
            if ports is part.outputs
            else [node for value in ports for node in self._wiring.readers[value] if node in hanging[value]]
        )
        idle = Counter(node for node in at_ports if not self._weights[node])
        return {max(idle, key=lambda node: idle[node])} if idle else set()

    def _finished(self, pieces: Sequence[Piece]) -> Plan:
        pieces = _apart(pieces)
        _check_names(pieces, self._wishes.names)
        nets = [number for number, piece in enumerate(pieces) if piece.net is not None]
        nodes = {
            node: HEAD if number < nets[0] else LATE if number > nets[-1] else BETWEEN
            for number, piece in enumerate(pieces)
            if piece.net is None
            for node in piece.part.nodes
        }
        reasons = {node: self._reasons.get(node, place) for node, place in nodes.items()}
        total = sum(self._macs.values())
        return Plan(tuple(pieces), reasons, total, total - sum(self._macs[node] for node in nodes))

    def _bar_head(self) -> None:
        """What an input needs first is better done in front: by the camera or on the CPU."""
        if self._wishes.head:
            before = self._wiring.ancestors(node for node, count in self._macs.items() if count)
            self._bar((node for node in before if belongs_in_front(node)), HEAD)

    def _bar_tail(self) -> set[ir.Node]:
        """Give the nodes their reasons that are to stay on the CPU though legal; those that are to stay on a net.

        What leads to a cut is on a net as far as it can: there the user says where it ends, elsewhere the tail does.
        """
        tail = _tail(self._wiring, self._macs)
        cut_at = self._cut_values()
        makers = (self._wiring.makers[value] for value in cut_at if value in self._wiring.makers)
        leading = self._wiring.ancestors(makers)
        self._bar(self._wiring.closure(reader for value in cut_at for reader in self._wiring.readers[value]), ASKED)
        if self._wishes.tail == "none":
            late = self._wiring.closure(node for node in tail if not self._macs[node])
            self._bar(late - leading, LATE)
            return tail & leading
        if self._wishes.tail == "auto":
            for node, reason in _coarse(self._wiring, tail).items():
                if node not in leading:
                    self._reasons.setdefault(node, reason)
        return tail

    def _bar(self, nodes: Iterable[ir.Node], reason: str) -> None:
        for node in nodes:
            self._reasons.setdefault(node, reason)

    def _cut_values(self) -> set[ir.Value]:
        """What the user wants to cut at."""
        values = self._named_values()
        if not values.keys() >= set(self._wishes.cuts):
            values = self._placed_values() | values
        found: set[ir.Value] = set()
        for name in self._wishes.cuts:
            if name not in values:
                raise UsageError(f"--cut {name}: no tensor, node or layer of that name", near(name, sorted(values)))
            found |= values[name]
        return found

    def _named_values(self) -> dict[str, set[ir.Value]]:
        values: dict[str, set[ir.Value]] = {}
        for node in self._wiring.nodes:
            names = {node.name, *canon.sources(node), *(v.name for v in node.outputs)}
            names |= {tensor.name for value in node.outputs for tensor in canon.tensors(value)}
            for name in names - {None, ""}:
                values.setdefault(name or "", set()).update(node.outputs)
        for value in self._wiring.graph.inputs:
            values.setdefault(value.name or "", set()).add(value)
        return values

    def _placed_values(self) -> dict[str, set[ir.Value]]:
        """Values by the layers and blobs of the nets that there are without cuts."""
        try:
            plan = partitioned(self._model, self._target, replace(self._wishes, cuts=(), names={}))
        except NotConvertible:
            return {}
        values: dict[str, set[ir.Value]] = {}
        for lowered in (piece.lowered for piece in plan.pieces if piece.lowered is not None):
            values |= {layer: set(node.outputs) for layer, node in lowered.makers.items()}
            values |= {blob.name: {value} for value, blob in lowered.blobs.items()}
        return values

    def _price(self, value: ir.Value, into_net: bool) -> int:
        """Bytes that cross a border, and far more for values that should not."""
        try:
            shape = canon.shape(value)
        except ValueError:
            return _UNKNOWN_SHAPE
        cost = 4 * math.prod(shape) if self._by_size else 1
        if into_net and unfit(self._target, shape):
            cost += _NO_INPUT
        named = canon.tensors(value) or value in self._wiring.graph.outputs
        return cost if named else cost + _NO_IDENTITY

    def _pieces(self, parts: Sequence[Part]) -> tuple[list[Piece], dict[ir.Node, str]]:
        """The parts lowered and finished, and the nodes that a rule about a whole net turns out to refuse."""
        names = Names()
        pieces: list[Piece] = []
        faults: dict[ir.Node, str] = {}
        for part in parts:
            if not part.caffe:
                pieces.append(Piece(part))
                continue
            faults |= self._unfed(part)
            if faults:
                continue
            piece = _lowered(part, self._wiring.graph.name or "net", self._target, self._wishes, names)
            faults |= _faults(piece, self._target)
            pieces.append(piece)
        return pieces, faults

    def _unfed(self, part: Part) -> dict[ir.Node, str]:
        """The nodes of a part that read what no net can take in."""
        own = set(part.nodes)
        found: dict[ir.Node, str] = {}
        for value in part.inputs:
            reason = unfit(self._target, canon.shape(value))
            if reason:
                found |= dict.fromkeys(own.intersection(self._wiring.readers[value]), f"input {value.name!r}: {reason}")
        return found

    def _refusals(self) -> list[Blocked]:
        """Why there is no net: of what hangs on an input that none can take in, the readers say it; all others each."""
        unread = [value for value in self._wiring.graph.inputs if unfit(self._target, canon.shape(value))]
        readers = {reader for value in unread for reader in self._wiring.readers[value]}
        behind = self._wiring.closure(readers) - readers
        late = set(self._reasons) - set(self._blocked)
        every = [*self._blocked, *sorted(late, key=canon.label)]
        return [self._refusal(node, behind) for node in sorted(every, key=lambda node: node in behind)]

    def _refusal(self, node: ir.Node, behind: AbstractSet[ir.Node]) -> Blocked:
        if node in behind:
            return Blocked(canon.label(node), node.op_type, ("behind an input that no net takes in",))
        return self._blocked.get(node) or Blocked(canon.label(node), node.op_type, (self._reasons[node],))


def _lowered(part: Part, name: str, target: Target, wishes: Wishes, names: Names) -> Piece:
    lowered = lower_part(name, part.nodes, part.inputs, part.outputs, target=target, chosen=wishes.recipes, names=names)
    wanted = _output_names(part, lowered) | _wanted_names(lowered, wishes.names)
    return Piece(part, lowered, target.finish(lowered.net, wanted))


def _output_names(part: Part, lowered: Lowered) -> dict[str, str]:
    """Blob -> the model's output that it holds, where it bears the name of a tensor before that needed no layer."""
    owners: dict[str, ir.Value] = {}
    for value, blob in lowered.blobs.items():
        owners.setdefault(blob.name, value)
    found: dict[str, str] = {}
    for value in filter(ir.Value.is_graph_output, part.outputs):
        name = lowered.blobs[value].name
        if not owners[name].is_graph_output() and owners[name] not in part.inputs:
            found.setdefault(name, Namer()(value.name or ""))
    return found


def _apart(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces without a layer that bears the name of one of another net: nets finish their names by themselves."""
    name, result = Namer(), []
    for piece in pieces:
        net = piece.net and renamed(piece.net, {}, {placed.name: name(placed.name) for placed in piece.net})
        result.append(replace(piece, net=net))
    return result


def _wanted_names(lowered: Lowered, names: Mapping[str, str]) -> dict[str, str]:
    """Blob -> the name the user wants for it."""
    return {
        blob.name: names[tensor.name]
        for value, blob in lowered.blobs.items()
        for tensor in canon.tensors(value)
        if tensor.name in names and blob.name in lowered.net.outputs
    }


def _check_names(pieces: Iterable[Piece], names: Mapping[str, str]) -> None:
    """Raise UsageError where a name is wanted for what no net puts out, or twice."""
    made = [value for piece in pieces if piece.net is not None for value in piece.part.outputs]
    known = dict.fromkeys(tensor.name for value in made for tensor in canon.tensors(value))
    if lost := [name for name in names if name not in known]:
        raise UsageError(f"--rename {lost[0]}: no output of a net has that name", f"outputs: {', '.join(known)}")
    if len(set(names.values())) < len(names):
        raise UsageError("--rename gives two outputs one name", "choose different names")
    for piece in pieces:
        blobs = piece.net.outputs if piece.net is not None else ()
        for value, blob in zip(piece.part.outputs, blobs, strict=piece.net is not None):
            _check_granted(names, value, blob)


def _check_granted(names: Mapping[str, str], value: ir.Value, blob: str) -> None:
    """Raise UsageError where an output's blob has not the name the user wants."""
    for tensor in canon.tensors(value):
        wanted = names.get(tensor.name, blob)
        if wanted != blob:
            raise UsageError(
                f"--rename {tensor.name}={wanted}: the blob would be called {blob!r}",
                "a name that no other port has; for the mapper at most 31 characters of A-Z a-z 0-9 _ . / : -, "
                "and no mark at its end (_cpu, _hp, _report)",
            )


def _faults(piece: Piece, target: Target) -> dict[ir.Node, str]:
    """What the target's rules about whole nets find, by the node whose layer it is."""
    assert piece.lowered is not None
    assert piece.net is not None
    found: dict[ir.Node, str] = {}
    for layer, text in target.faults(piece.net):
        if layer in piece.lowered.makers:
            found[piece.lowered.makers[layer]] = text
    return found
