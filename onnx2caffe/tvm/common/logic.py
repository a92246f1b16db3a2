"""Comparison and logic."""

from __future__ import annotations

import numpy as np

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_SAME = {
    "And": "logical_and",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "IsNaN": "isnan",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Not": "logical_not",
    "Or": "logical_or",
    "Xor": "logical_xor",
}


@emits(BOTH, *_SAME)
def _same(op: Op, net: Net) -> Value:
    """The operator with ONNX's meaning."""
    return net(_SAME[op.type], *op.values, dtype="bool")


@emits(BOTH, "IsInf")
def is_inf(op: Op, net: Net) -> Value:
    """What lies beyond the largest finite number, on the sides that are asked for."""
    x = op.value()
    largest = float(np.finfo(x.dtype).max)
    sides = [
        net(fn, x, net.like(bound, x), dtype="bool")
        for side, fn, bound in (("positive", "greater", largest), ("negative", "less", -largest))
        if op.attribute(f"detect_{side}")
    ]
    if not sides:
        return net.broadcast(net.const(np.array(False)), x.shape)
    return net("logical_or", *sides) if len(sides) == 2 else sides[0]
