"""Blocks that need nothing but layers over 4-D maps that keep the batch, for the NNIE.

They are further variants of the blocks of `blocks.py`. Facts: recipes §1, nnie §1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onnx2caffe.caffe.layers import Convolution, Deconvolution, Eltwise, Parameter, Permute
from onnx2caffe.caffe.layers.base import Array, Shape
from onnx2caffe.caffe.lower.arithmetic import affine
from onnx2caffe.caffe.lower.blocks import concat, keep, one_hot, outer, reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.registry import Refused, recipe
from onnx2caffe.caffe.net import Blob

__all__ = ["WIDEST", "around", "as_map", "fold", "forward", "pointwise"]

WIDEST = 4096
"""The widest map (nnie §1 W03)."""

_LONGEST_KERNEL = 255
"""nnie §1 W04."""

_FINE = 8.0
"""Adding and taking away a number up to this loses at most 1e-6."""

_FORWARD = Permute(order=(0, 2, 3, 1))
"""The one Permute of the NNIE."""


def fold(size: int) -> Shape:
    """`size` elements as rows and columns, as wide as a map may be."""
    width = next(w for w in range(min(size, WIDEST), 0, -1) if size % w == 0)
    return size // width, width


def as_map(net: Emitter, x: Blob) -> Blob:
    """`x` as (N, C, H, W), its trailing axes merged and folded where they are not two.

    Raises:
        Refused: `x` has no channels.

    """
    held = x.seen_as(x.own)
    if len(held.shape) == 4:
        return held
    if len(held.shape) < 2:
        raise Refused(f"shape {list(held.shape)} has no channels")
    return reshape(net, held, (*held.shape[:2], *fold(math.prod(held.shape[2:]))))


def around(x: Blob, axis: int) -> tuple[int, int, int, int]:
    """A tensor as four axes: the batch of its blob, what lies before an axis, the axis, and what lies behind it.

    Raises:
        Refused: the axis takes the batch in.

    """
    batch, before = x.own[0] if x.own else 0, math.prod(x.shape[:axis])
    if not batch or before % batch or (axis == 0 and batch > 1):
        raise Refused(f"axis {axis} of a tensor {list(x.shape)} takes in the batch of {list(x.own)}")
    return batch, before // batch, x.shape[axis], math.prod(x.shape[axis + 1 :])


def forward(net: Emitter, x: Blob) -> Blob:
    """(N, A, B, C) to (N, B, C, A): the NNIE's one Permute."""
    return net(_FORWARD, x)


def pointwise(net: Emitter, x: Blob, weights: Array, bias: Array | None = None) -> Blob:
    """A Convolution 1×1 with weights (out, in) over a map."""
    kernel = np.ascontiguousarray(weights, np.float32).reshape(*weights.shape, 1, 1)
    layer = Convolution(
        num_output=len(weights),
        kernel_size=(1, 1),
        bias_term=bias is not None,
        blobs=(kernel,) if bias is None else (kernel, np.asarray(bias, np.float32)),
    )
    return net(layer, x)


@recipe("axis_map", "map")
def axis_map_on_channels(net: Emitter, x: Blob, axis: int, matrix: Array) -> Blob:
    """A linear map along the channels, or what can be seen as such: Convolution 1×1 (AXM)."""
    batch, before, size, behind = around(x, axis)
    if before > 1:
        raise Refused(f"axis {axis} of shape {list(x.shape)} is not the channels")
    natural = axis == 1 and len(x.shape) == 4
    view = x.shape if natural else (batch, size, *fold(behind))
    return reshape(net, pointwise(net, reshape(net, x, view), matrix), _with_size(x.shape, axis, len(matrix)))


@recipe("axis_map", "row")
def axis_map_by_row(net: Emitter, x: Blob, axis: int, matrix: Array) -> Blob:
    """A linear map along the last axis: Convolution over a whole row, whose outputs Permute puts last (recipes 6.2)."""
    batch, rows, size, behind = around(x, axis)
    if behind > 1:
        raise Refused(f"axis {axis} of shape {list(x.shape)} is not the last")
    weights = np.ascontiguousarray(matrix, np.float32).reshape(len(matrix), 1, 1, size)
    layer = Convolution(num_output=len(matrix), kernel_size=(1, size), bias_term=False, blobs=(weights,))
    y = net(layer, reshape(net, x, (batch, 1, rows, size)))
    return reshape(net, y if len(matrix) == 1 else forward(net, y), _with_size(x.shape, axis, len(matrix)))


