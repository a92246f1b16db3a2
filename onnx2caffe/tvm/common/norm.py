"""Normalisations."""

from __future__ import annotations

import numpy as np

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "BatchNormalization")
def batch_normalization(op: Op, net: Net) -> Value:
    """A factor and a summand per channel; constant statistics are folded while converting."""
    x, epsilon = op.value(), op.attribute("epsilon")
    given = [op.const(i) for i in range(1, 5)]
    if all(array is not None for array in given):
        scale, shift, mean, variance = (np.asarray(array, np.float64) for array in given)
        factor = scale / np.sqrt(variance + epsilon)
        factors, summands = (net.const(a.astype(np.float32)) for a in (factor, shift - mean * factor))
    else:
        scale_, shift_, mean_, variance_ = (op.value(i) for i in range(1, 5))
        deviation = net("sqrt", net("add", variance_, net.like(epsilon, variance_)))
        factors = net("divide", scale_, deviation)
        summands = net("subtract", shift_, net("multiply", mean_, factors))
    per_channel = (x.shape[1], *[1] * (x.rank - 2))
    y = net("multiply", x, net.reshape(factors, per_channel))
    return net("add", y, net.reshape(summands, per_channel))
