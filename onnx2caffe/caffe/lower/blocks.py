"""Building blocks of the spatial lowerings: cropping, padding, picking, linear maps along an axis, broadcasting.

Spatial arguments are given per spatial axis (axes 2, 3 …) in order. A block that would do nothing returns its
input blob. Facts: recipes §1. One-hot and 0/1 weights are exact in float32 (only infinities and NaN leak through their
zeros).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from onnx2caffe.caffe.layers import (
    Bias,
    Concat,
    Convolution,
    Deconvolution,
    DepthwiseConv,
    DummyData,
    InnerProduct,
    Parameter,
    Reshape,
    Scale,
    Slice,
    Tile,
    Upsample,
)
from onnx2caffe.caffe.layers.base import MAX_AXES, Array, Shape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.registry import Refused, recipe
from onnx2caffe.caffe.net import Blob

__all__ = [
    "MOST_WEIGHTS",
    "add_map",
    "concat",
    "convolution",
    "depthwise",
    "keep",
    "one_hot",
    "outer",
    "per_channel",
    "reshape",
    "spatial_rank",
]

MOST_WEIGHTS = 2**26
"""The most weights (256 MiB) that a composition makes up: a model of a few bytes can ask for any number."""

_MANY_PIECES = 32
"""More pieces than this are not worth a Slice: a matrix takes their place."""

_WIDE_KERNEL = 64
"""A one-hot kernel with more taps than this costs more than moving data."""


def spatial_rank(x: Blob) -> int:
    """The number of axes after batch and channel.

    Raises:
        Refused: there is none.

    """
    rank = len(x.shape) - 2
    if rank < 1:
        raise Refused(f"shape {x.shape} has no spatial axis")
    return rank


def reshape(net: Emitter, x: Blob, shape: Sequence[int]) -> Blob:
    """`x` in another shape of the same size; `x` itself when the shape is the same."""
    wanted = tuple(shape)
    if wanted in (x.shape, x.own):
        return x.seen_as(wanted)
    return net.recipe("reshape", x.seen_as(x.own), wanted)


@recipe("reshape", "static")
def reshape_all(net: Emitter, x: Blob, shape: Shape) -> Blob:
    """Reshape with every dimension as a number (recipes 5.1)."""
    return net(Reshape(shape=shape), x)


@recipe("reshape", "keep_n")
def reshape_behind_batch(net: Emitter, x: Blob, shape: Shape) -> Blob:
    """Reshape with 0 for the batch, which stays as it is (nnie §1 E02)."""
    if len(shape) < 2 or x.shape[:1] != shape[:1]:
        raise Refused(f"shape {list(x.shape)} to {list(shape)} changes the batch")
    return net(Reshape(shape=(0, *shape[1:])), x)


@recipe("reshape", "seen")
def reshape_nothing(net: Emitter, x: Blob, shape: Shape) -> Blob:
    """No layer: the blob stays, those that read it see the tensor's shape."""
    if 0 in shape or len(shape) > MAX_AXES:
        raise Refused(f"shape {list(shape)} is none that Caffe has")
    return x.seen_as(shape)


def convolution(net: Emitter, x: Blob, layer: Convolution, what: str = "") -> Blob:
    """A Convolution; with one kernel per channel by the recipe "depthwise"."""
    if 1 < layer.group == layer.num_output == x.shape[1]:
        return net.recipe("depthwise", x, layer, what)
    return net(layer, x, what=what)


@recipe("depthwise", "conv")
def depthwise_by_group(net: Emitter, x: Blob, layer: Convolution, what: str) -> Blob:
    """Convolution with as many groups as channels."""
    return net(layer, x, what=what)


@recipe("depthwise", "layer")
def depthwise_by_layer(net: Emitter, x: Blob, layer: Convolution, what: str) -> Blob:
    """DepthwiseConv, which the NNIE runs faster (nnie §4.1)."""
    alike = {field.name: getattr(layer, field.name) for field in fields(layer) if field.name != "group"}
    return net(DepthwiseConv(**alike), x, what=what)


def outer(vectors: Sequence[Array]) -> Array:
    """The outer product of 1-D arrays: one axis per array."""
    product: Array = np.ones(())
    for vector in vectors:
        product = np.multiply.outer(product, vector)
    return product


