"""What reads a map between its pixels: GridSample, RoiAlign, DeformConv.

On each spatial axis a place has *taps*: pixels and their weights. The value there is the sum over all combinations of
taps; all of it is element-wise arithmetic and one gather per combination, which TVM fuses into one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.common.indices import picked, positions, strides, wrapped
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_FARTHEST = 2.0**30
"""Places beyond are moved here: their pixels are outside of every map, and they fit an integer."""


@dataclass(frozen=True)
class _Tap:
    """A pixel (int64, inside) of every place on one axis, and its weight; None is 1."""

    pixel: Value
    weight: Value | None


def _sampled(net: Net, x: Value, first: Value, axes: Sequence[Sequence[_Tap]]) -> Value:
    """The values of `x` at places; `first`: the flat position of the map that each place is on."""
    return reduce(lambda a, b: net("add", a, b), _corners(net, x, first, axes))


def _corners(net: Net, x: Value, first: Value, axes: Sequence[Sequence[_Tap]]) -> list[Value]:
    """Each combination's pixel times its weight."""
    steps = strides(x.shape[-len(axes) :])
    corners = []
    for taps in product(*axes):
        flat = positions(net, [(tap.pixel, step) for tap, step in zip(taps, steps, strict=True)], first)
        weights = [tap.weight for tap in taps if tap.weight is not None]
        corners.append(reduce(lambda a, b: net("multiply", a, b), weights, picked(net, x, flat)))
    return corners


_Outside = Callable[[Net, Value, int], tuple[Value, Value | None]]
"""Pixels that may lie outside of an axis of some size → pixels inside, and what to multiply their values by."""


_KEYS = -0.75
"""The coefficient of ONNX's cubic kernel (GridSample has no attribute for it)."""


def _taps(net: Net, place: Value, size: int, mode: str, outside: _Outside) -> list[_Tap]:
    """The taps of places on an axis: the nearest pixel (halves to the even one), two, or four."""
    if mode == "nearest":
        return [_Tap(*outside(net, net.cast(net.round_half_even(place), "int64"), size))]
    whole = net("floor", place)
    fraction = net("subtract", place, whole)
    start = net.cast(whole, "int64")
    weights = _linear(net, fraction) if mode == "linear" else _cubic(net, fraction, _KEYS)
    taps = []
    for offset, weight in weights.items():
        pixel, factor = outside(net, net("add", start, net.like(offset, start)), size)
        taps.append(_Tap(pixel, weight if factor is None else net("multiply", weight, factor)))
    return taps


def _linear(net: Net, fraction: Value) -> dict[int, Value]:
    return {0: net("subtract", net.like(1, fraction), fraction), 1: fraction}


def _cubic(net: Net, fraction: Value, a: float) -> dict[int, Value]:
    """Keys' kernel at the distances of four pixels."""
    back = net("subtract", net.like(1, fraction), fraction)
    far = (a, -5 * a, 8 * a, -4 * a)
    near = (a + 2, -(a + 3), 0.0, 1.0)
    one = net.like(1, fraction)
    return {
        -1: _polynomial(net, net("add", fraction, one), far),
        0: _polynomial(net, fraction, near),
        1: _polynomial(net, back, near),
        2: _polynomial(net, net("add", back, one), far),
    }


def _polynomial(net: Net, x: Value, coefficients: Sequence[float]) -> Value:
    y = net.like(coefficients[0], x)
    for c in coefficients[1:]:
        y = net("add", net("multiply", y, x), net.like(c, x))
    return y


def _inside(net: Net, pixel: Value, size: int) -> Value:
    return net("minimum", net("maximum", pixel, net.like(0, pixel)), net.like(size - 1, pixel))


def _border(net: Net, pixel: Value, size: int) -> tuple[Value, Value | None]:
    """The nearest pixel."""
    return _inside(net, pixel, size), None


def _zeros(net: Net, pixel: Value, size: int) -> tuple[Value, Value | None]:
    """Nothing outside."""
    kept = _inside(net, pixel, size)
    return kept, net.cast(net("equal", kept, pixel, dtype="bool"), "float32")


