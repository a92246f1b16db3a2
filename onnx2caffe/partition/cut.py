"""Where to cut: every node gets a level, even ones stay ONNX, odd ones become Caffe nets, in order of execution.

What must be on a Caffe net goes there as early as it can; that fixes how many nets there are. Nodes that may be on
either side of a border go where the border is cheapest: one minimum cut per border. The cuts of successive borders lie
inside one another, since minimum cuts between growing terminals do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import onnx_ir as ir

from onnx2caffe.partition.flow import UNBOUNDED, FlowNetwork
from onnx2caffe.partition.wiring import Wiring

__all__ = ["WORTH", "Part", "cut"]

WORTH = 1e-3
"""The share of a model's multiply-accumulates for which a further net is made: each has a hand-over of its own."""

Price = Callable[[ir.Value, bool], int]
"""What it costs to let a value cross a border; True: into a Caffe net."""


@dataclass(frozen=True)
class Part:
    """Nodes that run together, in topological order, and the values that cross their borders.

    Parts run by their levels; those of odd ones are Caffe's.
    """

    level: int
    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]

    @property
    def caffe(self) -> bool:
        """Whether it becomes a Caffe net."""
        return self.level % 2 == 1


def cut(
    wiring: Wiring,
    barred: AbstractSet[ir.Node],
    weights: Mapping[ir.Node, int],
    *,
    kept: AbstractSet[ir.Node],
    price: Price,
    most: int,
    later: Mapping[ir.Node, int],
) -> list[Part]:
    """Cut a model into parts, in order of execution; without any Caffe part when nothing that counts may be on one.

    Args:
        wiring: of the model.
        barred: nodes that stay ONNX.
        weights: what each node is worth on a Caffe net (0 or absent: nothing).
        kept: nodes without weight that stay on the Caffe net they directly follow.
        price: of a border.
        most: the number of Caffe parts there may be.
        later: the least level of nodes that an earlier net has no room for.

    """
    wanted = {node for node in wiring.nodes if weights.get(node) and node not in barred}
    barred = set(barred)
    least = WORTH * sum(weights.values())
    while True:
        levels = _earliest(wiring, barred, wanted, later)
        worth = _worth(levels, wanted, weights)
        poorest = min(worth, key=lambda level: (worth[level], -level), default=0)
        if len(worth) <= most and (len(worth) <= 1 or worth[poorest] >= least):
            break
        dropped = {node for node in wanted if levels[node] == poorest}
        wanted, barred = wanted - dropped, barred | dropped
    if not wanted:
        return _parts(wiring, dict.fromkeys(wiring.nodes, 0))
    wanted |= {node for node in kept if levels[node] % 2 and node not in barred}
    return _parts(wiring, _settled(wiring, barred, {node: levels[node] for node in wanted}, price))


def _earliest(
    wiring: Wiring, barred: AbstractSet[ir.Node], wanted: AbstractSet[ir.Node], later: Mapping[ir.Node, int]
) -> dict[ir.Node, int]:
    levels: dict[ir.Node, int] = {}
    for node in wiring.nodes:
        level = max((levels[one] for one in wiring.before(node)), default=0)
        level = max(level, later.get(node, 0)) if node in wanted else level
        wrong = (node in barred and level % 2 == 1) or (node in wanted and level % 2 == 0)
        levels[node] = level + wrong
    return levels


def _worth(levels: Mapping[ir.Node, int], wanted: Iterable[ir.Node], weights: Mapping[ir.Node, int]) -> dict[int, int]:
    worth: dict[int, int] = {}
    for node in wanted:
        worth[levels[node]] = worth.get(levels[node], 0) + weights[node]
    return worth


def _settled(
    wiring: Wiring, barred: AbstractSet[ir.Node], fixed: Mapping[ir.Node, int], price: Price
) -> dict[ir.Node, int]:
    """The level of every node: `fixed` ones as given, `barred` ones even and late, the rest by minimum cuts."""
    last = max(fixed.values()) + 1
    high: dict[ir.Node, int] = {}
    for node in reversed(wiring.nodes):
        limit = min((high[one] for one in wiring.behind(node)), default=last)
        high[node] = fixed.get(node, limit - limit % 2 if node in barred else limit)
    low: dict[ir.Node, int] = {}
    for node in wiring.nodes:
        reached = max((low[one] for one in wiring.before(node)), default=0)
        low[node] = high[node] if node in fixed or node in barred else reached
    levels = dict.fromkeys(wiring.nodes, 0)
    beyond = set(wiring.nodes)
    for border in range(1, last + 1):
        beyond &= _beyond(wiring, low, high, border, price)
        for node in beyond:
            levels[node] = border
    return levels


def _beyond(
    wiring: Wiring, low: Mapping[ir.Node, int], high: Mapping[ir.Node, int], border: int, price: Price
) -> set[ir.Node]:
    """The nodes at or above level `border`, so that what crosses costs least; of equals, Caffe parts get more nodes."""
    into = border % 2 == 1
    network = FlowNetwork()
    vertices = {
        node: network.source if low[node] >= border else network.sink if high[node] < border else network.vertex()
        for node in wiring.nodes
    }
    for value, readers in wiring.readers.items():
        maker = vertices[wiring.makers[value]] if value in wiring.makers else network.sink
        ends = {vertices[reader] for reader in readers} - {network.sink}
        if not ends or maker == network.source:
            continue
        crossing = network.vertex()
        network.edge(crossing, maker, min(price(value, into), UNBOUNDED))
        for end in ends:
            network.edge(end, crossing)
        if maker != network.sink:
            for reader in readers:
                network.edge(maker, vertices[reader])
    side = network.cut(greatest=into)
    return {node for node, vertex in vertices.items() if vertex in side}


def _parts(wiring: Wiring, levels: Mapping[ir.Node, int]) -> list[Part]:
    outputs = {value: number for number, value in reversed([*enumerate(wiring.graph.outputs)])}
    ranks = _ranks(wiring, outputs)
    parts = []
    for level in sorted(set(levels.values())):
        nodes = tuple(node for node in wiring.nodes if levels[node] == level)
        own = set(nodes)
        read = dict.fromkeys(value for node in nodes for value in wiring.reads[node])
        made = [value for node in nodes for value in node.outputs]
        leaving = [v for v in made if v in outputs or any(reader not in own for reader in wiring.readers[v])]
        parts.append(
            Part(
                level,
                nodes,
                tuple(value for value in read if wiring.makers.get(value) not in own),
                tuple(sorted(leaving, key=lambda value: ranks[value])),
            )
        )
    return parts


def _ranks(wiring: Wiring, outputs: Mapping[ir.Value, int]) -> dict[ir.Value, int]:
    """Per value the number of the model's first output that it is or leads to: a head's values stay together."""
    ranks: dict[ir.Value, int] = {}
    for node in reversed(wiring.nodes):
        for value in node.outputs:
            behind = (ranks[other] for reader in wiring.readers[value] for other in reader.outputs)
            ranks[value] = outputs.get(value, min(behind, default=len(outputs)))
    return ranks