def per_channel(kernel: Array, channels: int) -> Array:
    """The weights (channels, 1, k…) of a depthwise layer that applies one kernel to every channel.

    Raises:
        Refused: they would be more than `MOST_WEIGHTS`.

    """
    if channels * kernel.size > MOST_WEIGHTS:
        raise Refused(f"a kernel of {kernel.shape} for each of {channels} channels is too large")
    return np.ascontiguousarray(np.broadcast_to(kernel.astype(np.float32), (channels, 1, *kernel.shape)))


def one_hot(index: Sequence[int], size: int) -> Array:
    """The 0/1 matrix (len(index), size) that picks `index`; index -1 gives a row of zeros.

    Raises:
        Refused: it would have more than `MOST_WEIGHTS` elements.

    """
    if len(index) * size > MOST_WEIGHTS:
        raise Refused(f"a one-hot matrix of {len(index)} x {size} is too large")
    picked: Array = np.asarray(index)[:, None] == np.arange(size)
    return picked.astype(np.float32)


def depthwise(
    net: Emitter,
    x: Blob,
    taps: Sequence[Array],
    *,
    stride: Sequence[int] = (1,),
    pad: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    what: str = "",
) -> Blob:
    """A depthwise Convolution whose kernel is the outer product of one row of taps per spatial axis."""
    kernel = outer(taps)
    layer = Convolution(
        num_output=x.shape[1],
        kernel_size=kernel.shape,
        stride=tuple(stride),
        pad=tuple(pad),
        dilation=tuple(dilation),
        group=x.shape[1],
        bias_term=False,
        blobs=(per_channel(kernel, x.shape[1]),),
    )
    return convolution(net, x, layer, what)


def add_map(net: Emitter, x: Blob, values: Array) -> Blob:
    """Adds a constant map over the spatial axes, the same for every item and channel."""
    if not values.any():
        return x
    return net(Bias(axis=2, num_axes=values.ndim, blobs=(values.astype(np.float32),)), x)


@recipe("scale_map", "scale")
def scale_map(net: Emitter, x: Blob, factors: Sequence[Array]) -> Blob:
    """Multiplies every map by the outer product of one row of factors per spatial axis."""
    values = outer(factors).astype(np.float32)
    if (values == 1).all():
        return x
    return net(Scale(axis=2, num_axes=values.ndim, blobs=(values,)), x)


def concat(net: Emitter, parts: Sequence[Blob], axis: int) -> Blob:
    """The parts one after the other along an axis, in one Concat, or in several where the target limits bottoms."""
    return net.either(lambda: net(Concat(axis=axis), *parts), lambda: _concat_by_groups(net, parts, axis))


def _concat_by_groups(net: Emitter, parts: Sequence[Blob], axis: int) -> Blob:
    while len(parts) > 1:
        groups = [parts[i : i + _MANY_PIECES] for i in range(0, len(parts), _MANY_PIECES)]
        parts = [net(Concat(axis=axis), *group) if len(group) > 1 else group[0] for group in groups]
    return parts[0]


def keep(net: Emitter, x: Blob, axis: int, first: int, end: int) -> Blob:
    """The contiguous range [first, end) of an axis; `x` itself when that is all of it.

    Raises:
        Refused: the range is empty, which Caffe has not.

    """
    size = x.shape[axis]
    if first >= end:
        raise Refused(f"range [{first}, {end}) of axis {axis} (size {size}) is empty")
    return x if end - first == size else net.recipe("keep", x, axis, first, end)


@recipe("keep", "slice")
def keep_by_slice(net: Emitter, x: Blob, axis: int, first: int, end: int) -> Blob:
    """One Slice; `finish` silences the rest (KEEP)."""
    size = x.shape[axis]
    points = sorted({first, end} - {0, size})
    return net.many(Slice(axis=axis, slice_point=tuple(points), tops=len(points) + 1), x)[int(first > 0)]


@recipe("constant", "layer")
def constant(net: Emitter, array: Array) -> Blob:
    """A constant blob: DummyData for a constant fill, else Parameter (recipes 11.9, 11.12)."""
    values = np.asarray(array, np.float32)
    if values.size and (values == values.flat[0]).all():
        return net(DummyData(shape=values.shape, value=float(values.flat[0])))
    return net(Parameter(shape=values.shape, blobs=(values,)))


