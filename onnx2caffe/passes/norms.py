"""Normalisations that exporters spell out become the ONNX op again.

With m = mean(x) over some axes and d = x − m, both with kept dimensions:
d/√(mean(d²) + ε) is LayerNormalization over trailing axes, InstanceNormalization over all spatial axes;
x/√(mean(x²) + ε) is RMSNormalization over trailing axes;
x/‖x‖ along one axis is LpNormalization. A lower bound on the norm is dropped when it is ≤ 1e-10: the quotient is the
same for every vector at least that long, and 0 for the zero vector either way (recipes 9.12); bounds above that, and ε
added to the norm, change numbers and stay;
InstanceNormalization of (N, G, …) between Reshapes from and to (N, C, …) is GroupNormalization (recipes 9.6).
A Mul and an Add by constants behind go into scale and bias: s·a, b·a + c.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.affine import Affine, arithmetic
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.expressions import linear_form
from onnx2caffe.passes.match import (
    between,
    ints,
    is_float,
    maker,
    narrow,
    only_reader,
    operands,
    scalar,
    source,
    trailing,
)

__all__ = ["FoldAffineIntoNorm", "RaiseGroupNorm", "RaiseNorm", "SimplifyRoots"]

_NEGLIGIBLE = 1e-10


def _square(value: ir.Value) -> ir.Value | None:
    """The x of value = x²."""
    node = maker(value, "Mul", "Pow")
    if node is None:
        return None
    x, other = source(node, 0), source(node, 1)
    return x if (x is other if node.op_type == "Mul" else scalar(other) == 2) else None


def _inverse_root(value: ir.Value) -> ir.Value | None:
    """The v of value = 1/√v."""
    node = maker(value, "Div", "Pow", "Reciprocal", "Sqrt")
    if node is None:
        return None
    if node.op_type == "Pow":
        return source(node) if scalar(source(node, 1)) == -0.5 else None
    if node.op_type == "Sqrt":
        return _reciprocal(source(node))
    inner = _reciprocal(value)
    root = maker(inner, "Sqrt")
    return source(root) if root is not None else None


def _reciprocal(value: ir.Value) -> ir.Value | None:
    """The v of value = 1/v."""
    node = maker(value, "Div", "Pow", "Reciprocal")
    if node is None:
        return None
    if node.op_type == "Reciprocal":
        return source(node)
    if node.op_type == "Div":
        return source(node, 1) if scalar(source(node, 0)) == 1 else None
    return source(node) if scalar(source(node, 1)) == -1 else None


def _quotient(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """(a, b) when node = a/b, written as division or as multiplication by the reciprocal."""
    if node.op_type == "Div":
        return source(node, 0), source(node, 1)
    for a, other in operands(node):
        b = _reciprocal(other)
        if b is not None:
            return a, b
    return None


def _over_root(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """(a, v) when node = a/√v."""
    if node.op_type == "Div":
        root = maker(source(node, 1), "Sqrt")
        return None if root is None else (source(node, 0), source(root))
    for a, other in operands(node):
        v = _inverse_root(other)
        if v is not None:
            return a, v
    return None


def _reduction(value: ir.Value, op: str) -> tuple[ir.Value, tuple[int, ...]] | None:
    """(x, axes) when value is this reduction of x with kept dimensions."""
    node = maker(value, op)
    axes = ints(node, 1) if node is not None else None
    if node is None or axes is None or not canon.attribute(node, "keepdims"):
        return None
    return source(node), axes


def _mean(value: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
    pooled = maker(value, "GlobalAveragePool")
    if pooled is not None:
        return source(pooled), tuple(range(2, len(canon.shape(value))))
    return _reduction(value, "ReduceMean")


def _sum_of_squares(value: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
    found = _reduction(value, "ReduceSumSquare")
    if found is not None:
        return found
    found = _reduction(value, "ReduceSum")
    squared = _square(found[0]) if found is not None else None
    return None if found is None or squared is None else (squared, found[1])


class RaiseNorm(NodePass):
    """LayerNormalization, InstanceNormalization, RMSNormalization and LpNormalization from their definitions."""

    claim = "a normalisation written out by its definition is the ONNX op (scale 1, bias 0)"
    ops = frozenset({"Div", "Mul"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Match the quotient that ends in `node`."""
        if not is_float(node.outputs[0]):
            return False
        return self._statistics(node, edit) or self._length(node, edit)

    def _statistics(self, node: ir.Node, edit: Editor) -> bool:
        found = _over_root(node)
        if found is None:
            return False
        centred, variance = found
        mean, factor, epsilon = linear_form(variance)
        squares = _mean(mean)
        if squares is None or factor != 1 or epsilon < 0 or _square(squares[0]) is not centred:
            return False
        axes, shape = squares[1], canon.shape(centred)
        x = _centred(centred, axes)
        if x is not None and len(shape) > 3 and axes == tuple(range(2, len(shape))):
            ones, zeros = (edit.constant(make(shape[1], np.float32), node.outputs[0], what) for make, what in _UNIT)
            edit.replace(node, "InstanceNormalization", [x, ones, zeros], {"epsilon": epsilon}, merged=between(node, x))
            return True
        if axes != tuple(range(axes[0], len(shape))):
            return False
        scale = edit.constant(np.ones(shape[axes[0] :], np.float32), node.outputs[0], "scale")
        attributes = {"axis": axes[0], "epsilon": epsilon, "stash_type": 1}
        op = "RMSNormalization" if x is None else "LayerNormalization"
        root = centred if x is None else x
        edit.replace(node, op, [root, scale], attributes, merged=between(node, root))
        return True

    def _length(self, node: ir.Node, edit: Editor) -> bool:
        found = _over_length(node)
        if found is None:
            return False
        x, axis, p = found
        edit.replace(node, "LpNormalization", [x], {"axis": axis, "p": p}, merged=between(node, x))
        return True


