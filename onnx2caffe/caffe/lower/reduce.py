"""Reductions over any axes, arg-extremes and TopK. Facts: recipes §10.

Caffe reduces from an axis to the last one, or in a pooling window. So axes are reduced in runs of neighbours, and any
run may be seen as the rows of (outer, 1, rows, inner): a column that Pooling or a Convolution takes whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnx2caffe.caffe.layers import ArgMax, Convolution, Eltwise, Pooling, Reduction, Slice, Softmax
from onnx2caffe.caffe.lower.arithmetic import (
    absolute,
    affine,
    at_least,
    difference,
    negative,
    power,
)
from onnx2caffe.caffe.lower.blocks import MOST_WEIGHTS, reshape
from onnx2caffe.caffe.lower.elementwise import log, refuse_integers
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.maps import around
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.pool import Mode, pool_axis
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape

__all__ = ["Run", "reduce"]

_WIDE = 1024
"""A longer axis is flipped factor by factor."""

_WIDEST = 4096
"""A matrix over an axis longer than this (64 MB) is no sensible layer."""

_MOST_FACTORS = 1024
"""A product of more elements than this would need as many tops."""


@dataclass(frozen=True)
class Run:
    """Neighbouring axes first … stop−1 of a shape."""

    shape: Shape
    first: int
    stop: int

    @property
    def rows(self) -> int:
        """The number of elements along the run."""
        return math.prod(self.shape[self.first : self.stop])

    @property
    def column(self) -> Shape:
        """The shape with the run as the rows of one column per outer and inner element: (outer, 1, rows, inner)."""
        return math.prod(self.shape[: self.first]), 1, self.rows, math.prod(self.shape[self.stop :])

    def __str__(self) -> str:
        return f"axes {self.first} to {self.stop - 1} of shape {list(self.shape)}"


def reduce(net: Emitter, kind: str, x: Blob, axes: Sequence[int], *, keepdims: bool = True) -> Blob:
    """Reduce over any axes. `kind`: MAX, MEAN, PROD, or Caffe's SUM, ASUM, SUMSQ."""
    shape = list(x.shape)
    out = [1 if axis in axes else size for axis, size in enumerate(shape) if keepdims or axis not in axes]
    runs = _runs(x.shape, axes)
    if not runs:
        x = _mapped(net, kind, x)
    for first, stop in reversed(runs):
        x = net.recipe("reduce", kind, x, Run(tuple(shape), first, stop))
        shape[first:stop] = [1] * (stop - first)
        kind = "SUM" if kind in ("ASUM", "SUMSQ") else kind
    return reshape(net, x, out)


