"""What is done to inputs, for targets that compute in 8 bits: layout and mean come first, the rest moves behind them.

The layout and the mean are then the CPU's or the camera's: in the bias of the first convolution a mean costs accuracy
(nnie §18.7). A scale and the order of channels in its weights cost none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.affine import arithmetic
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.channels import channel_order
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.match import constant_operand, is_float, maker, narrow, only_reader, source

__all__ = ["InputsFirst", "is_input"]

_MOVERS = ("Cast", "Gather", "Reshape", "Transpose")
_ARITHMETIC = ("Add", "Mul")


def is_input(value: ir.Value) -> bool:
    """Whether a value is an input of the model, or one that was only moved and cast."""
    while (node := maker(value, *_MOVERS)) is not None and node.inputs[0] is not None:
        value = node.inputs[0]
    return value.is_graph_input()


def _is_prepared_input(value: ir.Value) -> bool:
    """Whether a value is an input that was only moved, cast, shifted and scaled."""
    while (node := maker(value, *_MOVERS, *_ARITHMETIC)) is not None:
        found = constant_operand(node) if node.op_type in _ARITHMETIC else (source(node), None)
        if found is None:
            return False
        value = found[0]
    return value.is_graph_input()


class InputsFirst(NodePass):
    """On an input a Transpose comes first, then a shift, then the order of channels, then a factor."""

    claim = "a·x + c = a·(x + c/a), Gather(x, p) + c = Gather(x + c[p⁻¹], p), Transpose(a·x + c) = aᵀ·Transpose(x) + cᵀ"
    ops = frozenset({"Add", "Cast", "Gather", "Slice", "Transpose"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Swap the node with the one in front of it, where that one comes later; a reversal is an order."""
        if node.op_type == "Slice":
            return _raise_reversal(node, edit)
        found = constant_operand(node) if node.op_type == "Add" else (source(node), None)
        inner = None if found is None else maker(found[0], "Add", "Gather", "Mul")
        swap = None if inner is None else _SWAPS.get((inner.op_type, node.op_type))
        if inner is None or swap is None or only_reader(inner.outputs[0]) is None:
            return False
        return _is_prepared_input(inner.outputs[0]) and swap(inner, node, edit)


def _factor_behind_shift(inner: ir.Node, node: ir.Node, edit: Editor) -> bool:
    """Where 1/a is a number everywhere."""
    outer, scale = arithmetic(node), arithmetic(inner)
    if outer is None or scale is None or np.any(scale.factor == 0):
        return False
    shift = outer.shift / scale.factor
    if not np.all(np.isfinite(narrow(shift))) or shift.ndim > len(canon.shape(scale.value)):
        return False
    moved = _shifted(scale.value, shift, inner, node, edit)
    edit.replace(node, "Mul", [moved, _constant(scale.factor, node, edit)], merged=[inner])
    return True


def _order_behind_shift(inner: ir.Node, node: ir.Node, edit: Editor) -> bool:
    order, outer = channel_order(inner), arithmetic(node)
    if order is None or outer is None:
        return False
    value = source(inner)
    shift = _picked(_full_rank(outer.shift, value), np.argsort(order))
    moved = _shifted(value, shift, inner, node, edit)
    edit.replace(node, "Gather", [moved, source(inner, 1)], {"axis": 1}, merged=[inner])
    return True


def _factor_behind_order(inner: ir.Node, node: ir.Node, edit: Editor) -> bool:
    order, scale = channel_order(node), arithmetic(inner)
    if order is None or scale is None:
        return False
    shape = canon.shape(scale.value)
    moved = edit.add(node, "Gather", [scale.value, source(node, 1)], {"axis": 1}, shape=shape, what="picked")
    factor = _picked(_full_rank(scale.factor, scale.value), order)
    edit.replace(node, "Mul", [moved, _constant(factor, node, edit)], merged=[inner])
    return True


