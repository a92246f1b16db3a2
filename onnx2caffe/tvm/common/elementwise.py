"""Arithmetic and activations that are one operator of the same name in both dialects."""

from __future__ import annotations

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_SAME = {
    "Add": "add",
    "Mul": "multiply",
    "Relu": "nn.relu",
    "Sigmoid": "sigmoid",
    "Sub": "subtract",
    "Tanh": "tanh",
}


@emits(BOTH, *_SAME)
def _same(op: Op, net: Net) -> Value:
    """The operator with ONNX's meaning."""
    return net(_SAME[op.type], *op.values)


@emits(BOTH, "Div")
def divide(op: Op, net: Net) -> Value:
    """Integers are divided towards zero in both worlds; by a constant 0 in neither."""
    divisor = op.const(1)
    if divisor is not None and divisor.dtype.kind != "f" and not divisor.all():
        raise Refused("integer division by zero")
    return net("divide", *op.values)