def _runs(shape: Shape, axes: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges [first, stop) of neighbouring reduced axes; axes of size 1 part no run."""
    runs: list[tuple[int, int]] = []
    goes_on = False
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if axis in axes:
            first = runs.pop()[0] if goes_on else axis
            runs.append((first, axis + 1))
        goes_on = axis in axes
    return runs


@recipe("reduce", "Pooling")
def _by_pooling(net: Emitter, kind: str, x: Blob, run: Run) -> Blob:
    """Spatial axes of a map: one Pooling (recipes 10.1)."""
    pool = _pool(kind)
    if len(run.shape) != 4 or run.first < 2:
        raise Refused(f"{run} are not those of a map")
    x = reshape(net, x, run.shape)
    if run.stop - run.first == 2:
        return net.recipe("whole_pool", x, pool)
    return net(Pooling(pool=pool, kernel_size=(run.rows, 1) if run.first == 2 else (1, run.rows)), x)


@recipe("reduce", "Convolution")
def _by_channels(net: Emitter, kind: str, x: Blob, run: Run) -> Blob:
    """The channels of a map: Convolution 1×1 (recipes 10.5)."""
    if len(run.shape) != 4 or (run.first, run.stop) != (1, 2) or kind in ("MAX", "PROD"):
        raise Refused(f"{kind} over {run} is no sum of a map's channels")
    return _weighted(net, _mapped(net, kind, reshape(net, x, run.shape)), (1, 1), 1 / run.rows if kind == "MEAN" else 1)


@recipe("reduce", "Reduction")
def _by_reduction(net: Emitter, kind: str, x: Blob, run: Run) -> Blob:
    """Tail axes: Caffe's own layer (recipes 10.4)."""
    if math.prod(run.shape[run.stop :]) > 1 or kind in ("MAX", "PROD"):
        raise Refused(f"Reduction has no {kind} over {run}")
    return net(Reduction(operation=kind, axis=run.first), reshape(net, x, run.shape))


@recipe("reduce", "column")
def _by_column(net: Emitter, kind: str, x: Blob, run: Run) -> Blob:
    """Any run: Pooling or a Convolution of ones over its column (recipes 10.2, RED)."""
    if kind == "PROD":
        raise Refused("neither Pooling nor Convolution multiplies")
    if kind in ("MAX", "MEAN"):
        return net(Pooling(pool=_pool(kind), kernel_size=(run.rows, 1)), reshape(net, x, run.column))
    return _weighted(net, reshape(net, _mapped(net, kind, x), run.column), (run.rows, 1), 1)


@recipe("reduce", "map")
def _by_map(net: Emitter, kind: str, x: Blob, run: Run) -> Blob:
    """Any run behind the batch as the rows of a map: Pooling in stages, times their number for sums (RED)."""
    if kind == "PROD":
        raise Refused("Pooling does not multiply")
    outer, _, rows, inner = run.column
    view = around(Blob(x.name, (outer, rows, inner), x.own), 1)
    y = pool_axis(net, reshape(net, _mapped(net, kind, x), view), "MAX" if kind == "MAX" else "AVE", 2)
    return power(net, y, scale=1.0 if kind in ("MAX", "MEAN") else run.rows)


@recipe("reduce", "Slice")
def _by_slices(net: Emitter, kind: str, x: Blob, run: Run) -> Blob:
    """PROD: every element of the run as a top of Slice, then Eltwise (recipes 10.7)."""
    if kind != "PROD" or run.rows > _MOST_FACTORS:
        raise Refused(f"{kind} over {run.rows} elements (at most {_MOST_FACTORS} factors)")
    outer, _, rows, inner = run.column
    tops = net.many(Slice(axis=1, tops=rows), reshape(net, x, (outer, rows, inner)))
    return net(Eltwise(operation="PROD"), *tops)


def _pool(kind: str) -> Mode:
    if kind not in ("MAX", "MEAN"):
        raise Refused(f"Pooling has no {kind}")
    return "AVE" if kind == "MEAN" else "MAX"


def _mapped(net: Emitter, kind: str, x: Blob) -> Blob:
    """What is left to SUM."""
    if kind == "ASUM":
        return absolute(net, x)
    return power(net, x, 2.0) if kind == "SUMSQ" else x


def _weighted(net: Emitter, x: Blob, kernel: Shape, weight: float) -> Blob:
    """A Convolution to one channel with one weight everywhere.

    Raises:
        Refused: they would be more than `MOST_WEIGHTS`.

    """
    if x.shape[1] * math.prod(kernel) > MOST_WEIGHTS:
        raise Refused(f"a kernel of {list(kernel)} over {x.shape[1]} channels is too large")
    weights = np.full((1, x.shape[1], *kernel), weight, np.float32)
    return net(Convolution(num_output=1, kernel_size=kernel, bias_term=False, blobs=(weights,)), x)


def _reduced(op: Op, net: Emitter, kind: str, x: Blob) -> Blob:
    return reduce(net, kind, x, op.reduced, keepdims=bool(op.attribute("keepdims", 1)))


@lowers("ReduceMean")
def _reduce_mean(op: Op, net: Emitter) -> Blob:
    """The recipe "reduce" (recipes 10.1–10.5)."""
    refuse_integers(op, "rounds")
    return _reduced(op, net, "MEAN", op.blob())


@lowers("ReduceMax")
def _reduce_max(op: Op, net: Emitter) -> Blob:
    """The recipe "reduce" (recipes 10.1–10.3, 10.6)."""
    return _reduced(op, net, "MAX", op.blob())


@lowers("ReduceMin")
def _reduce_min(op: Op, net: Emitter) -> Blob:
    """`−max(−x)` (recipes 10.2)."""
    return negative(net, _reduced(op, net, "MAX", negative(net, op.blob())))


@lowers("ReduceSum")
def _reduce_sum(op: Op, net: Emitter) -> Blob:
    """The recipe "reduce" (recipes 10.2–10.5, 10.8)."""
    return _reduced(op, net, "SUM", op.blob())


@lowers("ReduceProd")
def _reduce_prod(op: Op, net: Emitter) -> Blob:
    """The recipe "reduce": every element by itself (recipes 10.7)."""
    return _reduced(op, net, "PROD", op.blob())


@lowers("ReduceL1")
def _reduce_l1(op: Op, net: Emitter) -> Blob:
    """`Σ |x|` (recipes 10.4)."""
    return _reduced(op, net, "ASUM", op.blob())


@lowers("ReduceSumSquare")
def _reduce_sum_square(op: Op, net: Emitter) -> Blob:
    """`Σ x²` (recipes 10.4)."""
    return _reduced(op, net, "SUMSQ", op.blob())


@lowers("ReduceL2")
def _reduce_l2(op: Op, net: Emitter) -> Blob:
    """`√Σ x²` (recipes 10.4)."""
    refuse_integers(op, "rounds")
    return power(net, _reduced(op, net, "SUMSQ", op.blob()), 0.5)


@lowers("ReduceLogSum")
def _reduce_log_sum(op: Op, net: Emitter) -> Blob:
    """`ln Σ x` (ONNX ReduceLogSum-18)."""
    refuse_integers(op, "rounds")
    return log(net, _reduced(op, net, "SUM", op.blob()))


@lowers("ReduceLogSumExp")
def _reduce_log_sum_exp(op: Op, net: Emitter) -> Blob:
    """`max x − ln(max(Softmax x))`, run by run (recipes 10.7).

    The largest probability is 1 / Σ e^(x − max): it neither overflows nor underflows.
    """
    refuse_integers(op, "rounds")
    x, axes = op.blob(), op.reduced
    shape = list(x.shape)
    for first, stop in reversed(_runs(x.shape, axes)):
        x = reshape(net, x, Run(tuple(shape), first, stop).column)
        peak = reduce(net, "MAX", net(Softmax(axis=2), x), [2])
        x = difference(net, reduce(net, "MAX", x, [2]), log(net, peak))
        shape[first:stop] = [1] * (stop - first)
    return reshape(net, x, op.outputs[0])


@lowers("ArgMax", "ArgMin", variant="flip")
def _arg_flip(op: Op, net: Emitter) -> Blob:
    """Caffe names the last of equal values, ONNX by default the first: the first of the flipped axis (recipes 10.9)."""
    x, axis = _arg_input(op, net)
    size = x.shape[axis]
    if op.attribute("select_last_index", 0) or size == 1:
        return reshape(net, net(ArgMax(axis=axis), x), op.outputs[0])
    return reshape(net, _first_index(net, x, axis, 1), op.outputs[0])


@lowers("ArgMax", "ArgMin", variant="weights")
def _arg_weights(op: Op, net: Emitter) -> Blob:
    """For a long axis: of [x = max] times falling weights, the largest is the first (recipes 10.9)."""
    x, axis = _arg_input(op, net)
    size = x.shape[axis]
    is_peak = at_least(net, difference(net, x, reduce(net, "MAX", x, [axis])))
    falling = np.arange(size, 0, -1).reshape((size,) + (1,) * (len(x.shape) - axis - 1))
    return reshape(net, net(ArgMax(axis=axis), affine(net, is_peak, falling)), op.outputs[0])


def _arg_input(op: Op, net: Emitter) -> tuple[Blob, int]:
    x = op.blob()
    return (x if op.type == "ArgMax" else negative(net, x)), op.attribute("axis", 0)


def _first_index(net: Emitter, x: Blob, axis: int, k: int) -> Blob:
    """Indices of the k largest along an axis, the first of equal ones first."""
    indices = net(ArgMax(axis=axis, top_k=k), _flip(net, x, axis))
    return power(net, indices, scale=-1.0, shift=x.shape[axis] - 1.0)


def _flip(net: Emitter, x: Blob, axis: int) -> Blob:
    """An axis in reverse: one matrix, or for a long axis one for each factor of its length.

    Raises:
        Refused: a long axis without factors.

    """
    size = x.shape[axis]
    parts = [size] if size <= _WIDE else _factors(size)
    y = reshape(net, x, (*x.shape[:axis], *parts, *x.shape[axis + 1 :]))
    for i, part in enumerate(parts, start=axis):
        if part > _WIDEST:
            raise Refused(f"axis {axis} of {size} elements needs a matrix larger than {_WIDEST}²")
        y = net.recipe("axis_map", y, i, np.eye(part, dtype=np.float32)[::-1])
    return reshape(net, y, x.shape)


def _factors(size: int) -> list[int]:
    """The two factors of `size` nearest to its root; a prime stays alone."""
    small = next(f for f in range(math.isqrt(size), 0, -1) if size % f == 0)
    return [small, size // small] if small > 1 else [size]


_LARGEST_SELECTION = 2**20
"""K times the axis: room for the top 40 of 25,000 classes, not for the peaks of a map."""


@lowers("TopK")
def _top_k(op: Op, net: Emitter) -> Sequence[Blob]:
    """Values and indices in two ArgMax layers (recipes 10.10).

    Raises:
        Refused: sorted = 0, whose order is up to the runtime, or a selection from a whole map.

    """
    x, axis = op.blob(), op.attribute("axis", -1)
    k = int(op.need_const(1, "K").item())
    if k * x.shape[axis] > _LARGEST_SELECTION:
        raise Refused(
            f"K = {k} of {x.shape[axis]} is a post-processing: the order of near-equal scores, which rounding decides "
            f"(at most K · size = {_LARGEST_SELECTION})"
        )
    if k > 1 and not op.attribute("sorted", 1):
        raise Refused("sorted = 0 leaves the order open")
    sign = 1.0 if op.attribute("largest", 1) else -1.0
    x = power(net, x, scale=sign)
    values, indices = Blob("", ()), Blob("", ())
    if op.wanted(0):
        values = power(net, net(ArgMax(axis=axis, top_k=k, out_max_val=True), x), scale=sign)
    if op.wanted(1):
        indices = _first_index(net, x, axis, k)
    return [values, indices]
