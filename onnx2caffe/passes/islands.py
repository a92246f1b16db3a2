"""Transposes around ops that do not care about the layout cancel.

An island is a set of connected nodes that all work axis by axis (`relayout`). Computing it in the layout before a
Transpose removes the Transposes that lead into it, and changes those behind it; where it meets others, one is added.
It is relaid only when the graph then has fewer Transposes (NHWC parts of TensorFlow exports: all of them go).
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.decompose.transpose import Blocks, invert
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import computed, maker, source
from onnx2caffe.passes.relayout import Perm, Relaid, relaid

__all__ = ["CancelTransposes"]

_Island = dict[ir.Node, Relaid]


class CancelTransposes(NodePass):
    """Islands of layout-blind ops are computed before the Transposes around them, where that leaves fewer of these."""

    claim = "f(transpose(x)) = transpose(f′(x)) for ops that work axis by axis, f′ with its axes renamed"
    ops = frozenset({"Transpose"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Grow an island from the readers of this Transpose, forward or in both directions; relay the first gain."""
        perm: Perm = canon.attribute(node, "perm")
        for backward in (False, True):
            island = _grow(node.outputs[0], perm, backward=backward)
            if island and _gain(island, perm) > 0:
                _Relayout(island, perm, edit).run()
                return True
        return False


def _grow(value: ir.Value, perm: Perm, *, backward: bool) -> _Island:
    """All nodes that can be relaid and hang together with `value` through values in its layout."""
    island: _Island = {}
    waiting = [value]
    while waiting:
        near = [use.node for use in waiting.pop().uses()]
        for node in near:
            found = None if node in island else relaid(node, perm)
            if found is None:
                continue
            island[node] = found
            if found.moves_outputs:
                waiting.extend(node.outputs)
            if backward:
                waiting.extend(_made_by_relayable(node, perm))
    return island


def _made_by_relayable(node: ir.Node, perm: Perm) -> Iterable[ir.Value]:
    """Inputs of `node` whose maker could belong to the island: what it reads has readers in the island's layout."""
    for value in computed(node):
        producer = value.producer()
        found = relaid(producer, perm) if producer is not None else None
        if producer is not None and found is not None and found.moves_outputs:
            yield from computed(producer)


def _before(shape: Shape, perm: Perm) -> Shape:
    """The shape that Transpose `perm` makes `shape` of."""
    return tuple(shape[axis] for axis in invert(perm))


def _moves(shape: Shape, perm: Perm) -> int:
    """1 when this Transpose moves anything, 0 when it is a Reshape."""
    return int(Blocks.of(shape, perm).moves)


def _gain(island: _Island, perm: Perm) -> int:
    """How many Transposes fewer there are with the island relaid."""
    inputs = {value for node in island for value in computed(node) if value.producer() not in island}
    outputs = {value for node, to in island.items() if to.moves_outputs for value in node.outputs}
    return sum(_input_gain(value, island, perm) for value in inputs) + sum(
        _output_gain(value, island, perm) for value in outputs
    )


def _input_gain(value: ir.Value, island: _Island, perm: Perm) -> int:
    dies = not value.is_graph_output() and all(use.node in island for use in value.uses())
    transpose = maker(value, "Transpose")
    if transpose is None:
        return -_moves(canon.shape(value), invert(perm))
    own = Blocks.of(canon.shape(source(transpose)), canon.attribute(transpose, "perm"))
    joined = own.then(Blocks.of(canon.shape(value), invert(perm)))
    return int(own.moves) * dies - int(joined is None or joined.moves)


def _output_gain(value: ir.Value, island: _Island, perm: Perm) -> int:
    own = Blocks.of(_before(canon.shape(value), perm), perm)
    outside = [use.node for use in value.uses() if use.node not in island]
    gain = 0
    kept = value.is_graph_output()
    for node in outside:
        if node.op_type == "Transpose" and not node.domain:
            behind = Blocks.of(canon.shape(value), canon.attribute(node, "perm"))
            joined = own.then(behind)
            gain += int(behind.moves) - int(joined is None or joined.moves)
        else:
            kept = True
    return gain - int(kept and own.moves)


class _Relayout:
    """Builds an island again in the other layout."""

    def __init__(self, island: _Island, perm: Perm, edit: Editor) -> None:
        self.island = island
        self.perm = perm
        self.edit = edit
        self.moved: dict[ir.Value, ir.Value] = {}

    def run(self) -> None:
        """Build every node, then hand the outputs over through Transposes, from the last to the first."""
        nodes = [node for node in self.edit.graph if node in self.island]
        for node in nodes:
            self._build(node)
        for node in reversed(nodes):
            for value in node.outputs:
                if value.uses() or value.is_graph_output():
                    self._restore(node, value)
            self.edit.discard(node)

    def _build(self, node: ir.Node) -> None:
        to = self.island[node]
        inputs = [
            self.edit.constant(to.constants[i], node.outputs[0], "moved") if i in to.constants else self._input(node, v)
            for i, v in enumerate(node.inputs)
        ]
        shapes = [canon.shape(value) for value in node.outputs]
        if to.moves_outputs:
            shapes = [_before(shape, self.perm) for shape in shapes]
        copies = self.edit.copy(node, to.op, inputs, to.attributes, shapes=shapes)
        self.moved.update(zip(node.outputs, copies, strict=True))

    def _input(self, node: ir.Node, value: ir.Value | None) -> ir.Value | None:
        if value is None or canon.const(value) is not None:
            return value
        if value not in self.moved:
            transpose = maker(value, "Transpose")
            if transpose is not None and canon.attribute(transpose, "perm") == self.perm:
                self.moved[value] = source(transpose)
            else:
                perm, shape = invert(self.perm), _before(canon.shape(value), self.perm)
                self.moved[value] = self.edit.add(
                    node, "Transpose", [value], {"perm": perm}, shape=shape, what="layout"
                )
        return self.moved[value]

    def _restore(self, node: ir.Node, value: ir.Value) -> None:
        made = self.moved[value]
        if self.island[node].moves_outputs:
            perm, shape = self.perm, canon.shape(value)
            made = self.edit.add(node, "Transpose", [made], {"perm": perm}, shape=shape, what="restored")
        self.edit.forward(value, made)
