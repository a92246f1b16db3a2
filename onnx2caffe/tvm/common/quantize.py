"""Numbers as integers and back."""

from __future__ import annotations

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "QuantizeLinear")
def quantize(op: Op, net: Net) -> Value:
    """The quotient x / scale rounded half to even, plus the zero point, kept within the type."""
    x, kind = op.value(), _integer(op.types[0].dtype)
    scale = _parameter(op, net, 1)
    y = net.round_half_even(net("divide", x, scale))
    if op.has(2):
        y = net("add", y, net.cast(_parameter(op, net, 2), "float32"))
    return net.cast(net("clip", y, float(kind.min), float(kind.max)), op.types[0].dtype)


@emits(BOTH, "DequantizeLinear")
def dequantize(op: Op, net: Net) -> Value:
    """(q - zero point) · scale; the difference is exact."""
    x = op.value()
    _integer(x.dtype)
    y = net.cast(x, "int32")
    if op.has(2):
        y = net("subtract", y, net.cast(_parameter(op, net, 2), "int32"))
    return net("multiply", net.cast(y, "float32"), _parameter(op, net, 1))


def _integer(dtype: str) -> np.iinfo:
    if dtype not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise Refused(f"TVM has no {dtype}")
    return np.iinfo(dtype)


def _parameter(op: Op, net: Net, index: int) -> Value:
    """Scale or zero point against the data: one number, one per position of an axis, or one per block."""
    value, axis, block, rank = op.value(index), op.attribute("axis"), op.attribute("block_size"), len(op.shape())
    if block:
        return net.take(value, net.const(np.arange(op.shape()[axis]) // block), axis)
    size = int(np.prod(value.shape))
    return net.reshape(value, () if size == 1 else [size if a == axis else 1 for a in range(rank)])