@recipe("crop", "slice")
def crop_by_slices(
    net: Emitter, x: Blob, front: Sequence[int], behind: Sequence[int], step: Sequence[int] = (1,)
) -> Blob:
    """Cuts `front` and `behind` elements off the spatial axes (KEEP per axis)."""
    if max(step) > 1:
        raise Refused(f"slicing keeps every element, step {tuple(step)} does not")
    for axis, (a, b) in enumerate(zip(front, behind, strict=True), start=2):
        if a or b:
            x = keep_by_slice(net, x, axis, a, x.shape[axis] - b)
    return x


@recipe("crop", "dw")
def crop_by_convolution(
    net: Emitter, x: Blob, front: Sequence[int], behind: Sequence[int], step: Sequence[int] = (1,)
) -> Blob:
    """Cuts `front` and `behind` elements off and keeps every `step`-th: one depthwise one-hot Convolution (CROP)."""
    steps = tuple(step) * (len(front) // len(step))
    taps = []
    for size, a, b, s in zip(x.shape[2:], front, behind, steps, strict=True):
        kept = (size - a - b - 1) // s + 1
        taps.append(one_hot([a], max(a, size - kept * s) + 1)[0])
    if math.prod(map(len, taps)) == 1 and max(steps) == 1:
        return x
    return depthwise(net, x, taps, stride=steps, what="crop")


@recipe("zero_pad", "conv")
def zero_pad_by_convolution(net: Emitter, x: Blob, front: Sequence[int], behind: Sequence[int]) -> Blob:
    """Zeros in front of and behind the spatial axes, negative = crop: one depthwise one-hot Convolution (ZPAD)."""
    if not any(front) and not any(behind):
        return x
    pad = [max(a, b, 0) for a, b in zip(front, behind, strict=True)]
    taps = [one_hot([p - a], 2 * p - a - b + 1)[0] for p, a, b in zip(pad, front, behind, strict=True)]
    if (count := math.prod(map(len, taps))) > _WIDE_KERNEL:
        raise Refused(f"pads {tuple(front)}, {tuple(behind)} need a one-hot kernel of {count} taps")
    return depthwise(net, x, taps, pad=pad, what="pad")


@recipe("zero_pad", "concat")
def zero_pad_by_concat(net: Emitter, x: Blob, front: Sequence[int], behind: Sequence[int]) -> Blob:
    """The same by slices and Concat with zeros, axis by axis."""
    for axis, (a, b) in enumerate(zip(front, behind, strict=True), start=2):
        x = net.recipe("constant_pad", x, axis, a, b, value=0.0)
    return x


@recipe("constant_pad", "concat")
def constant_pad(net: Emitter, x: Blob, axis: int, front: int, behind: int, *, value: float) -> Blob:
    """`value` in front of and behind any one axis, negative = crop: Concat with DummyData (recipes 3.15)."""
    x = keep(net, x, axis, max(-front, 0), x.shape[axis] - max(-behind, 0))
    fill: dict[int, Blob] = {}
    for count in {front, behind}:
        if count > 0:
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            fill[count] = net(DummyData(shape=shape, value=value), what="fill")
    parts = [part for part in (fill.get(front), x, fill.get(behind)) if part is not None]
    return net(Concat(axis=axis), *parts) if len(parts) > 1 else x


@recipe("take", "slice")
def take_by_slices(net: Emitter, x: Blob, axis: int, index: Sequence[int]) -> Blob:
    """`numpy.take` with a constant index list: the runs of neighbours by one Slice and one Concat.

    `finish` silences the parts that nobody reads.
    """
    runs = _runs(index)
    if len(runs) == 1:
        return keep(net, x, axis, *runs[0])
    size = x.shape[axis]
    cuts = sorted({bound for run in runs for bound in run} - {0, size})
    bounds = list(zip([0, *cuts], [*cuts, size], strict=True))
    order = [i for lo, hi in runs for i, (a, b) in enumerate(bounds) if lo <= a and b <= hi]
    if len(order) > _MANY_PIECES:
        raise Refused(f"the index list of axis {axis} falls into {len(order)} pieces (at most {_MANY_PIECES})")
    parts = net.many(Slice(axis=axis, slice_point=tuple(cuts), tops=len(bounds)), x) if cuts else (x,)
    return net(Concat(axis=axis), *(parts[i] for i in order))


@recipe("take", "matrix")
def take_by_matrix(net: Emitter, x: Blob, axis: int, index: Sequence[int]) -> Blob:
    """The same by a one-hot matrix: any list, repeats and any order included (on channels: PICK)."""
    return net.recipe("axis_map", x, axis, one_hot(index, x.shape[axis]))


def _runs(index: Sequence[int]) -> list[tuple[int, int]]:
    """The maximal runs (first, last + 1) of neighbours in an index list."""
    edges = np.flatnonzero(np.diff(index) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(np.asarray(index), edges)]


@recipe("axis_map", "reshape")
def axis_map(net: Emitter, x: Blob, axis: int, matrix: Array) -> Blob:
    """A linear map along one axis: out[…, j, …] = sum_i matrix[j, i] · x[…, i, …] (AXM b).

    Channels of a map: Convolution 1×1. Last axis: InnerProduct. Any other: the axis as channels of a Reshape.
    """
    weights = np.ascontiguousarray(matrix, np.float32)
    result = (*x.shape[:axis], len(weights), *x.shape[axis + 1 :])
    if axis > 0 and math.prod(x.shape[axis + 1 :]) == 1:
        layer = InnerProduct(num_output=len(weights), axis=axis, bias_term=False, blobs=(weights,))
        return reshape(net, net(layer, x), result)
    if axis != 1:
        x = reshape(net, x, (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]), 1))
    return reshape(net, _pointwise(net, x, weights), result)


