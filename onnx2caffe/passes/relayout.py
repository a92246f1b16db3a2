"""How an op that works axis by axis looks in front of a Transpose instead of behind it.

With v = Transpose(u, perm), axis i of v is axis perm[i] of u. An op in this table computes Transpose(op′(u), perm) when
given Transpose(u, perm): `relaid` gives op′. A MatMul of the last axis with a constant matrix is a 1×1 Conv where that
axis is the channels of u (recipes 6.6). A reduction that drops its axes gives the same result from u when the axes it
leaves keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.decompose.transpose import invert
from onnx2caffe.passes.editor import Array
from onnx2caffe.passes.match import ints, source

__all__ = ["Perm", "Relaid", "relaid"]

Perm = tuple[int, ...]


@dataclass(frozen=True)
class Relaid:
    """A node in the other layout: op, changed constant inputs, attributes; computed inputs come in that layout."""

    op: str
    constants: dict[int, Array] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    moves_outputs: bool = True
    """Whether the outputs come in the other layout too, or as they were."""


def relaid(node: ir.Node, perm: Perm) -> Relaid | None:
    """`node` in the layout before the Transpose, or None if it is not in the table or its attributes forbid it."""
    rule = _RULES.get(node.op_type)
    if rule is None or node.domain or canon.is_opaque(node) or len(canon.shape(node.outputs[0])) > len(perm):
        return None
    carried = [value for value in node.inputs if value is not None and canon.const(value) is None]
    if not carried or any(len(canon.shape(value)) != len(perm) for value in carried):
        return None
    return rule(node, perm)


def _attributes(node: ir.Node, **changed: Any) -> dict[str, Any]:
    return {**node.attributes, **changed}


def _elementwise(node: ir.Node, perm: Perm) -> Relaid | None:
    constants: dict[int, Array] = {}
    for index, value in enumerate(node.inputs):
        array = canon.const(value)
        if array is None or array.size == 1:
            continue
        if array.ndim > len(perm):
            return None
        padded = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
        constants[index] = padded.transpose(invert(perm))
    return Relaid(node.op_type, constants, _attributes(node))


def _axis(node: ir.Node, perm: Perm) -> Relaid | None:
    if canon.attribute(node, "keepdims", 1) != 1:
        return None
    return Relaid(node.op_type, {}, _attributes(node, axis=perm[int(canon.attribute(node, "axis"))]))


def _concat(node: ir.Node, perm: Perm) -> Relaid | None:
    arrays = {i: array for i, value in enumerate(node.inputs) if (array := canon.const(value)) is not None}
    constants = {i: array.transpose(invert(perm)) for i, array in arrays.items()}
    return Relaid("Concat", constants, _attributes(node, axis=perm[int(canon.attribute(node, "axis"))]))


def _gather(node: ir.Node, perm: Perm) -> Relaid | None:
    indices = canon.const(source(node, 1))
    return None if indices is None or indices.ndim != 1 else _axis(node, perm)


def _reduce(node: ir.Node, perm: Perm) -> Relaid | None:
    axes = ints(node, 1)
    if axes is None:
        return None
    moved = np.array(sorted(perm[axis] for axis in axes), dtype=np.int64)
    left = [perm[axis] for axis in range(len(perm)) if axis not in axes]
    keep = bool(canon.attribute(node, "keepdims"))
    if not keep and left != sorted(left):
        return None
    return Relaid(node.op_type, {1: moved}, _attributes(node), moves_outputs=keep)


def _per_axis(index: int, groups: int = 1) -> Callable[[ir.Node, Perm], Relaid | None]:
    """Ops with a constant input that lists `groups` numbers per axis."""

    def rule(node: ir.Node, perm: Perm) -> Relaid | None:
        numbers = canon.const(source(node, index))
        if numbers is None or numbers.size != groups * len(perm):
            return None
        listed = numbers.reshape(groups, len(perm))[:, list(invert(perm))].ravel()
        return Relaid(node.op_type, {index: listed}, _attributes(node))

    return rule


def _slice(node: ir.Node, perm: Perm) -> Relaid | None:
    axes = ints(node, 3)
    if axes is None:
        return None
    return Relaid("Slice", {3: np.array([perm[axis] for axis in axes], dtype=np.int64)}, _attributes(node))


def _resize(node: ir.Node, perm: Perm) -> Relaid | None:
    if node.inputs[1] is not None:
        return None
    found = _per_axis(2 if node.inputs[2] is not None else 3)(node, perm)
    value, output = source(node), node.outputs[0]
    changed = [perm[i] for i, (a, b) in enumerate(zip(canon.shape(value), canon.shape(output), strict=True)) if a != b]
    # onnxruntime and every exit know resizing of trailing axes only.
    return found if all(axis >= 2 for axis in changed) else None


def _matmul(node: ir.Node, perm: Perm) -> Relaid | None:
    weight = canon.const(source(node, 1))
    if weight is None or weight.ndim != 2 or perm[0] != 0 or perm[-1] != 1 or len(perm) < 3:
        return None
    taps = (1,) * (len(perm) - 2)
    kernel = np.ascontiguousarray(weight.T).reshape(*weight.T.shape, *taps)
    attributes = {
        "auto_pad": "NOTSET",
        "dilations": taps,
        "group": 1,
        "kernel_shape": taps,
        "pads": (0, 0) * len(taps),
        "strides": taps,
    }
    return Relaid("Conv", {1: kernel}, attributes)


def _named(rule: Callable[[ir.Node, Perm], Relaid | None], names: Sequence[str]) -> dict[str, Any]:
    return dict.fromkeys(names, rule)


_RULES: dict[str, Callable[[ir.Node, Perm], Relaid | None]] = {
    **_named(
        _elementwise,
        [
            "Abs", "Add", "And", "Cast", "Ceil", "Celu", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor",
            "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "LeakyRelu", "Less", "LessOrEqual", "Log",
            "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu",
            "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tanh",
            "ThresholdedRelu", "Where", "Xor",
        ],
    ),
    **_named(_axis, ["ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "LpNormalization", "Softmax", "Split"]),
    **_named(
        _reduce,
        [
            "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
            "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ],
    ),
    "Concat": _concat,
    "Expand": _per_axis(1),
    "Gather": _gather,
    "MatMul": _matmul,
    "Pad": _per_axis(1, groups=2),
    "Resize": _resize,
    "Slice": _slice,
    "Tile": _per_axis(1),
}  # fmt: skip