def _reflection_at_pixels(net: Net, pixel: Value, size: int) -> tuple[Value, Value | None]:
    """Mirrored at the middle of the outermost pixels."""
    period = max(2 * (size - 1), 1)
    turn = net("mod", net.absolute(pixel), net.like(period, pixel))
    return net("minimum", turn, net("subtract", net.like(2 * (size - 1), pixel), turn)), None


def _reflection_at_edges(net: Net, pixel: Value, size: int) -> tuple[Value, Value | None]:
    """Mirrored at the outer edges of the outermost pixels."""
    mirrored = net("subtract", net.like(-1, pixel), pixel)
    turn = net("mod", net("maximum", pixel, mirrored), net.like(2 * size, pixel))
    return net("minimum", turn, net("subtract", net.like(2 * size - 1, pixel), turn)), None


_OUTSIDE: dict[tuple[str, bool], _Outside] = {
    ("zeros", False): _zeros,
    ("zeros", True): _zeros,
    ("border", False): _border,
    ("border", True): _border,
    ("reflection", False): _reflection_at_edges,
    ("reflection", True): _reflection_at_pixels,
}


@emits(BOTH, "GridSample")
def grid_sample(op: Op, net: Net) -> Value:
    """Every mode, over any number of axes (onnxruntime: cubic over two)."""
    x, grid = op.value(0), op.value(1)
    aligned = bool(op.attribute("align_corners"))
    outside = _OUTSIDE[op.attribute("padding_mode"), aligned]
    sizes, out = x.shape[2:], grid.shape[1:-1]
    axes = []
    for axis, size in enumerate(sizes):
        one = net.take(grid, net.const(np.array(len(sizes) - 1 - axis)), grid.rank - 1)  # its pairs are x, y
        place = _denormalised(net, net.reshape(one, (grid.shape[0], 1, *out)), size, aligned)
        axes.append(_taps(net, place, size, op.attribute("mode"), outside))
    return _sampled(net, x, _maps(net, x.shape[:2], math.prod(sizes), len(out)), axes)


def _denormalised(net: Net, place: Value, size: int, aligned: bool) -> Value:
    """-1 … 1 as pixels, as onnxruntime computes it."""
    one = net("add", place, net.like(1, place))
    if aligned:
        pixels = net("multiply", net("divide", one, net.like(2, one)), net.like(size - 1, one))
    else:
        scaled = net("subtract", net("multiply", one, net.like(size, one)), net.like(1, one))
        pixels = net("divide", scaled, net.like(2, one))
    return net("clip", pixels, -_FARTHEST, _FARTHEST)


def _maps(net: Net, shape: Shape, size: int, axes: int) -> Value:
    """The flat position at which each map begins, with so many axes behind."""
    return net.const((np.arange(math.prod(shape), dtype=np.int64) * size).reshape(*shape, *[1] * axes))