def _pointwise(net: Emitter, x: Blob, weights: Array) -> Blob:
    """A Convolution with kernel 1 and weights (out, in)."""
    rank = spatial_rank(x)
    layer = Convolution(
        num_output=len(weights),
        kernel_size=(1,) * rank,
        bias_term=False,
        blobs=(weights.reshape(*weights.shape, *(1,) * rank),),
    )
    return net(layer, x)


@recipe("broadcast", "tile")
def broadcast(net: Emitter, x: Blob, shape: Shape) -> Blob:
    """Repeats `x` along its axes of size 1 until it has `shape` (of the same rank)."""
    for axis, size in enumerate(shape):
        if x.shape[axis] != size:
            x = net(Tile(axis=axis, tiles=size), x)
    return x


@recipe("upsample", "upsample")
def repeat_by_upsample(net: Emitter, x: Blob, factors: Sequence[int]) -> Blob:
    """Repeats every element `factors` times along the spatial axes: Upsample, or a chain of ×2 (recipes 4.1)."""
    if max(factors) == 1:
        return x
    if len(set(factors)) == 1:
        return net.either(lambda: net(Upsample(scale=factors[0]), x), lambda: _doubled(net, x, factors[0]))
    if len(factors) != 2:
        raise Refused(f"Upsample has two spatial axes, factors {tuple(factors)} name {len(factors)}")
    return net(Upsample(scale_h=factors[0], scale_w=factors[1]), x)


def _doubled(net: Emitter, x: Blob, factor: int) -> Blob:
    """Upsample ×2 again and again, after a Deconvolution for the odd part of the factor."""
    times = (factor & -factor).bit_length() - 1
    if not times:
        raise Refused(f"factor {factor} is odd")
    x = repeat_by_deconvolution(net, x, [factor >> times] * spatial_rank(x))
    for _ in range(times):
        x = net(Upsample(scale=2), x)
    return x


@recipe("upsample", "deconv")
def repeat_by_deconvolution(net: Emitter, x: Blob, factors: Sequence[int]) -> Blob:
    """The same by a depthwise Deconvolution of ones, kernel = stride."""
    if max(factors) == 1:
        return x
    layer = Deconvolution(
        num_output=x.shape[1],
        kernel_size=tuple(factors),
        stride=tuple(factors),
        group=x.shape[1],
        bias_term=False,
        blobs=(np.ones((x.shape[1], 1, *factors), np.float32),),
    )
    return net(layer, x)
