"""Normalisations."""

from __future__ import annotations

import numpy as np

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "BatchNormalization")
def batch_normalization(op: Op, net: Net) -> Value:
    """A factor and a summand per channel, in float64 as onnxruntime folds them."""
    scale, shift, mean, variance = (op.need_const(i, "its statistics").astype(np.float64) for i in range(1, 5))
    factor = scale / np.sqrt(variance + op.attribute("epsilon"))
    x = op.value()
    per_channel = (-1, *[1] * (x.rank - 2))
    y = net("multiply", x, net.const(factor.astype(np.float32).reshape(per_channel)))
    return net("add", y, net.const((shift - mean * factor).astype(np.float32).reshape(per_channel)))