def _arithmetic_behind_layout(inner: ir.Node, node: ir.Node, edit: Editor) -> bool:
    found = constant_operand(inner)
    if found is None or not is_float(inner.outputs[0]):
        return False
    value, array = found
    perm = canon.attribute(node, "perm")
    constant = _full_rank(array, value).transpose(perm)
    moved = _laid_out(value, node, edit)
    edit.replace(node, inner.op_type, [moved, _constant(constant, node, edit)], merged=[inner])
    return True


def _order_behind_layout(inner: ir.Node, node: ir.Node, edit: Editor) -> bool:
    indices = source(inner, 1)
    if len(canon.shape(indices)) != 1 or canon.shape(inner.outputs[0]) != canon.shape(source(inner)):
        return False
    perm = list(canon.attribute(node, "perm"))
    moved = _laid_out(source(inner), node, edit)
    axis = perm.index(canon.attribute(inner, "axis"))
    edit.replace(node, "Gather", [moved, indices], {"axis": axis}, merged=[inner])
    return True


def _order_behind_cast(inner: ir.Node, node: ir.Node, edit: Editor) -> bool:
    if canon.shape(inner.outputs[0]) != canon.shape(source(inner)):
        return False
    (moved,) = edit.copy(node, "Cast", [source(inner)], node.attributes, shapes=[canon.shape(node.outputs[0])])
    edit.replace(node, "Gather", [moved, source(inner, 1)], {"axis": canon.attribute(inner, "axis")}, merged=[inner])
    return True


_Swap = Callable[[ir.Node, ir.Node, Editor], bool]
_SWAPS: dict[tuple[str, str], _Swap] = {
    ("Mul", "Add"): _factor_behind_shift,
    ("Gather", "Add"): _order_behind_shift,
    ("Mul", "Gather"): _factor_behind_order,
    ("Add", "Transpose"): _arithmetic_behind_layout,
    ("Mul", "Transpose"): _arithmetic_behind_layout,
    ("Gather", "Transpose"): _order_behind_layout,
    ("Gather", "Cast"): _order_behind_cast,
}
"""By the op in front and the one behind it."""


def _raise_reversal(node: ir.Node, edit: Editor) -> bool:
    """A Slice that reverses one whole axis of an input is a Gather."""
    value = source(node)
    bounds = [canon.const(source(node, index)) for index in range(1, len(node.inputs))]
    if len(bounds) < 4 or any(array is None or array.size != 1 for array in bounds):
        return False
    axis, step = (int(array.ravel()[0]) for array in bounds[2:] if array is not None)
    shape = canon.shape(value)
    if step != -1 or canon.shape(node.outputs[0]) != shape or not _is_prepared_input(value):
        return False
    indices = edit.constant(np.arange(shape[axis])[::-1].copy(), node.outputs[0], "order")
    edit.replace(node, "Gather", [value, indices], {"axis": axis})
    return True


def _full_rank(array: Array, like: ir.Value) -> Array:
    return array.reshape((1,) * (len(canon.shape(like)) - array.ndim) + array.shape)


def _picked(array: Array, order: Array) -> Array:
    return np.take(array, order, axis=1) if array.shape[1] > 1 else array


def _constant(array: Array, node: ir.Node, edit: Editor) -> ir.Value:
    return edit.constant(narrow(array), node.outputs[0], "constant")


def _shifted(value: ir.Value, shift: Array, inner: ir.Node, node: ir.Node, edit: Editor) -> ir.Value:
    constant = edit.constant(narrow(shift), node.outputs[0], "mean")
    return edit.add(node, "Add", [value, constant], {}, shape=canon.shape(value), what="centred", merged=[inner])


def _laid_out(value: ir.Value, node: ir.Node, edit: Editor) -> ir.Value:
    attributes = {"perm": list(canon.attribute(node, "perm"))}
    return edit.add(node, "Transpose", [value], attributes, shape=canon.shape(node.outputs[0]), what="turned")
