"""Trigonometric and hyperbolic functions."""

from __future__ import annotations

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan")
def _same(op: Op, net: Net) -> Value:
    """The operator of that name."""
    return net(op.type.lower(), op.value())
