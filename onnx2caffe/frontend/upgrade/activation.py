"""Activations and the softmax family."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import inlined, unchanged, upgrades

__all__ = ["over_trailing_axes"]

unchanged("Relu", 6, 13, 14)
unchanged("Sigmoid", 6, 13)
unchanged("Tanh", 6, 13)
unchanged("LeakyRelu", 6, 16)
for _op in ("Elu", "HardSigmoid", "Selu"):
    unchanged(_op, 6, 22)
for _op in ("Softplus", "Softsign"):
    unchanged(_op, 1, 22)
unchanged("ThresholdedRelu", 10, 22)
unchanged("HardSwish", 14, 22)
unchanged("Mish", 18, 22)
unchanged("Gelu", 20)
unchanged("Celu", 12, 28)
unchanged("Shrink", 9)
unchanged("PRelu", 7, 9, 16)
inlined("SwiGLU", 28)


@upgrades("Swish", 24)
def swish(node: Reader, build: Builder) -> ir.Value:
    """X * sigmoid(alpha * x); opset 23 has no op for it."""
    x, alpha = node.input(), node.number("alpha", 1.0)
    inner = x if alpha == 1.0 else build.op("Mul", x, build.like(alpha, x, "alpha"))
    return build.op("Mul", x, build.op("Sigmoid", inner))


@upgrades("Softmax", 1, 11)
@upgrades("LogSoftmax", 1, 11)
@upgrades("Hardmax", 1, 11)
def softmax_flattened(node: Reader, build: Builder) -> ir.Value:
    """Up to opset 12: over all of the axes from `axis` on, as one."""
    axis, rank = node.integer("axis", 1), len(node.shape())
    return over_trailing_axes(build, node.op, node.input(), axis if axis == rank else node.positive(axis, rank))


def over_trailing_axes(build: Builder, op: str, x: ir.Value, axis: int) -> ir.Value:
    """Softmax or one of its kin over all of the axes from `axis` on, as one."""
    shape = canon.shape(x)
    if axis < len(shape) and math.prod(shape[axis + 1 :]) == 1:
        return build.op(op, x, axis=axis)
    rows = build.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
    return build.reshape(build.op(op, rows, axis=1), shape)


@upgrades("Softmax", 13)
@upgrades("LogSoftmax", 13)
@upgrades("Hardmax", 13)
def softmax(node: Reader, build: Builder) -> ir.Value:
    """Over one axis."""
    return build.op(node.op, node.input(), axis=node.axis(-1))
