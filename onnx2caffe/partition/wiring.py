"""Who makes and who reads a value, subgraphs of control flow included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

__all__ = ["Wiring", "read_by"]


def read_by(node: ir.Node) -> Iterator[ir.Value]:
    """Every value a node reads, those that its subgraphs take from outside among them; absent inputs left out."""
    yield from (value for value in node.inputs if value is not None)
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph().all_nodes():
                yield from (value for value in inner.inputs if value is not None)


class Wiring:
    """A graph's nodes in topological order, each with the computed values it reads; the readers of each value."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.nodes = list(graph)
        self.makers: dict[ir.Value, ir.Node] = {value: node for node in self.nodes for value in node.outputs}
        known = {*self.makers, *graph.inputs}
        self.reads: dict[ir.Node, list[ir.Value]] = {
            node: [value for value in dict.fromkeys(read_by(node)) if value in known] for node in self.nodes
        }
        self.readers: dict[ir.Value, list[ir.Node]] = {value: [] for value in known}
        for node, values in self.reads.items():
            for value in values:
                self.readers[value].append(node)

    def before(self, node: ir.Node) -> Iterator[ir.Node]:
        """The nodes that make what a node reads."""
        return (self.makers[value] for value in self.reads[node] if value in self.makers)

    def behind(self, node: ir.Node) -> Iterator[ir.Node]:
        """The nodes that read what a node makes."""
        return (reader for value in node.outputs for reader in self.readers[value])

    def closure(self, nodes: Iterable[ir.Node]) -> set[ir.Node]:
        """`nodes` and everything behind them."""
        found = set(nodes)
        for node in self.nodes:
            if any(one in found for one in self.before(node)):
                found.add(node)
        return found

    def ancestors(self, nodes: Iterable[ir.Node]) -> set[ir.Node]:
        """`nodes` and everything they depend on."""
        found = set(nodes)
        for node in reversed(self.nodes):
            if any(one in found for one in self.behind(node)):
                found.add(node)
        return found
