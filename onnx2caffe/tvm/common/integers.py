"""Bits, and what is left by a division."""

from __future__ import annotations

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_SAME = {
    "BitwiseAnd": "bitwise_and",
    "BitwiseNot": "bitwise_not",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
}


@emits(BOTH, *_SAME)
def _same(op: Op, net: Net) -> Value:
    """The operator with ONNX's meaning."""
    return net(_SAME[op.type], *op.values)


@emits(BOTH, "BitShift")
def bit_shift(op: Op, net: Net) -> Value:
    """To the left or to the right; a shift by all bits or more, which machines do each in their own way, leaves 0."""
    x, count = op.value(0), op.value(1)
    bits = np.dtype(x.dtype).itemsize * 8
    fn = "left_shift" if op.attribute("direction") == "LEFT" else "right_shift"
    if count.array is not None and (count.array < bits).all():
        return net(fn, x, count)
    shifted = net(fn, x, net("minimum", count, net.like(bits - 1, count)))
    inside = net("less", count, net.like(bits, count), dtype="bool")
    return net("where", inside, shifted, net.like(0, x), dtype=x.dtype)


@emits(BOTH, "Mod")
def mod(op: Op, net: Net) -> Value:
    """The remainder of a division: with `fmod` the dividend's sign, else the divisor's (integers only)."""
    x, divisor = op.value(0), op.value(1)
    if divisor.array is not None and x.dtype != "float32" and not divisor.array.all():
        raise Refused("a remainder of an integer division by zero")
    rest = net("mod", x, divisor)
    if op.attribute("fmod") or np.dtype(x.dtype).kind == "u":
        return rest
    nothing = net.like(0, x)
    opposed = net("less", net("multiply", net("sign", rest), net("sign", divisor)), nothing, dtype="bool")
    return net("where", opposed, net("add", rest, divisor), rest, dtype=x.dtype)
