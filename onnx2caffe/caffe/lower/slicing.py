"""Slice, Split, Concat, and constant index lists along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnx2caffe.caffe.layers import Slice
from onnx2caffe.caffe.lower.blocks import concat, keep, reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import tile, transpose
from onnx2caffe.caffe.lower.maps import around
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.strided import View, nest, view

__all__ = ["gather"]

_FEW_PIECES = 32
_LARGEST_MATRIX = 1 << 24


def gather(net: Emitter, x: Blob, axis: int, indices: Sequence[int]) -> Blob:
    """numpy.take along one axis by a constant list (recipes 5.11, 11.1–11.3, 11.6).

    Raises:
        Refused: the list is empty, or no alternative applies.

    """
    if not len(indices):
        raise Refused(f"no element of axis {axis} (size {x.shape[axis]}) is selected")
    if np.array_equal(indices, np.arange(x.shape[axis])):
        return x
    return net.recipe("gather", x, axis, tuple(int(i) for i in indices))


@recipe("gather", "keep")
def _gather_range(net: Emitter, x: Blob, axis: int, indices: Sequence[int]) -> Blob:
    """A contiguous range."""
    if np.any(np.diff(indices) != 1):
        raise Refused(f"the index list of axis {axis} is no contiguous range")
    return keep(net, x, axis, indices[0], indices[-1] + 1)


@recipe("gather", "crop")
def _gather_crop(net: Emitter, x: Blob, axis: int, indices: Sequence[int]) -> Blob:
    """Every s-th element of a spatial axis: one depthwise Convolution with a stride (CROP)."""
    steps = set(np.diff(indices).tolist())
    if len(x.shape) != 4 or axis < 2 or len(steps) != 1 or min(steps) < 2:
        raise Refused(f"axis {axis} is not spatial, or its index list has no constant step above 1")
    return _crop(net, x, {axis: range(indices[0], indices[-1] + 1, steps.pop())})


@recipe("gather", "shuffle")
def _gather_shuffle(net: Emitter, x: Blob, axis: int, indices: Sequence[int]) -> Blob:
    """A channel shuffle (recipes 5.11)."""
    size = x.shape[axis]
    group = indices[1:].index(1) + 1 if 1 in indices[1:] else size
    if axis != 1 or size % group or not np.array_equal(indices, np.arange(size).reshape(group, -1).T.ravel()):
        raise Refused(f"the index list of axis {axis} is no channel shuffle")
    return net.recipe("shuffle", x, group)


@recipe("gather", "view")
def _gather_view(net: Emitter, x: Blob, axis: int, indices: Sequence[int]) -> Blob:
    """Loops with strides that divide each other: Reshape, ranges, transposition, Tile, Reshape; no arithmetic."""
    loops = nest(np.asarray(indices))
    seen = view(loops, x.shape[axis]) if loops else None
    if seen is None or any(radix.backwards and radix.count == x.shape[axis] for radix in seen.axes):
        raise Refused(f"the index list of axis {axis} is no strided view")
    return reshape(net, _apply(net, x, axis, seen), (*x.shape[:axis], len(indices), *x.shape[axis + 1 :]))


@recipe("gather", "take")
def _gather_take(net: Emitter, x: Blob, axis: int, indices: Sequence[int]) -> Blob:
    """Slices and Concat when the list falls into few runs, else a one-hot matrix of moderate size."""
    pieces = 1 + int(np.count_nonzero(np.diff(indices) != 1))
    if pieces > _FEW_PIECES and x.shape[axis] * len(indices) > _LARGEST_MATRIX:
        raise Refused(
            f"an index list of {pieces} pieces on axis {axis} needs a one-hot matrix of {len(indices)}x{x.shape[axis]}"
            f" floats (at most {_LARGEST_MATRIX})"
        )
    return net.recipe("take", x, axis, indices)


def _apply(net: Emitter, x: Blob, axis: int, seen: View) -> Blob:
    """A view of one axis, its loops in place of the axis."""
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    x = reshape(net, x, (*before, *(radix.size for radix in seen.axes), *behind))
    for place, radix in enumerate(seen.axes, start=axis):
        x = gather(net, x, place, range(radix.start, radix.start + radix.count))
        if radix.backwards:
            x = gather(net, x, place, range(radix.count)[::-1])
    moved = [loop for loop in seen.loops if loop is not None]
    fixed = [place for place in range(len(seen.axes)) if place not in moved]
    order = [*range(axis), *(axis + place for place in (*moved, *fixed))]
    ones = [1 if loop is None else count for loop, count in zip(seen.loops, seen.counts, strict=True)]
    x = transpose(net, x, [*order, *range(len(order), len(x.shape))], result=(*before, *ones, *behind))
    for place, (loop, count) in enumerate(zip(seen.loops, seen.counts, strict=True), start=axis):
        x = tile(net, x, place, count if loop is None else 1)
    return x


def _crop(net: Emitter, x: Blob, ranges: dict[int, range]) -> Blob:
    """Strided ranges of the spatial axes of a 4-D blob in one layer."""
    full = [ranges.get(axis, range(x.shape[axis])) for axis in (2, 3)]
    behind = [size - 1 - kept[-1] for size, kept in zip(x.shape[2:], full, strict=True)]
    return net.recipe("crop", x, [kept[0] for kept in full], behind, [kept.step for kept in full])


@lowers("Slice")
def _slice(op: Op, net: Emitter) -> Blob:
    """Ranges axis by axis; strided spatial axes of a map together (recipes 11.1–11.3)."""
    x = op.blob()
    starts, ends, axes, steps = (
        [int(v) for v in op.need_const(i, name)] for i, name in enumerate(("starts", "ends", "axes", "steps"), start=1)
    )
    ranges = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = x.shape[axis]
        ranges[axis] = range(size)[start:end:step]
        if not ranges[axis]:
            raise Refused(f"starts {start}, ends {end}, steps {step} select nothing of axis {axis} (size {size})")
    spatial = {a: r for a, r in ranges.items() if len(x.shape) == 4 and a > 1 and r.step > 1 and len(r) > 1}
    for axis, kept in ranges.items():
        if axis not in spatial:
            x = gather(net, x, axis, kept)
    return _crop(net, x, spatial) if spatial else x


@lowers("Split")
def _split(op: Op, net: Emitter) -> list[Blob]:
    """One Slice layer; a single part is the input itself (recipes 11.5)."""
    x, axis = op.blob(), int(op.attribute("axis", 0))
    sizes = [shape[axis] for shape in op.outputs]
    if 0 in sizes:
        raise Refused(f"split {sizes} holds an empty part")
    if len(sizes) == 1:
        return [x]
    points = np.cumsum(sizes)[:-1]
    return list(net.many(Slice(axis=axis, slice_point=tuple(int(p) for p in points), tops=len(sizes)), x))


@lowers("Split", variant="kept")
def _split_read(op: Op, net: Emitter) -> list[Blob]:
    """Every part that something reads by itself, so that no unread part becomes an output (recipes 11.5)."""
    x, axis = op.blob(), int(op.attribute("axis", 0))
    sizes = [shape[axis] for shape in op.outputs]
    if all(op.wanted(i) for i in range(len(sizes))):
        raise Refused("every part is read")
    ends = np.cumsum(sizes).tolist()
    parts = zip(ends, sizes, strict=True)
    return [
        keep(net, x, axis, end - size, end) if op.wanted(i) else Blob("", op.outputs[i])
        for i, (end, size) in enumerate(parts)
    ]


@lowers("Concat")
def _concat(op: Op, net: Emitter) -> Blob:
    """One Concat layer over the parts that hold anything; constants become layers (recipes 11.8, 11.9)."""
    parts = []
    for i in range(len(op)):
        array = op.const(i)
        if 0 not in op.shape(i):
            parts.append(op.blob(i) if array is None else net.recipe("constant", array))
    return parts[0] if len(parts) == 1 else concat(net, parts, int(op.attribute("axis")))


@lowers("Split", variant="rows")
def _split_rows(op: Op, net: Emitter) -> list[Blob]:
    """Any axis as that of (batch, before, axis, behind), whatever shape the tensor has."""
    x, axis = op.blob(), int(op.attribute("axis", 0))
    points = np.cumsum([shape[axis] for shape in op.outputs])[:-1].tolist()
    rows = reshape(net, x, around(x, axis))
    parts = net.many(Slice(axis=2, slice_point=tuple(points), tops=len(op.outputs)), rows)
    return [reshape(net, part, shape) for part, shape in zip(parts, op.outputs, strict=True)]


@lowers("Concat", variant="rows")
def _concat_rows(op: Op, net: Emitter) -> Blob:
    """Any axis as the last one of (batch, before, axis and behind), whatever shape the tensors have."""
    axis = int(op.attribute("axis"))
    views = [around(op.blob(i), axis) for i in range(len(op))]
    first = views[0][1] == 1
    shapes = [(n, size, behind) if first else (n, before, size * behind) for n, before, size, behind in views]
    parts = [reshape(net, op.blob(i), shape) for i, shape in enumerate(shapes)]
    return reshape(net, concat(net, parts, 1 if first else 2), op.outputs[0])


@lowers("CenterCropPad")
def _center_crop_pad(op: Op, net: Emitter) -> Blob:
    """A centred range or zeros on both sides, axis by axis; the odd element lies behind (ONNX CenterCropPad 18)."""
    x = op.blob()
    for axis, wanted in enumerate(op.outputs[0]):
        extra = wanted - x.shape[axis]
        front = abs(extra) // 2
        if extra < 0:
            x = keep(net, x, axis, front, front + wanted)
        elif extra > 0:
            x = net.recipe("constant_pad", x, axis, front, extra - front, value=0.0)
    return x
