"""Softmax and its like, over one axis."""

from __future__ import annotations

import numpy as np

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_SAME = {"LogSoftmax": "nn.log_softmax", "Softmax": "nn.softmax"}


@emits(BOTH, *_SAME)
def _same(op: Op, net: Net) -> Value:
    """The operator with ONNX's meaning."""
    return net(_SAME[op.type], op.value(), axis=op.attribute("axis"))


@emits(BOTH, "Hardmax")
def hardmax(op: Op, net: Net) -> Value:
    """1 at the first of the greatest elements."""
    x, axis = op.value(), op.attribute("axis")
    places = np.arange(x.shape[axis]).reshape([-1, *[1] * (x.rank - 1 - axis)])
    first = net.arg_max(x, axis, keepdims=True)
    return net.cast(net("equal", net.const(places), first, dtype="bool"), x.dtype)