_UNIT = ((np.ones, "scale"), (np.zeros, "bias"))


def _centred(value: ir.Value, axes: tuple[int, ...]) -> ir.Value | None:
    """The x of value = x − mean(x) over these axes."""
    node = maker(value, "Sub")
    mean = _mean(source(node, 1)) if node is not None else None
    return source(node) if node is not None and mean == (source(node), axes) else None


def _over_length(node: ir.Node) -> tuple[ir.Value, int, int] | None:
    """(x, axis, p) when node = x/‖x‖ₚ along one axis."""
    quotient, rooted = _quotient(node), _over_root(node)
    if quotient is not None:
        x, length = quotient[0], _unbounded(quotient[1], _NEGLIGIBLE)
        root = maker(length, "Sqrt")
        squares = None if root is None else _sum_of_squares(_unbounded(source(root), _NEGLIGIBLE**2))
        candidates = [(_reduction(length, "ReduceL1"), 1), (_reduction(length, "ReduceL2"), 2), (squares, 2)]
    elif rooted is not None:
        x, candidates = rooted[0], [(_sum_of_squares(_unbounded(rooted[1], _NEGLIGIBLE**2)), 2)]
    else:
        return None
    for found, p in candidates:
        if found is not None and found[0] is x and len(found[1]) == 1:
            return x, found[1][0], p
    return None


def _unbounded(value: ir.Value, negligible: float) -> ir.Value:
    """The value under a lower bound too small to matter."""
    node = maker(value, "Clip")
    if node is None or len(node.inputs) < 2 or (len(node.inputs) > 2 and node.inputs[2] is not None):
        return value
    bound = scalar(node.inputs[1])
    return source(node) if bound is not None and 0 <= bound <= negligible else value


