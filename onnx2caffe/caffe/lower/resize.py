"""Resize in all modes, and GridSample with a constant grid.

A Resize is a linear map per axis (`decompose.resize`). Cheap layers are recognised by building their own matrix and
comparing it with the node's, never by attribute names. Facts: recipes §4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnx2caffe.caffe.layers import Concat, Deconvolution, InnerProduct, Interp, Pooling, Slice
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.blocks import MOST_WEIGHTS, add_map, depthwise, outer, per_channel, reshape, spatial_rank
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.maps import forward, pointwise
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.resize import AxisMap, Tent, axis_maps, same, sampling_matrix, tent
from onnx2caffe.frontend.evaluate import NotEvaluable

__all__: list[str] = []

_LARGEST_RATIO = 8
"""Nearest by p/q: the largest p and q worth p copies of everything."""


@lowers("Resize")
def resize(op: Op, net: Emitter) -> Blob:
    """Batch and channel axes first, then the spatial ones together by the recipe "resize" (recipes §4)."""
    x, shape, out = op.blob(), op.shape(), op.outputs[0]
    if 0 in out:
        raise Refused(f"output shape {out} is empty: Caffe has no blobs of size 0")
    if (largest := max((a * b for a, b in zip(shape, out, strict=True)), default=0)) > MOST_WEIGHTS:
        raise Refused(f"from {list(shape)} to {list(out)} takes a matrix of {largest:,} weights for one axis")
    attributes = {name: op.attribute(name) for name in op.node.attributes}
    roi = op.need_const(1, "roi") if op.has(1) else None
    try:
        maps = axis_maps(shape, out, attributes, op.const(2), roi)
    except NotEvaluable as problem:
        raise Refused(str(problem)) from problem
    if (missing := 4 - len(shape)) > 1:
        x = reshape(net, x, (1,) * missing + shape)
        maps = [_UNCHANGED] * missing + maps
    for axis in (0, 1):
        x = _along(net, x, axis, maps[axis])
    if not all(m.identity for m in maps[2:]):
        x = net.recipe("resize", x, maps[2:])
    return reshape(net, _extrapolated(net, x, maps, attributes.get("extrapolation_value", 0.0)), out)


_UNCHANGED = AxisMap(np.ones((1, 1), np.float32), np.zeros(1, bool))


def _along(net: Emitter, x: Blob, axis: int, mapped: AxisMap) -> Blob:
    """One axis by itself."""
    if mapped.identity:
        return x
    if (index := mapped.index) is not None:
        return net.recipe("take", x, axis, index.tolist())
    return net.recipe("axis_map", x, axis, mapped.matrix)


def _extrapolated(net: Emitter, x: Blob, maps: Sequence[AxisMap], value: float) -> Blob:
    """Adds extrapolation_value where any axis is outside: there the matrices have left a zero."""
    if any(m.outside.any() for m in maps[:2]):
        raise Refused("extrapolation on the batch or channel axis")
    inside = outer([1.0 - m.outside for m in maps[2:]])
    return add_map(net, x, value * (1 - inside))


@recipe("resize", "broadcast")
def resize_from_one(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """Axes of size 1 are repeated (recipes 4.16)."""
    if not all(m.identity or (m.matrix.shape[1] == 1 and (m.matrix == 1).all()) for m in maps):
        raise Refused("not from size 1")
    return net.recipe("broadcast", x, (*x.shape[:2], *(len(m.matrix) for m in maps)))


@recipe("resize", "repeat")
def resize_by_repetition(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """Every element a whole number of times (recipes 4.1)."""
    factors = [_ratio(m, numerators=[len(m.matrix) // m.matrix.shape[1]], denominators=[1]).p for m in maps]
    return net.recipe("upsample", x, factors)


@recipe("resize", "average")
def resize_by_average(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """The means of neighbouring boxes: Pooling AVE (recipes 4.11)."""
    steps = [_steps(m.matrix) for m in maps]
    for (stride, taps), m in zip(steps, maps, strict=True):
        if len(taps) != stride or m.matrix.shape[1] != stride * len(m.matrix) or not np.allclose(taps, 1 / stride):
            raise Refused("not the means of boxes")
    kernel = tuple(stride for stride, _ in steps)
    return net(Pooling(pool="AVE", kernel_size=kernel, stride=kernel), x)


@recipe("resize", "stride")
def resize_by_stride(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """The same taps at every step: one depthwise Convolution (recipes 4.3, 4.12, 4.13)."""
    steps = [_steps(m.matrix) for m in maps]
    return depthwise(net, x, [taps for _, taps in steps], stride=[stride for stride, _ in steps])


@recipe("resize", "interp")
def resize_by_interp(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """Linear with align_corners: Interp (recipes 4.10)."""
    for m in maps:
        out, size = m.matrix.shape
        places = np.arange(out) * ((size - 1) / max(out - 1, 1))
        if not same(m.matrix, np.maximum(0, 1 - np.abs(places[:, None] - np.arange(size)))):
            raise Refused("not linear with aligned corners")
    if len(maps) != 2:
        raise Refused(f"Interp has two spatial axes, the input has {len(maps)}")
    return net(Interp(height=len(maps[0].matrix), width=len(maps[1].matrix)), x)


@recipe("resize", "deconvolution")
def resize_by_deconvolution(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """Linear by whole factors: a depthwise Deconvolution of tents (recipes 4.5, 4.8, 4.9).

    At the border a tent without its neighbour weighs less than 1; dividing by the weight that is there equals repeating
    the edge.
    """
    tents = [_tent(m.matrix) for m in maps]
    kernel = outer([t.taps for t in tents])
    layer = Deconvolution(
        num_output=x.shape[1],
        kernel_size=kernel.shape,
        stride=tuple(t.stride for t in tents),
        pad=tuple(t.pad for t in tents),
        group=x.shape[1],
        bias_term=False,
        blobs=(per_channel(kernel, x.shape[1]),),
    )
    return net.recipe("bilinear", net(layer, x), [t.factors for t in tents])


@recipe("bilinear", "exact")
def border_restored(net: Emitter, x: Blob, factors: Sequence[Array]) -> Blob:
    """What the border lost is multiplied in."""
    return net.recipe("scale_map", x, factors)


@recipe("bilinear", "deconv", approximate=True)
def border_left(net: Emitter, x: Blob, factors: Sequence[Array]) -> Blob:
    """The Deconvolution as it is: the outermost rows and columns are too small (recipes 4.7)."""
    return x


@recipe("resize", "ratio")
def resize_by_ratio(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """Nearest by p/q: p copies of everything, every q-th kept (recipes 4.2)."""
    ratios = [_ratio(m) for m in maps]
    x = net.recipe("upsample", x, [r.p for r in ratios])
    front = [r.first for r in ratios]
    behind = [
        size - r.first - (len(m.matrix) - 1) * r.q - 1 for size, r, m in zip(x.shape[2:], ratios, maps, strict=True)
    ]
    return net.recipe("crop", x, front, behind, [r.q for r in ratios])


@recipe("resize", "matrix")
def resize_by_matrices(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """Anything: one matrix per axis, the one that shrinks most first (recipes 4.4, 4.15)."""
    order = sorted(range(len(maps)), key=lambda i: len(maps[i].matrix) / maps[i].matrix.shape[1])
    for i in order:
        x = _along(net, x, 2 + i, maps[i])
    return x


@recipe("resize", "rotation")
def resize_by_rotations(net: Emitter, x: Blob, maps: Sequence[AxisMap]) -> Blob:
    """Anything: a matrix over the rows and one over the columns, each while they are the channels (AXM a)."""
    if len(maps) != 2:
        raise Refused(f"{len(maps)} spatial axes")
    for mapped in maps:
        x = pointwise(net, forward(net, x), mapped.matrix)
    return forward(net, x)


@dataclass(frozen=True)
class _Ratio:
    """Place j is place j·q + first of p copies of every element."""

    p: int
    q: int = 1
    first: int = 0


def _ratio(
    mapped: AxisMap,
    numerators: Sequence[int] = range(1, _LARGEST_RATIO + 1),
    denominators: Sequence[int] = range(1, _LARGEST_RATIO + 1),
) -> _Ratio:
    index = mapped.index
    if index is None:
        raise Refused("not nearest")
    places, size = np.arange(len(index)), mapped.matrix.shape[1]
    for p, q in itertools.product(numerators, denominators):
        first = next((f for f in range(max(p, q)) if ((places * q + f) // max(p, 1) == index).all()), None)
        if p and first is not None and places[-1] * q + first < size * p:
            return _Ratio(p, q, first)
    raise Refused("not nearest by a small ratio")


def _steps(matrix: Array) -> tuple[int, Array]:
    """Stride and taps when all rows are one row, moved by the stride."""
    out, size = matrix.shape
    first = (matrix != 0).argmax(1)
    stride = int(first[1] - first[0]) if out > 1 else size
    row = np.trim_zeros(matrix[0], "b")
    length = max(len(row), size - out * stride + 1)
    if stride < 1 or not len(row) or (out - 1) * stride + length > size:
        raise Refused("the rows of the map are not one row in steps")
    expected = np.zeros_like(matrix)
    for j in range(out):
        expected[j, j * stride : j * stride + length] = matrix[0, :length]
    if not same(matrix, expected):
        raise Refused("the rows of the map are not one row in steps")
    return stride, matrix[0, :length]


def _tent(matrix: Array) -> Tent:
    if (found := tent(matrix)) is None:
        raise Refused("not linear by a whole factor")
    return found


@lowers("GridSample")
def grid_sample(op: Op, net: Emitter) -> Blob:
    """A constant grid: the sampling matrix as an InnerProduct over whole maps (recipes 4.21)."""
    x, out = op.blob(), op.outputs[0]
    spatial_rank(x)
    grid = op.const(1)
    if grid is None:
        raise Refused("the grid (input 1) must be constant: no Caffe layer samples at computed places")
    places, sampled = math.prod(x.shape[2:]), math.prod(out[2:])
    if places * sampled > MOST_WEIGHTS:
        raise Refused(f"sampling {sampled} of {places} places takes a matrix of {places * sampled} weights")
    attributes = {name: op.attribute(name) for name in op.node.attributes}
    grids = grid[:1] if (grid == grid[:1]).all() else grid
    try:
        matrices = [sampling_matrix(x.shape[2:], item, attributes) for item in grids]
    except NotEvaluable as problem:
        raise Refused(str(problem)) from problem
    flat = reshape(net, x, (*x.shape[:2], places))
    items = [flat]
    if len(matrices) > 1:
        items = list(net.many(Slice(axis=0, slice_point=tuple(range(1, len(matrices))), tops=len(matrices)), flat))
    done = [
        net(InnerProduct(num_output=sampled, axis=2, bias_term=False, blobs=(matrix,)), item)
        for matrix, item in zip(matrices, items, strict=True)
    ]
    return reshape(net, net(Concat(axis=0), *done) if len(done) > 1 else done[0], out)
