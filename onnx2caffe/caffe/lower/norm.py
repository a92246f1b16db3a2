"""Normalisations. Facts: recipes §9."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onnx2caffe.caffe.layers import LRN, BatchNorm, Normalize, Reduction, Scale
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import affine, difference, operand, power, product
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.maps import fold
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.reduce import reduce
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape
from onnx2caffe.decompose.broadcast import span

__all__ = ["standardise"]

_FLOOR_OF_NNIE = 1e-10

_FLOOR = 1e-30
"""Added to a norm² so that a zero vector stays zero as in onnxruntime, without reaching any other."""


def standardise(net: Emitter, x: Blob, kept: Sequence[int], eps: float) -> Blob:
    """(x − mean) / √(variance + eps) with statistics over all axes but `kept`."""
    result: Blob = net.recipe("standardise", x, tuple(kept), eps)
    return result


@recipe("standardise", "BatchNorm")
def _by_batch_norm(net: Emitter, x: Blob, kept: Shape, eps: float) -> Blob:
    """BatchNorm with statistics of the batch, the kept axes as its channels (recipes §1 STD).

    Raises:
        Refused: the kept axes are no neighbours.

    """
    first, stop = span(tuple(size if axis in kept else 1 for axis, size in enumerate(x.shape)))
    if any(axis not in kept and x.shape[axis] > 1 for axis in range(first, stop)):
        raise Refused(f"the axes {list(kept)} of shape {list(x.shape)} are no neighbours")
    channels = math.prod(x.shape[first:stop])
    zeros = np.zeros(channels, np.float32)
    layer = BatchNorm(use_global_stats=False, eps=eps, blobs=(zeros, zeros, np.zeros(1, np.float32)))
    as_it_is = (first, stop) == (1, 2)
    view = x.shape if as_it_is else (math.prod(x.shape[:first]), channels, math.prod(x.shape[stop:]))
    return reshape(net, net(layer, reshape(net, x, view)), x.shape)


@recipe("standardise", "reduce")
def _by_reductions(net: Emitter, x: Blob, kept: Shape, eps: float) -> Blob:
    """Means by reductions, for any axes (recipes 9.3, 9.4)."""
    axes = [axis for axis in range(len(x.shape)) if axis not in kept]
    centred = difference(net, x, reduce(net, "MEAN", x, axes))
    variance = reduce(net, "MEAN", power(net, centred, 2.0), axes)
    return product(net, [centred, power(net, variance, -0.5, shift=eps)])


def _per_channel(array: Array, rank: int) -> Array:
    """A value per channel, shaped to broadcast over (N, C, …)."""
    return array.reshape((-1,) + (1,) * (rank - 2)).astype(np.float64)


@lowers("BatchNormalization", variant="Scale")
def _batch_norm_scale(op: Op, net: Emitter) -> Blob:
    """One Scale: a = γ / √(v + ε), b = β − μ·a, in float64 (recipes 9.1)."""
    gamma, beta, mean, variance = _statistics(op)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = gamma / np.sqrt(variance + op.attribute("epsilon", 1e-5))
    return affine(net, op.blob(), scale, beta - mean * scale)


@lowers("BatchNormalization", variant="BatchNorm")
def _batch_norm_layers(op: Op, net: Emitter) -> Blob:
    """BatchNorm and Scale, as training nets write them (recipes 9.1)."""
    gamma, beta, mean, variance = _statistics(op)
    blobs = (mean.reshape(-1).astype(np.float32), variance.reshape(-1).astype(np.float32), np.ones(1, np.float32))
    x = net(BatchNorm(use_global_stats=True, eps=op.attribute("epsilon", 1e-5), blobs=blobs), op.blob())
    return affine(net, x, gamma, beta)


def _statistics(op: Op) -> list[Array]:
    """γ, β, mean and variance, shaped to broadcast over the input.

    Raises:
        Refused: one is computed, or training_mode = 1.

    """
    if op.attribute("training_mode", 0):
        raise Refused("training_mode = 1 (statistics of the batch and updated outputs)")
    names = ("scale", "bias", "mean", "variance")
    return [_per_channel(op.need_const(i, name), len(op.shape())) for i, name in enumerate(names, start=1)]


@lowers("InstanceNormalization")
def _instance_norm(op: Op, net: Emitter) -> Blob:
    """Statistics of every item and channel, batches included (recipes 9.2)."""
    x = op.blob()
    y = standardise(net, x, (0, 1), op.attribute("epsilon", 1e-5))
    gamma, beta = (_per_channel(op.need_const(i, n), len(x.shape)) for i, n in ((1, "scale"), (2, "bias")))
    return affine(net, y, gamma, beta)


@lowers("GroupNormalization")
def _group_norm(op: Op, net: Emitter) -> Blob:
    """Statistics of every item and group of channels (recipes 9.6)."""
    x, groups = op.blob(), op.attribute("num_groups")
    rows = reshape(net, x, (1, x.shape[0] * groups, math.prod(x.shape[1:]) // groups))
    y = reshape(net, standardise(net, rows, (1,), op.attribute("epsilon", 1e-5)), x.shape)
    gamma, beta = (_per_channel(op.need_const(i, n), len(x.shape)) for i, n in ((1, "scale"), (2, "bias")))
    return affine(net, y, gamma, beta)


@lowers("LayerNormalization")
def _layer_norm(op: Op, net: Emitter) -> Sequence[Blob]:
    """Statistics over the axes from `axis` on (recipes 9.8).

    Raises:
        Refused: Mean or InvStdDev is read.

    """
    for index, name in ((1, "Mean"), (2, "InvStdDev")):
        if op.wanted(index):
            raise Refused(f"output {name} (output {index}) is read")
    x = op.blob()
    axis = op.attribute("axis", -1) % len(x.shape)
    y = standardise(net, x, range(axis), op.attribute("epsilon", 1e-5))
    return [_scaled(op, net, y), *(Blob("", ()) for _ in op.node.outputs[1:])]


@lowers("RMSNormalization", variant="Reduction")
def _rms_norm(op: Op, net: Emitter) -> Blob:
    """`x · (mean x² + ε)^−½` over the axes from `axis` on (recipes 9.11)."""
    x = op.blob()
    axis = op.attribute("axis", -1) % len(x.shape)
    mean = net(Reduction(operation="SUMSQ", axis=axis, coeff=1.0 / math.prod(x.shape[axis:])), x)
    y = net(Scale(axis=0), x, power(net, mean, -0.5, shift=op.attribute("epsilon", 1e-5)))
    return _scaled(op, net, y)


@lowers("RMSNormalization", variant="reduce")
def _rms_norm_by_mean(op: Op, net: Emitter) -> Blob:
    """The same by the recipe "reduce", each quotient repeated (recipes 9.11)."""
    x = op.blob()
    axes = range(op.attribute("axis", -1) % len(x.shape), len(x.shape))
    mean = reduce(net, "MEAN", power(net, x, 2.0), axes)
    return _scaled(op, net, product(net, [x, power(net, mean, -0.5, shift=op.attribute("epsilon", 1e-5))]))


def _scaled(op: Op, net: Emitter, y: Blob) -> Blob:
    """Times input 1 plus input 2, constant or computed, broadcast to the input."""
    scale, bias = operand(op, 1), operand(op, 2) if op.has(2) else np.zeros(())
    if isinstance(scale, Blob) or isinstance(bias, Blob):
        raise Refused("scale and bias must be constant")
    return affine(net, y, scale, bias)


@lowers("LpNormalization", variant="Normalize")
def _normalize(op: Op, net: Emitter) -> Blob:
    """Normalize (p = 2) over the channels of (outer, axis, inner) (recipes 9.12)."""
    x, p = op.blob(), op.attribute("p", 2)
    axis = op.attribute("axis", -1) % len(x.shape)
    if p != 2:
        raise Refused(f"Normalize has no p = {p}")
    direct = axis == 1 and len(x.shape) == 4
    view = x.shape if direct else (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]), 1)
    return reshape(net, net(_normalize_layer(_FLOOR), reshape(net, x, view)), x.shape)


def _normalize_layer(floor: float) -> Normalize:
    return Normalize(across_spatial=False, channel_shared=True, eps=floor, blobs=(np.ones((), np.float32),))


@lowers("LpNormalization", variant="reduce")
def _lp_norm(op: Op, net: Emitter) -> Blob:
    """`x / ‖x‖` by reductions (recipes 9.12-9.14).

    Raises:
        Refused: p is neither 1 nor 2.

    """
    x, p = op.blob(), op.attribute("p", 2)
    axis = op.attribute("axis", -1) % len(x.shape)
    if p not in (1, 2):
        raise Refused(f"p = {p}")
    kind = "ASUM" if p == 1 else "SUMSQ"
    if axis == len(x.shape) - 1:
        total = net(Reduction(operation=kind, axis=axis), x)
        return net(Scale(axis=0), x, power(net, total, -1.0 / p, shift=_FLOOR))
    return product(net, [x, power(net, reduce(net, kind, x, [axis]), -1.0 / p, shift=_FLOOR)])


@lowers("LpNormalization", variant="Normalize_map")
def _normalize_map(op: Op, net: Emitter) -> Blob:
    """Normalize (p = 2) over the channels of a map, with the one floor that the NNIE knows (nnie §1 W12)."""
    x, p = op.blob(), op.attribute("p", 2)
    axis = op.attribute("axis", -1) % len(x.shape)
    if p != 2 or math.prod(x.shape[1:axis]) > 1:
        raise Refused(f"p = {p} over axis {axis} of shape {list(x.shape)}: Normalize has p = 2 over channels")
    direct = axis == 1 and len(x.shape) == 4
    view = x.shape if direct else (x.shape[0], x.shape[axis], *fold(math.prod(x.shape[axis + 1 :])))
    return reshape(net, net(_normalize_layer(_FLOOR_OF_NNIE), reshape(net, x, view)), x.shape)


@lowers("MeanVarianceNormalization")
def _mean_variance_norm(op: Op, net: Emitter) -> Blob:
    """ONNX divides by √variance + 1e-9; 1e-18 inside the root is the same wherever it matters (recipes 9.18)."""
    axes = [axis % len(op.shape()) for axis in op.attribute("axes", (0, 2, 3))]
    return standardise(net, op.blob(), [a for a in range(len(op.shape())) if a not in axes], 1e-18)


@lowers("LRN", variant="LRN")
def _lrn(op: Op, net: Emitter) -> Blob:
    """Caffe's layer has ONNX's formula: k = bias, alpha / size inside both (recipes 9.16)."""
    x, size = op.blob(), op.attribute("size")
    if size % 2 == 0:
        raise Refused(f"size = {size} is even")
    layer = LRN(local_size=size, alpha=_alpha(op), beta=op.attribute("beta", 0.75), k=op.attribute("bias", 1.0))
    view = x.shape if len(x.shape) == 4 else (x.shape[0], x.shape[1], math.prod(x.shape[2:]), 1)
    return reshape(net, net(layer, reshape(net, x, view)), x.shape)


@lowers("LRN", variant="band")
def _lrn_band(op: Op, net: Emitter) -> Blob:
    """Any size: squares, a band of ones over the channels, a power (recipes 9.17)."""
    x, size = op.blob(), op.attribute("size")
    offset = np.subtract.outer(np.arange(x.shape[1]), np.arange(x.shape[1]))
    band = (offset <= (size - 1) // 2) & (-offset <= size // 2)
    total = net.recipe("axis_map", power(net, x, 2.0), 1, band)
    exponent = -op.attribute("beta", 0.75)
    return product(net, [x, power(net, total, exponent, scale=_alpha(op) / size, shift=op.attribute("bias", 1.0))])


def _alpha(op: Op) -> float:
    return float(op.attribute("alpha", 1e-4))
