"""Normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onnx2caffe.tvm.common.reduce import mean
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


@emits(BOTH, "InstanceNormalization")
def instance_normalization(op: Op, net: Net) -> Value:
    """Statistics of every item and channel."""
    x = op.value()
    y = _standardised(net, x, range(2, x.rank), op.attribute("epsilon"))
    return _per_channel(op, net, y)


@emits(BOTH, "GroupNormalization")
def group_normalization(op: Op, net: Net) -> Value:
    """Statistics of every item and group of channels."""
    x, groups = op.value(), op.attribute("num_groups")
    rows = net.reshape(x, (x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    y = net.reshape(_standardised(net, rows, [2], op.attribute("epsilon")), x.shape)
    return _per_channel(op, net, y)


@emits(BOTH, "LayerNormalization")
def layer_normalization(op: Op, net: Net) -> list[Value]:
    """Statistics over the axes from `axis` on, which are outputs too."""
    x = op.value()
    centre = mean(net, x, range(op.attribute("axis"), x.rank))
    centred = net("subtract", x, centre)
    scale = _inverse_root(net, centred, range(op.attribute("axis"), x.rank), op.attribute("epsilon"))
    y = net("multiply", net("multiply", centred, scale), op.value(1))
    y = net("add", y, op.value(2)) if op.has(2) else y
    return [y, centre, scale][: len(op.outputs)]


@emits(BOTH, "RMSNormalization")
def rms_normalization(op: Op, net: Net) -> Value:
    """Divided by the root of the mean of squares over the axes from `axis` on."""
    x = op.value()
    scale = _inverse_root(net, x, range(op.attribute("axis"), x.rank), op.attribute("epsilon"))
    return net("multiply", net("multiply", x, scale), op.value(1))


@emits(BOTH, "MeanVarianceNormalization")
def mean_variance_normalization(op: Op, net: Net) -> Value:
    """ONNX adds 1e-9 to the deviation, not to the variance."""
    x, axes = op.value(), op.attribute("axes")
    centred = net("subtract", x, mean(net, x, axes))
    deviation = net("sqrt", mean(net, net("multiply", centred, centred), axes))
    return net("divide", centred, net("add", deviation, net.like(1e-9, x)))


@emits(BOTH, "LpNormalization")
def lp_normalization(op: Op, net: Net) -> Value:
    """Divided by the 1- or 2-norm along an axis; a zero vector stays one."""
    x, axis = op.value(), op.attribute("axis")
    one = [1 if a == axis else n for a, n in enumerate(x.shape)]
    sizes = net.absolute(x) if op.attribute("p") == 1 else net("multiply", x, x)
    total = net("sum", sizes, shape=one, axis=[axis], keepdims=True)
    norm = total if op.attribute("p") == 1 else net("sqrt", total)
    return net("divide", x, net.greater(norm, net.like(float(np.finfo(np.float32).tiny), x)))


@emits(BOTH, "LRN")
def lrn(op: Op, net: Net) -> Value:
    """The mean of squares over neighbouring channels is an average pooling, its padding counted."""
    x, size = op.value(), op.attribute("size")
    view = (x.shape[0], 1, x.shape[1], math.prod(x.shape[2:]))
    squares = net.reshape(net("multiply", x, x), view)
    pads = [(size - 1) // 2, 0, size // 2, 0]
    means = net("nn.avg_pool2d", squares, shape=view, pool_size=(size, 1), padding=pads, count_include_pad=True)
    scaled = net("multiply", net.reshape(means, x.shape), net.like(op.attribute("alpha"), x))
    base = net("add", scaled, net.like(op.attribute("bias"), x))
    return net("multiply", x, net("power", base, net.like(-op.attribute("beta"), x)))


def _standardised(net: Net, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """`(x - mean) / √(variance + epsilon)` with the statistics of axes."""
    centred = net("subtract", x, mean(net, x, axes))
    return net("multiply", centred, _inverse_root(net, centred, axes, epsilon))


def _inverse_root(net: Net, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """`1 / √(mean x² + epsilon)` over axes."""
    squares = mean(net, net("multiply", x, x), axes)
    return net("divide", net.like(1, x), net("sqrt", net("add", squares, net.like(epsilon, x))))


def _per_channel(op: Op, net: Net, y: Value) -> Value:
    """Times input 1 plus input 2, which have a number per channel."""
    shape = (y.shape[1], *[1] * (y.rank - 2))
    return net("add", net("multiply", y, net.reshape(op.value(1), shape)), net.reshape(op.value(2), shape))
