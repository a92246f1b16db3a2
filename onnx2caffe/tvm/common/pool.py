"""Pooling.

TVM's own ceil_mode may add a window that lies behind the data, which ONNX does not have (facts/tvm.md §9). So TVM
always rounds down, and the pads at the ends are such that the windows that ONNX has, and no more, fit in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from onnx2caffe.decompose.windows import Axis
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.program import Array
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "MaxPool")
def max_pool(op: Op, net: Net) -> Sequence[Value | None]:
    """`nn.max_pool{1,2,3}d`; tap by tap where the places of the greatest elements are read."""
    axes = _axes(op)
    if op.wanted(1):
        return _with_indices(op, net, axes)
    return [_pool(op, net, "max", op.value(), axes), *[None] * (len(op.outputs) - 1)]


@emits(BOTH, "AveragePool")
def average_pool(op: Op, net: Net) -> Value:
    """`nn.avg_pool{1,2,3}d`; where the padding counts, the part of it that is TVM's and not ONNX' is taken out."""
    axes, padding = _axes(op), bool(op.attribute("count_include_pad"))
    if not all(a.counts(padding=padding).all() for a in axes):
        raise Refused(f"pads {op.attribute('pads')}: a window lies in the padding, its average is undefined")
    y = _pool(op, net, "avg", op.value(), axes, count_include_pad=padding)
    counts = reduce(np.multiply.outer, [a.counts(padding=True) for a in axes])
    whole = math.prod(a.kernel for a in axes)
    if not padding or (counts == whole).all():
        return y
    return net("multiply", y, net.const((whole / counts).astype(np.float32)))


@emits(BOTH, "LpPool")
def lp_pool(op: Op, net: Net) -> Value:
    """The p-th root of the sum of p-th powers: an average times the number of taps."""
    axes, p = _axes(op), op.attribute("p")
    means = _pool(op, net, "avg", _powers(net, op.value(), p), axes, count_include_pad=True)
    return _root(net, net("multiply", means, net.like(math.prod(a.kernel for a in axes), means)), p)


@emits(BOTH, "GlobalAveragePool")
def global_average_pool(op: Op, net: Net) -> Value:
    """The mean over all spatial axes."""
    return _over_map(op, net, "mean", op.value())


@emits(BOTH, "GlobalMaxPool")
def global_max_pool(op: Op, net: Net) -> Value:
    """The greatest element of all spatial axes."""
    return _over_map(op, net, "max", op.value())


def _over_map(op: Op, net: Net, fn: str, x: Value) -> Value:
    return net(fn, x, shape=op.outputs[0], axis=list(range(2, x.rank)), keepdims=True)


def _axes(op: Op) -> list[Axis]:
    """The windows of every spatial axis, the pad at the end such that they fit in."""
    kernel, pads = op.attribute("kernel_shape"), op.attribute("pads")
    rank = len(kernel)
    if rank not in (1, 2, 3):
        raise Refused(f"a pooling over {rank} axes")
    strides, dilations = op.attribute("strides"), op.attribute("dilations")
    sizes = op.shape()[2:], op.outputs[0][2:]
    return [Axis(*axis) for axis in zip(*sizes, kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)]


def _fitted(axis: Axis) -> int:
    """The pad at the end: ONNX' own if TVM makes the same windows with it."""
    return axis.behind if axis.behind - axis.stride < axis.reach <= axis.behind else axis.reach


def _pool(op: Op, net: Net, kind: str, x: Value, axes: Sequence[Axis], **attributes: Any) -> Value:
    return net(
        f"nn.{kind}_pool{len(axes)}d",
        x,
        shape=op.outputs[0],
        pool_size=[a.kernel for a in axes],
        strides=[a.stride for a in axes],
        dilation=[a.dilation for a in axes],
        padding=[*(a.front for a in axes), *(_fitted(a) for a in axes)],
        **attributes,
    )


def _powers(net: Net, x: Value, p: int) -> Value:
    """|x|^p."""
    if p == 2:
        return net("multiply", x, x)
    sizes = net.absolute(x)
    return sizes if p == 1 else net("power", sizes, net.like(p, x))


def _root(net: Net, x: Value, p: int) -> Value:
    if p == 2:
        return net("sqrt", x)
    return x if p == 1 else net("power", x, net.like(1 / p, x))


def _with_indices(op: Op, net: Net, axes: Sequence[Axis]) -> list[Value]:
    """The greatest tap of every window so far, and its place in the flat input: each tap is a strided slice."""
    x, out = op.value(), op.outputs[0]
    lowest = -math.inf if np.dtype(x.dtype).kind == "f" else int(np.iinfo(x.dtype).min)
    behind = [max(a.reach, 0) for a in axes]
    padded = net.pad(x, [0, 0, *(a.front for a in axes)], [0, 0, *behind], "constant", lowest)
    places = np.pad(_places(op), [(a.front, b) for a, b in zip(axes, behind, strict=True)])
    best: Value | None = None
    for tap in itertools.product(*(range(a.kernel) for a in axes)):
        starts = [offset * a.dilation for offset, a in zip(tap, axes, strict=True)]
        stops = [start + (a.out - 1) * a.stride + 1 for start, a in zip(starts, axes, strict=True)]
        steps = [a.stride for a in axes]
        here = net.slice(padded, [0, 0, *starts], [*out[:2], *stops], [1, 1, *steps])
        place = net.const(places[tuple(map(slice, starts, stops, steps))])
        if best is None:
            best, where = here, net.broadcast(place, out)
            continue
        better = net("greater", here, best, dtype="bool")
        best = net("where", better, here, best, dtype=x.dtype)
        where = net("where", better, place, where, dtype="int64")
    assert best is not None
    maps = np.arange(math.prod(out[:2]), dtype=np.int64).reshape(*out[:2], *[1] * len(axes))
    return [best, net("add", where, net.const(maps * math.prod(x.shape[2:])))]


def _places(op: Op) -> Array:
    """The place of every element of a map in the map, row by row or (storage_order 1) column by column."""
    shape = op.shape()[2:]
    places = np.arange(math.prod(shape), dtype=np.int64)
    return places.reshape(shape[::-1]).T if op.attribute("storage_order") else places.reshape(shape)
