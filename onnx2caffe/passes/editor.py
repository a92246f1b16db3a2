"""How passes change a graph: every edit keeps the canonical model's promises on names, sources and dead nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.frontend.names import add_sources, add_tensors, names_of, replace_value

__all__ = ["Array", "Editor"]

Array = np.ndarray[Any, Any]
_Attributes = Mapping[str, Any]


class Editor:
    """Edits of one graph. Shapes are given by the caller, who knows what he builds."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self._names = names_of(graph)

    def constant(self, array: Array | Sequence[int], origin: ir.Value, what: str) -> ir.Value:
        """A new initializer `<origin>__<what>`; a sequence of ints becomes int64, as ONNX wants axes and shapes."""
        data = np.array(array, dtype=np.int64) if isinstance(array, list | tuple) else np.asarray(array)
        tensor = ir.tensor(data)
        value = ir.Value(
            name=self._names.new(origin.name or "", what),
            shape=ir.Shape(data.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        self.graph.register_initializer(value)
        return value

    def add(
        self,
        before: ir.Node,
        op: str,
        inputs: Sequence[ir.Value | None],
        attributes: _Attributes,
        *,
        shape: Shape,
        what: str,
        merged: Iterable[ir.Node] = (),
    ) -> ir.Value:
        """A new node in front of `before`; returns its one output, called `<output of before>__<what>`.

        The node stands for the user's nodes of `before` and `merged`; its element type is that of its first input.
        """
        origin, like = before.outputs[0], inputs[0]
        assert like is not None
        output = ir.Value(
            name=self._names.new(origin.name or "", what),
            shape=ir.Shape(shape),
            type=ir.TensorType(canon.dtype(like)),
        )
        node = ir.node(op, inputs, attributes, outputs=[output], name=output.name)
        for one in (before, *merged):
            add_sources(node, canon.sources(one))
        self.graph.insert_before(before, node)
        return output

    def split(
        self, before: ir.Node, value: ir.Value, axis: int, sizes: Sequence[int], merged: Iterable[ir.Node] = ()
    ) -> Sequence[ir.Value]:
        """`value` in parts along an axis, by a Split in front of `before`; the parts are `<value>__part…`."""
        shape, name = canon.shape(value), value.name or ""
        parts = [
            ir.Value(
                name=self._names.new(name, f"part{i}"),
                shape=ir.Shape((*shape[:axis], size, *shape[axis + 1 :])),
                type=ir.TensorType(canon.dtype(value)),
            )
            for i, size in enumerate(sizes)
        ]
        listed = self.constant(list(sizes), value, "parts")
        node = ir.node("Split", [value, listed], {"axis": axis}, outputs=parts, name=self._names.new(name, "split"))
        for one in (before, *merged):
            add_sources(node, canon.sources(one))
        self.graph.insert_before(before, node)
        return parts

    def copy(
        self,
        node: ir.Node,
        op: str,
        inputs: Sequence[ir.Value | None],
        attributes: _Attributes,
        *,
        shapes: Sequence[Shape],
    ) -> Sequence[ir.Value]:
        """A variant of `node` in front of it: other inputs and output shapes, the same element types."""
        outputs = [
            ir.Value(name=self._names.new(old.name or "", "moved"), shape=ir.Shape(shape), type=old.type)
            for old, shape in zip(node.outputs, shapes, strict=True)
        ]
        new = ir.node(op, inputs, attributes, outputs=outputs, name=self._names.new(node.name or "", "moved"))
        add_sources(new, canon.sources(node))
        self.graph.insert_before(node, new)
        return outputs

    def copied(self, value: ir.Value) -> ir.Value:
        """`value`, which no node makes, by a node at the end; that stands for no user node, so for the tensor."""
        name = self._names.new(value.name or "", "copy")
        copy = ir.Value(name=name, shape=value.shape, type=value.type)
        node = ir.node("Identity", [value], outputs=[copy], name=name)
        add_sources(node, [value.name or ""])
        self.graph.append(node)
        return copy

    def interpose(
        self, op: str, value: ir.Value, others: Sequence[ir.Value], attributes: _Attributes, what: str
    ) -> None:
        """Let all nodes that read `value` read a new node of its shape, `<value>__<what>`, that stands for it."""
        uses = list(value.uses())
        name = self._names.new(value.name or "", what)
        output = ir.Value(name=name, shape=value.shape, type=value.type)
        node = ir.node(op, [value, *others], attributes, outputs=[output], name=name)
        add_sources(node, [value.name or ""])
        maker = value.producer()
        if maker is not None:
            self.graph.insert_after(maker, node)
        else:
            self.graph.insert_before(self.graph[0], node)
        for use in uses:
            use.node.replace_input_with(use.idx, output)

    def replace(
        self,
        node: ir.Node,
        op: str,
        inputs: Sequence[ir.Value | None],
        attributes: _Attributes | None = None,
        *,
        merged: Iterable[ir.Node] = (),
    ) -> ir.Node:
        """A new node that computes all outputs of `node` and takes its place, its names and its user tensors.

        It stands for the user's nodes of `node` and of `merged` (nodes it makes superfluous).
        """
        outputs = [_twin(old) for old in node.outputs]
        new = ir.node(op, inputs, attributes or {}, outputs=outputs, name=node.name)
        for one in (*merged, node):
            add_sources(new, canon.sources(one))
        self.graph.insert_before(node, new)
        for old, value in zip(node.outputs, outputs, strict=True):
            old.replace_all_uses_with(value, replace_graph_outputs=True)
        self.discard(node)
        return new

    def reshape(self, before: ir.Node, value: ir.Value, shape: Shape, what: str = "reshaped") -> ir.Value:
        """`value` as `shape`; itself when it has that shape already."""
        if canon.shape(value) == shape:
            return value
        target = self.constant(shape, before.outputs[0], f"{what}_shape")
        return self.add(before, "Reshape", [value, target], {"allowzero": int(0 in shape)}, shape=shape, what=what)

    def replace_by_reshape(self, node: ir.Node, value: ir.Value, *, merged: Iterable[ir.Node] = ()) -> None:
        """Let the one output of `node` be `value`, reshaped when the shapes differ."""
        output = node.outputs[0]
        shape = canon.shape(output)
        if canon.shape(value) == shape:
            self.forward(output, value)
        else:
            target = self.constant(shape, output, "shape")
            self.replace(node, "Reshape", [value, target], {"allowzero": int(0 in shape)}, merged=merged)

    def forward(self, old: ir.Value, new: ir.Value) -> None:
        """Let `new`, which holds the same values in the same C order and shape, take `old`'s place everywhere."""
        replace_value(old, new)
        node, producer = old.producer(), new.producer()
        assert node is not None
        if producer is not None:
            add_sources(producer, canon.sources(node))
        self.discard(node)

    def discard(self, node: ir.Node) -> None:
        """Remove `node` if nothing reads it, then whatever only it read."""
        if node.graph is None or any(v.uses() or v.is_graph_output() for v in node.outputs):
            return
        read = {value for value in node.inputs if value is not None}
        self.graph.remove(node, safe=True)
        for value in read:
            producer = value.producer()
            if producer is not None:
                self.discard(producer)
            elif value.is_initializer() and not value.uses() and not value.is_graph_output():
                self.graph.initializers.pop(value.name or "", None)


def _twin(value: ir.Value) -> ir.Value:
    twin = ir.Value(name=value.name, shape=value.shape, type=value.type)
    add_tensors(twin, canon.tensors(value))
    return twin
