"""Reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx2caffe import ranges
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.program import Array
from onnx2caffe.tvm.registry import BOTH, emits

__all__ = ["mean"]

_SAME = {"ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod", "ReduceSum": "sum"}


def mean(net: Net, x: Value, axes: Sequence[int]) -> Value:
    """The mean over axes, which stay with size 1."""
    return _reduced(net, "mean", x, axes)


@emits(BOTH, *_SAME)
def _same(op: Op, net: Net) -> Value:
    """The operator with ONNX's meaning."""
    x = op.value()
    if x.dtype == "bool":
        return _kept(op, net, _of_truths(net, _SAME[op.type], x, op.reduced))
    y = _reduced(net, _SAME[op.type], x, op.reduced)
    known = ranges.of(op.node.inputs[0])
    ends = {"ReduceMax": known.lo, "ReduceMin": known.hi}
    if x.dtype == "float32" and 0 not in x.shape and not math.isfinite(ends.get(op.type, 0.0)):
        y = _of_infinities(op, net, y)
    return _kept(op, net, y)


def _of_infinities(op: Op, net: Net, extreme: Value) -> Value:
    """The extreme where there is a finite number, else infinity: TVM starts from the last finite one."""
    x = op.value()
    last = float(np.finfo(np.float32).max)
    finite = (
        net("greater_equal", x, net.like(-last, x), dtype="bool")
        if op.type == "ReduceMax"
        else net("less_equal", x, net.like(last, x), dtype="bool")
    )
    some = _of_truths(net, "max", finite, op.reduced)
    return net("where", some, extreme, net("multiply", extreme, net.like(2, extreme)), dtype=x.dtype)


@emits(BOTH, "ReduceMean")
def reduce_mean(op: Op, net: Net) -> Value:
    """Of integers the sum, divided towards 0."""
    x, axes = op.value(), op.reduced
    if np.dtype(x.dtype).kind == "f" or 0 in x.shape:
        return _kept(op, net, mean(net, x, axes))
    count = math.prod(x.shape[axis] for axis in axes)
    return _kept(op, net, net("divide", _reduced(net, "sum", x, axes), net.like(count, x)))


@emits(BOTH, "ReduceL1")
def reduce_l1(op: Op, net: Net) -> Value:
    """Σ |x|."""
    return _kept(op, net, _reduced(net, "sum", net.absolute(op.value()), op.reduced))


@emits(BOTH, "ReduceSumSquare")
def reduce_sum_square(op: Op, net: Net) -> Value:
    """Σ x²."""
    return _kept(op, net, _sum_of_squares(op, net))


@emits(BOTH, "ReduceL2")
def reduce_l2(op: Op, net: Net) -> Value:
    """√ Σ x²."""
    return _kept(op, net, _in_floats(net, "sqrt", _sum_of_squares(op, net)))


@emits(BOTH, "ReduceLogSum")
def reduce_log_sum(op: Op, net: Net) -> Value:
    """Log Σ x."""
    return _kept(op, net, _in_floats(net, "log", _reduced(net, "sum", op.value(), op.reduced)))


@emits(BOTH, "ReduceLogSumExp")
def reduce_log_sum_exp(op: Op, net: Net) -> Value:
    """`max + log Σ exp(x - max)`, without overflow; beside an infinity the last finite number, as ∞ - ∞ is none."""
    x = op.value()
    if np.dtype(x.dtype).kind != "f":
        raise Refused(f"it is of {x.dtype}")
    most = _reduced(net, "max", x, op.reduced)
    if not math.isfinite(ranges.of(op.node.inputs[0]).hi):
        most = net("minimum", net.like(float(np.finfo(x.dtype).max), x), most)
    total = _reduced(net, "sum", net("exp", net("subtract", x, most)), op.reduced)
    return _kept(op, net, net("add", most, net("log", total)))


def _reduced(net: Net, fn: str, x: Value, axes: Sequence[int]) -> Value:
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    if 0 in x.shape:  # of which TVM leaves what was in memory
        return net.const(_of_nothing(fn, np.dtype(x.dtype), shape))
    return net(fn, x, shape=shape, axis=list(axes), keepdims=True) if axes else x


def _of_nothing(fn: str, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """What reductions of no numbers give."""
    if fn in ("max", "min"):
        low, high = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return np.full(shape, low if fn == "max" else high, dtype)
    if fn == "mean":
        raise Refused("the mean of no numbers")
    return np.full(shape, {"sum": 0, "prod": 1}[fn], dtype)


def _of_truths(net: Net, fn: str, x: Value, axes: Sequence[int]) -> Value:
    """Of booleans as numbers, since TVM knows no least one; the least number, which is that of none, is false too."""
    y = _reduced(net, fn, net.cast(x, "int8"), axes)
    return net("greater", y, net.like(0, y), dtype="bool")


def _kept(op: Op, net: Net, y: Value) -> Value:
    """The result, with or without the axes of size 1."""
    return net.reshape(y, op.outputs[0])


def _sum_of_squares(op: Op, net: Net) -> Value:
    x = op.value()
    return _reduced(net, "sum", net("multiply", x, x), op.reduced)


def _in_floats(net: Net, fn: str, x: Value) -> Value:
    """A function of real numbers; integers are cast, and the result back."""
    return net.cast(net(fn, net.cast(x, _floats(x.dtype))), x.dtype)


def _floats(dtype: str) -> str:
    return dtype if np.dtype(dtype).kind == "f" else "float64"
