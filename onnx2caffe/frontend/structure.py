"""The shape of the user's graph: names defined once and before use, no cycles, only what the outputs need."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import onnx

from onnx2caffe.errors import UnreadableFile, UsageError, near

__all__ = ["captured", "check_names", "choose_outputs", "computed", "live", "node_label", "ordered"]


def node_label(node: onnx.NodeProto) -> str:
    """The user's name of a node; for one without, the name of its first output."""
    return node.name or next((name for name in node.output if name), node.op_type)


def check_names(nodes: Iterable[onnx.NodeProto], graphs: Iterable[onnx.GraphProto] = ()) -> None:
    """All names must be text: protobuf hands out bytes for what is no UTF-8.

    Raises:
        UnreadableFile: one is not.

    """
    for node in nodes:
        subgraphs = [g for a in node.attribute for g in ([a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs)]
        names = (node.name, node.op_type, node.domain, *node.input, *node.output, *(a.name for a in node.attribute))
        _need_text(names)
        check_names((), subgraphs)
    for graph in graphs:
        values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
        _need_text((graph.name, *(value.name for value in values)))
        check_names(graph.node)


def _need_text(names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise UnreadableFile(f"the name {name!r} is no UTF-8 text")


def captured(node: onnx.NodeProto) -> set[str]:
    """The outer names that a node's subgraphs read."""
    free: set[str] = set()
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else []), *attribute.graphs):
            free |= _free_names(graph)
    return free


def _free_names(graph: onnx.GraphProto) -> set[str]:
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer} | {""}
    read: set[str] = set()
    for node in graph.node:
        read |= (set(node.input) | captured(node)) - own
        own |= set(node.output)
    return read | ({o.name for o in graph.output} - own)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    yield from (name for name in node.input if name)
    yield from captured(node)


def ordered(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """All nodes, each after those it reads; the file's own order where it already is one.

    Raises:
        UnreadableFile: a name is defined twice, read but never defined, or nodes form a cycle.

    """
    defined = _once((i.name for i in graph.input), "graph input")
    defined |= _once(
        [*(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer)], "initializer"
    )
    maker: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in maker or name in defined):
                raise UnreadableFile(
                    f"the tensor {name!r} is computed twice (again by {node.op_type} {node_label(node)!r})"
                )
            if name:
                maker[name] = index
    waits: list[int] = [0] * len(graph.node)
    readers: list[list[int]] = [[] for _ in graph.node]
    for index, node in enumerate(graph.node):
        for name in dict.fromkeys(_reads(node)):
            if name in maker:
                readers[maker[name]].append(index)
                waits[index] += 1
            elif name not in defined:
                raise UnreadableFile(f"{node.op_type} {node_label(node)!r} reads {name!r}, which nothing computes")
    return [graph.node[i] for i in _topological(waits, readers, graph)]


def _topological(waits: list[int], readers: list[list[int]], graph: onnx.GraphProto) -> list[int]:
    order: list[int] = []
    ready = deque(i for i, n in enumerate(waits) if n == 0)
    while ready:
        index = ready.popleft()
        order.append(index)
        for reader in readers[index]:
            waits[reader] -= 1
            if waits[reader] == 0:
                ready.append(reader)
    if len(order) < len(waits):
        stuck = [node_label(graph.node[i]) for i, n in enumerate(waits) if n > 0]
        raise UnreadableFile(f"the graph has a cycle through {', '.join(map(repr, stuck[:5]))}")
    return order


def _once(names: Iterable[str], what: str) -> set[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UnreadableFile(f"two {what}s have the name {name!r}")
        seen.add(name)
    return seen


def live(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> tuple[list[onnx.NodeProto], set[str]]:
    """Of ordered nodes those that `outputs` need, and all names they and the outputs read."""
    needed = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(_reads(node))
    return kept[::-1], needed


def computed(nodes: Iterable[onnx.NodeProto], names: Sequence[str]) -> list[str]:
    """The tensors of these names that the nodes make; a node's name stands for its outputs."""
    return [made for node in nodes for made in node.output if made and (made in names or node.name in names)]


def choose_outputs(graph: onnx.GraphProto, asked: Sequence[str]) -> list[str]:
    """The tensors to end at: those asked for (a node's name stands for its outputs), else the graph's own.

    Raises:
        UsageError: nothing has a name that was asked for.
        UnreadableFile: the graph's own output is not computed.

    """
    tensors = dict.fromkeys(i.name for i in graph.input)
    by_node: dict[str, list[str]] = {}
    for node in graph.node:
        made = [name for name in node.output if name]
        tensors |= dict.fromkeys(made)
        if node.name:
            by_node.setdefault(node.name, []).extend(made)
    tensors |= dict.fromkeys(t.name for t in graph.initializer)
    if not asked:
        names = [output.name for output in graph.output]
        missing = [name for name in names if name not in tensors]
        if missing or not names:
            raise UnreadableFile(
                f"output {missing[0]!r} is computed by no node" if missing else "the graph has no output"
            )
        return names
    chosen: list[str] = []
    for name in asked:
        if name not in tensors and name not in by_node:
            raise UsageError(f"the model has no tensor or node {name!r}", near(name, [*tensors, *by_node]))
        chosen.extend([name] if name in tensors else by_node[name])
    return list(dict.fromkeys(chosen))