@emits(BOTH, "DeformConv")
def deform_conv(op: Op, net: Net) -> Value:
    """The pixels that every kernel position reads, as columns; then a product with the weight."""
    x, weight = op.value(0), op.value(1)
    if x.rank != 4:
        raise Refused(f"a deformable convolution over {x.rank - 2} axes")
    groups, parts = op.attribute("group", 1), op.attribute("offset_group", 1)
    items, channels, *sizes = x.shape
    kernel, out = weight.shape[2:], op.outputs[0][2:]
    count = math.prod(kernel)
    # (N, offset groups, channels of each, kernel positions, output rows, columns)
    offsets = net.reshape(op.value(2), (items, parts, 1, count, 2, *out))
    axes = []
    for axis, size in enumerate(sizes):
        step, pad, dilation = (
            op.attribute(name, default)[axis]
            for name, default in (("strides", (1, 1)), ("pads", (0, 0)), ("dilations", (1, 1)))
        )
        own = np.indices(kernel)[axis].reshape(-1, 1, 1) * dilation - pad
        moved = np.arange(out[axis]).reshape([-1 if a == axis else 1 for a in range(2)]) * step
        offset = net.take(offsets, net.const(np.array(axis)), 4)
        place = net("add", offset, net.const((own + moved).astype(np.float32)))
        axes.append(_taps(net, net("clip", place, -_FARTHEST, _FARTHEST), size, "linear", _zeros))
    columns = _sampled(net, x, _maps(net, (items, parts, channels // parts), math.prod(sizes), 3), axes)
    if op.has(4):
        columns = net("multiply", columns, net.reshape(op.value(4), (items, parts, 1, count, *out)))
    columns = net.reshape(columns, (items, groups, channels // groups * count, math.prod(out)))
    rows = net.reshape(weight, (1, groups, weight.shape[0] // groups, weight.shape[1] * count))
    y = net.reshape(net.matmul(rows, columns), op.outputs[0])
    return net.add_bias(y, op.value(3)) if op.has(3) else y


@emits(BOTH, "RoiAlign")
def roi_align(op: Op, net: Net) -> Value:
    """The mean of samples in each cell of a region: TVM's own where their number depends on the region's size.

    Refused: maxima, for onnxruntime takes those of the weighted pixels, as no other does; and as many samples as a
    region is large where regions may have negative sizes.
    """
    if op.attribute("mode") != "avg":
        raise Refused(f"mode {op.attribute('mode')}")
    half = op.attribute("coordinate_transformation_mode") == "half_pixel"
    if op.attribute("sampling_ratio"):
        return _fixed_samples(op, net, half)
    if half:
        raise Refused("sampling_ratio = 0 with half_pixel coordinates")
    return _adaptive_samples(op, net)


def _adaptive_samples(op: Op, net: Net) -> Value:
    x, rois = op.value(0), op.value(1)
    items = net.cast(wrapped(net, op.value(2), x.shape[0]), "float32")
    regions = net.concat([net.reshape(items, (rois.shape[0], 1)), rois], 1)
    cells, scale = list(op.outputs[0][2:]), op.attribute("spatial_scale")
    return net("vision.roi_align", x, regions, cells, scale, shape=op.outputs[0], sample_ratio=0)


def _fixed_samples(op: Op, net: Net, half: bool) -> Value:
    x, rois, batch, samples = op.value(0), op.value(1), op.value(2), op.attribute("sampling_ratio")
    axes = []
    for axis, (size, count) in enumerate(zip(x.shape[2:], op.outputs[0][2:], strict=True)):
        low, high = (_column(net, rois, i, op.attribute("spatial_scale")) for i in (1 - axis, 3 - axis))
        length = net("subtract", high, low)
        if half:
            low = net("subtract", low, net.like(0.5, low))
        else:
            length = net("maximum", length, net.like(1, length))
        # (regions, channels, rows, samples in a row, columns, samples in a column)
        shape = [1, 1, 1, 1, 1, 1]
        shape[2 + 2 * axis : 4 + 2 * axis] = count, samples
        inner = (np.arange(count)[:, None] + (np.arange(samples) + 0.5) / samples) / count
        low, length = (net.reshape(v, (rois.shape[0], *[1] * 5)) for v in (low, length))
        place = net("add", net("multiply", length, net.const(inner.astype(np.float32).reshape(shape))), low)
        axes.append(_region_taps(net, place, size))
    channels, area = x.shape[1], math.prod(x.shape[2:])
    own = _maps(net, (1, channels), area, 4)
    items = net.reshape(wrapped(net, batch, x.shape[0]), (rois.shape[0], *[1] * 5))
    values = _sampled(net, x, positions(net, [(items, channels * area)], own), axes)
    return net("mean", values, [3, 5], shape=op.outputs[0])


def _column(net: Net, rois: Value, index: int, scale: float) -> Value:
    """One number of every region, times the scale."""
    one = net.take(rois, net.const(np.array(index)), 1)
    return net("multiply", one, net.like(scale, one))


def _region_taps(net: Net, place: Value, size: int) -> list[_Tap]:
    """A sample outside by up to a pixel is the border's, beyond that nothing."""
    within = net(
        "logical_and",
        net("greater_equal", place, net.like(-1, place), dtype="bool"),
        net("less_equal", place, net.like(size, place), dtype="bool"),
    )
    factor = net.cast(within, "float32")
    kept = net("clip", place, 0.0, float(size - 1))
    return [
        _Tap(tap.pixel, net("multiply", factor, tap.weight) if tap.weight else factor)
        for tap in _taps(net, kept, size, "linear", _border)
    ]


@emits(BOTH, "MaxRoiPool")
def max_roi_pool(op: Op, net: Net) -> Value:
    """The maximum over the columns of every cell of a region, then over its rows; nothing in a cell is 0.

    TVM's own shifts the borders of cells by 1e-5, onnxruntime does not.
    """
    x, rois = op.value(0), op.value(1)
    least, zero = net.like(float(np.finfo(np.float32).min), x), net.like(0, x)
    y = net.take(x, net.cast(_column(net, rois, 0, 1.0), "int64"), 0)
    (rows, some_rows), (columns, some_columns) = (_cells(op, net, axis) for axis in (0, 1))
    count, channels, height, width = y.shape
    cells = op.outputs[0][2:]
    # (regions, channels, rows, cells in a row, columns), then (regions, channels, cells, columns of cells, rows)
    y = net.reshape(y, (count, channels, height, 1, width))
    y = net("where", net.reshape(columns, (count, 1, 1, cells[1], width)), y, least, dtype=x.dtype)
    y = net("max", y, [4], shape=y.shape[:4])
    y = net.reshape(net.transpose(y, (0, 1, 3, 2)), (count, channels, 1, cells[1], height))
    y = net("where", net.reshape(rows, (count, 1, cells[0], 1, height)), y, least, dtype=x.dtype)
    y = net("max", y, [4], shape=y.shape[:4])
    some = net(
        "logical_and",
        net.reshape(some_rows, (count, 1, cells[0], 1)),
        net.reshape(some_columns, (count, 1, 1, cells[1])),
    )
    return net("where", some, y, zero, dtype=x.dtype)


def _cells(op: Op, net: Net, axis: int) -> tuple[Value, Value]:
    """Which pixels (regions, cells, size) lie in which cells of an axis; which cells (regions, cells) have any."""
    rois, size, count = op.value(1), op.shape()[2 + axis], op.outputs[0][2 + axis]
    first, last = (
        _rounded_away(net, net.reshape(_column(net, rois, i, op.attribute("spatial_scale")), (rois.shape[0], 1)))
        for i in (2 - axis, 4 - axis)
    )
    one = net.like(1, first)
    length = net("maximum", net("add", net("subtract", last, first), one), one)
    cell = net("divide", length, net.like(count, length))
    low, high = (
        net("clip", net("add", net(fn, net("multiply", cell, net.const(numbers))), first), 0.0, float(size))
        for fn, numbers in (
            ("floor", np.arange(count, dtype=np.float32)),
            ("ceil", np.arange(1, count + 1, dtype=np.float32)),
        )
    )
    pixels = net.const(np.arange(size, dtype=np.float32))
    low_, high_ = (net.reshape(v, (*v.shape, 1)) for v in (low, high))
    inside = net(
        "logical_and",
        net("greater_equal", pixels, low_, dtype="bool"),
        net("less", pixels, high_, dtype="bool"),
    )
    return inside, net("less", low, high, dtype="bool")


def _rounded_away(net: Net, x: Value) -> Value:
    """To whole numbers, halves away from zero."""
    even = net.round_half_even(x)
    tie = net("equal", net.absolute(net("subtract", x, even)), net.like(0.5, x), dtype="bool")
    return net("where", tie, net("add", x, net("multiply", net("sign", x), net.like(0.5, x))), even, dtype=x.dtype)