class RaiseGroupNorm(NodePass):
    """InstanceNormalization over channels folded into groups becomes GroupNormalization."""

    claim = "statistics of (N, G, rest) are the statistics of groups of C/G channels"
    ops = frozenset({"Reshape"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Match Reshape, InstanceNormalization, Reshape back."""
        norm = maker(source(node), "InstanceNormalization")
        folded = maker(source(norm), "Reshape") if norm is not None else None
        if norm is None or folded is None or only_reader(norm.outputs[0]) is None:
            return False
        x = source(folded)
        shape, grouped = canon.shape(x), canon.shape(source(norm))
        scale, bias = (canon.const(value) for value in norm.inputs[1:3])
        if shape != canon.shape(node.outputs[0]) or len(shape) < 3 or scale is None or bias is None:
            return False
        groups, rest = divmod(shape[1], grouped[1])
        if shape[0] != grouped[0] or rest:
            return False
        named = ((scale, "scale"), (bias, "bias"))
        inputs = [x, *(edit.constant(np.repeat(array, groups), node.outputs[0], what) for array, what in named)]
        attributes = {"epsilon": canon.attribute(norm, "epsilon"), "num_groups": grouped[1], "stash_type": 1}
        edit.replace(node, "GroupNormalization", inputs, attributes, merged=[folded, norm])
        return True


_NORMS = ("BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization", "RMSNormalization")


class FoldAffineIntoNorm(NodePass):
    """Mul and Add by constants behind a normalisation go into its scale and bias."""

    claim = "a·(s·n + b) + c = (a·s)·n + (a·b + c)"
    ops: ClassVar[frozenset[str]] = frozenset({"Add", "Mul", "Neg", "Sub"})

    def __init__(self, *, keep_bn: bool = False) -> None:
        super().__init__()
        self.norms = tuple(op for op in _NORMS if not (keep_bn and op == "BatchNormalization"))

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Fold when this node alone reads the normalisation."""
        affine = arithmetic(node)
        norm = maker(affine.value, *self.norms) if affine is not None else None
        if affine is None or norm is None or only_reader(affine.value) is None or norm.outputs[1:]:
            return False
        scale = canon.const(source(norm, 1))
        old = canon.const(norm.inputs[2]) if len(norm.inputs) > 2 else np.zeros(1)
        parameters = _parameters(norm, affine)
        if scale is None or old is None or parameters is None:
            return False
        factor, shift = parameters
        bias = old.astype(np.float64) * factor + shift
        inputs = [source(norm), edit.constant(narrow(scale * factor), node.outputs[0], "scale"), *norm.inputs[2:3]]
        if norm.op_type == "RMSNormalization" and np.any(bias):
            return False
        if norm.op_type != "RMSNormalization" and (np.any(bias) or len(norm.inputs) > 2):
            inputs[2:] = [edit.constant(narrow(np.broadcast_to(bias, scale.shape)), node.outputs[0], "bias")]
        edit.replace(node, norm.op_type, [*inputs, *norm.inputs[3:]], norm.attributes, merged=[norm])
        return True


def _parameters(norm: ir.Node, affine: Affine) -> tuple[Array, Array] | None:
    """Factor and shift in the shape of the norm's scale; None when they vary over what it does not."""
    shape = canon.shape(norm.outputs[0])
    if norm.op_type not in ("LayerNormalization", "RMSNormalization"):
        return affine.per_channel(1)
    shape = shape[int(canon.attribute(norm, "axis")) :]
    parts = [trailing(array, shape) for array in (affine.factor, affine.shift)]
    return None if parts[0] is None or parts[1] is None else (parts[0], parts[1])


class SimplifyRoots(NodePass):
    """a/√v becomes a·v^(−½), and so does a·(1/√v): one Pow instead of two nodes."""

    claim = "1/√v = v^(−½)"
    ops = frozenset({"Div", "Reciprocal", "Sqrt"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Respell when nobody else reads the root (or the reciprocal) in between."""
        output, inner = node.outputs[0], source(node, len(node.inputs) - 1)
        if only_reader(inner) is not node:
            return False
        exponent = np.array(-0.5, dtype=np.float32)
        v = _inverse_root(output)
        if v is not None:
            edit.replace(node, "Pow", [v, edit.constant(exponent, output, "exponent")])
            return True
        quotient = _over_root(node) if node.op_type == "Div" else None
        if quotient is None:
            return False
        numerator, v = quotient
        inputs = [v, edit.constant(exponent, output, "exponent")]
        power = edit.add(node, "Pow", inputs, {}, shape=canon.shape(v), what="inverse_root")
        edit.replace(node, "Mul", [numerator, power])
        return True
