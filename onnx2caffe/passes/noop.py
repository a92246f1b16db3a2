"""Drop nodes that change nothing, Expands that broadcasting does anyway, and compute equal things once.

A node is dropped when its output equals its input for every input: the reader then reads the input. Resize counts only
when its scale is 1 exactly (sizes equal, or scales 1), not when a fractional scale happens to keep the size.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.names import add_sources
from onnx2caffe.passes.base import NodePass, Pass, PassResult
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.match import ints, maker, operands, scalar, source

__all__ = ["DropExpand", "DropNoOps", "ShareEqualNodes"]

_SHARED_BYTES = 4096
"""Initializers up to this size are compared by content; larger ones (weights) only by identity."""


def _same_shape(node: ir.Node) -> bool:
    return canon.shape(source(node)) == canon.shape(node.outputs[0])


def _cast(node: ir.Node) -> bool:
    return source(node).dtype == node.outputs[0].dtype


def _slice(node: ir.Node) -> bool:
    steps = ints(node, 4)
    return _same_shape(node) and steps is not None and all(step == 1 for step in steps)


def _one_input(node: ir.Node) -> bool:
    return len(node.inputs) == 1


def _pad(node: ir.Node) -> bool:
    pads = ints(node, 1)
    return pads is not None and not any(pads)


def _resize(node: ir.Node) -> bool:
    cropping = canon.attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize"
    scales = canon.const(node.inputs[2]) if len(node.inputs) > 2 else None
    return _same_shape(node) and not cropping and (scales is None or bool(np.all(scales == 1)))


def _gather(node: ir.Node) -> bool:
    indices = canon.const(source(node, 1))
    return (
        indices is not None
        and _same_shape(node)
        and np.array_equal(indices, np.arange(canon.shape(source(node))[canon.attribute(node, "axis", 0)]))
    )


def _clip(node: ir.Node) -> bool:
    return not any(node.inputs[1:])


def _pool(node: ir.Node) -> bool:
    ones = all(n == 1 for name in ("kernel_shape", "strides") for n in canon.attribute(node, name))
    return ones and not any(canon.attribute(node, "pads")) and len(node.outputs) == 1


_UNCHANGING: dict[str, Callable[[ir.Node], bool]] = {
    "AveragePool": _pool,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _one_input,
    "Expand": _same_shape,
    "Gather": _gather,
    "Max": _one_input,
    "MaxPool": _pool,
    "Mean": _one_input,
    "Min": _one_input,
    "Pad": _pad,
    "Resize": _resize,
    "Slice": _slice,
    "Split": lambda node: len(node.outputs) == 1,
    "Sum": _one_input,
    "Tile": _same_shape,
}

_NEUTRAL = {"Add": 0.0, "Div": 1.0, "Mul": 1.0, "Pow": 1.0, "Sub": 0.0}
_COMMUTES = frozenset({"Add", "Mul"})


class DropNoOps(NodePass):
    """Readers of a node that changes nothing read its input."""

    claim = "a node whose output equals its input for every input is dropped"
    ops = frozenset(_UNCHANGING) | frozenset(_NEUTRAL)

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Forward the unchanged input."""
        value = self._unchanged(node)
        if value is None:
            return False
        edit.forward(node.outputs[0], value)
        return True

    def _unchanged(self, node: ir.Node) -> ir.Value | None:
        if node.op_type in _UNCHANGING:
            return source(node) if _UNCHANGING[node.op_type](node) else None
        readings = list(operands(node))
        for value, other in readings if node.op_type in _COMMUTES else readings[:1]:
            if scalar(other) == _NEUTRAL[node.op_type] and canon.shape(value) == canon.shape(node.outputs[0]):
                return value
        return None


_BROADCASTS = frozenset(
    {"Add", "And", "Div", "Equal", "Greater", "Less", "Max", "Min", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"}
)


class DropExpand(NodePass):
    """An element-wise op reads what an Expand was given, where its own broadcasting gives the same shape."""

    claim = "f(expand(a), b) = f(a, b) when b (or the other operands) has the expanded shape already"
    ops = _BROADCASTS

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Try each operand."""
        modified = False
        for index, value in enumerate(node.inputs):
            expand = maker(value, "Expand")
            if expand is None:
                continue
            others = [canon.shape(one) for i, one in enumerate(node.inputs) if i != index and one is not None]
            if np.broadcast_shapes(canon.shape(source(expand)), *others) == canon.shape(node.outputs[0]):
                node.replace_input_with(index, source(expand))
                add_sources(node, canon.sources(expand))
                edit.discard(expand)
                modified = True
        return modified


def _attribute_key(attribute: ir.Attr) -> Hashable:
    if attribute.type == ir.AttributeType.TENSOR:
        return _content(attribute.as_tensor().numpy())
    value = attribute.value
    return tuple(value) if isinstance(value, list | tuple) else value


def _content(array: Array) -> Hashable:
    return array.shape, array.dtype.str, array.tobytes()


class ShareEqualNodes(Pass):
    """Nodes with the same op, inputs and attributes compute the same: the first one serves all."""

    claim = "a node that repeats an earlier one (op, inputs, attributes) is dropped for it"

    def call(self, model: ir.Model) -> PassResult:
        """Number the expressions in topological order; later equals forward to the first."""
        edit = Editor(model.graph)
        first: dict[Hashable, ir.Node] = {}
        modified = False
        for node in list(model.graph):
            if canon.is_opaque(node) or not _comparable(node):
                continue
            earlier = first.setdefault(_key(node), node)
            if earlier is not node:
                for old, new in zip(node.outputs, earlier.outputs, strict=True):
                    edit.forward(old, new)
                modified = True
        return PassResult(model, modified)


def _comparable(node: ir.Node) -> bool:
    graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    return not node.op_type.startswith("Random") and all(a.type not in graphs for a in node.attributes.values())


def _input_key(value: ir.Value | None) -> Hashable:
    array: Array | None = canon.const(value)
    if array is not None and array.nbytes <= _SHARED_BYTES:
        return _content(array)
    return id(value)


def _key(node: ir.Node) -> tuple[Any, ...]:
    return (
        node.op_identifier(),
        len(node.outputs),
        tuple(_input_key(value) for value in node.inputs),
        tuple(sorted((name, _attribute_key(a)) for name, a in node.attributes.items())),
    )