@recipe("axis_map", "rotation")
def axis_map_by_rotation(net: Emitter, x: Blob, axis: int, matrix: Array) -> Blob:
    """Any axis turned into the channels and back: three Permutes are none (AXM a)."""
    y = pointwise(net, forward(net, reshape(net, x, around(x, axis))), matrix)
    return reshape(net, forward(net, forward(net, y)), _with_size(x.shape, axis, len(matrix)))


def _with_size(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


@recipe("keep", "map")
def keep_by_map(net: Emitter, x: Blob, axis: int, first: int, end: int) -> Blob:
    """The range [first, end) without unread tops: a crop of a map, else a one-hot matrix (recipes 11.1)."""
    size = x.shape[axis]
    if len(x.shape) == 4 and axis >= 2:
        front, behind = ([n if i == axis else 0 for i in (2, 3)] for n in (first, size - end))
        return net.recipe("crop", x, front, behind)
    return net.recipe("axis_map", x, axis, one_hot(range(first, end), size))


@recipe("constant_pad", "shift")
def constant_pad_by_shift(net: Emitter, x: Blob, axis: int, front: int, behind: int, *, value: float) -> Blob:
    """`value` in front of and behind an axis: zeros where the value is taken away before and added after (3.15)."""
    if abs(value) > _FINE:
        raise Refused(f"adding and taking away {value} would cost accuracy")
    x = keep(net, x, axis, max(-front, 0), x.shape[axis] - max(-behind, 0))
    front, behind = max(front, 0), max(behind, 0)
    if not front and not behind:
        return x
    y = affine(net, x, 1.0, -value)
    if len(x.shape) == 4 and axis >= 2:
        pads = [[n if i == axis else 0 for i in (2, 3)] for n in (front, behind)]
        y = net.recipe("zero_pad", y, *pads)
    else:
        index = [*[-1] * front, *range(x.shape[axis]), *[-1] * behind]
        y = net.recipe("axis_map", y, axis, one_hot(index, x.shape[axis]))
    return affine(net, y, 1.0, value)


@recipe("constant_pad", "Parameter")
def constant_pad_by_parameter(net: Emitter, x: Blob, axis: int, front: int, behind: int, *, value: float) -> Blob:
    """`value` in front of and behind an axis: Concat with constant blobs."""
    x = keep(net, x, axis, max(-front, 0), x.shape[axis] - max(-behind, 0))

    def fill(count: int) -> list[Blob]:
        return [constant_parameter(net, np.full(_with_size(x.shape, axis, count), value))] if count > 0 else []

    return concat(net, [*fill(front), x, *fill(behind)], axis) if max(front, behind) > 0 else x


@recipe("constant", "Parameter")
def constant_parameter(net: Emitter, array: Array) -> Blob:
    """A constant blob from the caffemodel, whatever its numbers."""
    values = np.asarray(array, np.float32)
    return net(Parameter(shape=values.shape, blobs=(values,)))


@recipe("constant_map", "deconvolution")
def constant_map(net: Emitter, like: Blob, values: Array) -> Blob:
    """`values` (in the shape of `like`): a 1 made of zero weights and a bias, spread by a kernel (CMAP)."""
    x = as_map(net, like)
    one = pointwise(net, net.recipe("whole_pool", x, "MAX"), np.zeros((1, x.shape[1])), np.ones(1))
    channels, *kernel = x.shape[1:] if max(x.shape[2:]) <= _LONGEST_KERNEL else _small_planes(values.size)
    weights = np.ascontiguousarray(values, np.float32).reshape(1, channels, *kernel)
    layer = Deconvolution(num_output=channels, kernel_size=tuple(kernel), bias_term=False, blobs=(weights,))
    return reshape(net, net(layer, one), like.own)


def _small_planes(size: int) -> Shape:
    """`size` elements as channels of planes no larger than a kernel may be."""
    width = next(w for w in range(_LONGEST_KERNEL, 0, -1) if size % w == 0)
    height = next(h for h in range(_LONGEST_KERNEL, 0, -1) if size // width % h == 0)
    return size // (width * height), height, width


@recipe("scale_map", "map")
def scale_by_map(net: Emitter, x: Blob, factors: Sequence[Array]) -> Blob:
    """Multiplies every map by the outer product of one row of factors per spatial axis: Eltwise with CMAP."""
    values = outer(factors).astype(np.float32)
    if (values == 1).all():
        return x
    return net(Eltwise(operation="PROD"), x, net.recipe("constant_map", x, np.broadcast_to(values, x.shape)))


@recipe("tile", "concat")
def tile_by_concat(net: Emitter, x: Blob, axis: int, times: int) -> Blob:
    """A tensor again and again along an axis: Concat of copies (recipes 11.10)."""
    batch, before, size, behind = around(x, axis)
    view = (batch, size, behind) if before == 1 else (batch, before, size * behind)
    copies = [reshape(net, x, view)] * times
    return reshape(net, concat(net, copies, 1 if before == 1 else 2), _with_size(x.shape, axis, size * times))


@recipe("broadcast", "upsample")
def broadcast_by_upsample(net: Emitter, x: Blob, shape: Shape) -> Blob:
    """Repeats axes of size 1 by Upsample ×2 (BCAST-HW d)."""

    def grow(x: Blob, factors: Sequence[int]) -> Blob:
        if factors[0] != factors[1] or factors[0] & (factors[0] - 1):
            raise Refused(f"factors {tuple(factors)} are not one power of 2")
        return net.recipe("upsample", x, factors)

    return _broadcast(net, x, shape, grow)


@recipe("broadcast", "concat")
def broadcast_by_concat(net: Emitter, x: Blob, shape: Shape) -> Blob:
    """Repeats axes of size 1 by Concat of copies (BCAST-HW c)."""

    def grow(x: Blob, factors: Sequence[int]) -> Blob:
        for axis, count in ((3, factors[1]), (2, factors[0])):
            x = concat(net, [x] * count, axis) if count > 1 else x
        return x

    return _broadcast(net, x, shape, grow)


@recipe("broadcast", "deconv")
def broadcast_by_deconvolution(net: Emitter, x: Blob, shape: Shape) -> Blob:
    """Repeats axes of size 1 by a depthwise Deconvolution of ones (BCAST-HW b)."""
    return _broadcast(net, x, shape, lambda x, factors: net.recipe("upsample", x, factors))


def _broadcast(net: Emitter, x: Blob, shape: Shape, grow: Callable[[Blob, Sequence[int]], Blob]) -> Blob:
    """Rows and columns by `grow`, channels by a Convolution of ones (BCAST-C)."""
    batch = x.own[0] if x.own else 0
    if batch != 1 and (not shape or batch != shape[0]):
        raise Refused(f"shape {list(x.shape)} to {list(shape)} repeats the batch")
    old, new = _on_three_axes(x.shape, shape)
    y = reshape(net, x, old)
    if old[2:] != new[2:]:
        y = grow(y, [large // small for small, large in zip(old[2:], new[2:], strict=True)])
    if old[1] != new[1]:
        y = pointwise(net, y, np.ones((new[1], 1)))
    return reshape(net, y, shape)


def _on_three_axes(old: Shape, new: Shape) -> tuple[Shape, Shape]:
    """Shapes before and after a broadcast as maps: neighbours that grow alike are one axis."""
    if len(old) == 4 and old[0] == new[0]:
        return old, new
    batch = old[0] if old and old[0] == new[0] else 1
    if old and old[0] == new[0]:
        old, new = old[1:], new[1:]
    runs: list[tuple[int, int]] = []
    for small, large in zip(old, new, strict=True):
        if large == 1:
            continue
        alike = runs and (runs[-1][0] == runs[-1][1]) == (small == large)
        before = runs.pop() if alike else (1, 1)
        runs.append((before[0] * small, before[1] * large))
    if len(runs) > 3:
        raise Refused(f"shape {list(old)} to {list(new)} is no broadcast of a map")
    if len(runs) == 2:
        small, large = runs.pop()
        runs += zip(fold(small) if small == large else (1, 1), fold(large), strict=True)
    runs += [(1, 1)] * (3 - len(runs))
    return (batch, *(small for small, _ in runs)), (batch, *(large for _, large in runs))
