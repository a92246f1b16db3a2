"""What depends on the order of elements, or of positions: extremes, sums up to a place, triangles, one-hot."""

from __future__ import annotations

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.common.indices import wrapped
from onnx2caffe.tvm.common.layout import sliced
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__ = ["SORTED"]


@emits(BOTH, "ArgMax", "ArgMin")
def arg_extreme(op: Op, net: Net) -> Value:
    """The index of the first extreme element; of the last one, counted from behind."""
    x, axis = op.value(), op.attribute("axis")
    find = net.arg_max if op.type == "ArgMax" else net.arg_min
    if not op.attribute("select_last_index"):
        return find(x, axis, bool(op.attribute("keepdims")))
    found = find(_backwards(net, x, axis), axis, bool(op.attribute("keepdims")))
    return net("subtract", net.like(x.shape[axis] - 1, found), found)


def _backwards(net: Net, x: Value, axis: int) -> Value:
    return sliced(net, x, axis, range(x.shape[axis])[::-1])


SORTED = ("float32", "float64", "int32", "int64")
"""Element types that TVM sorts in both dialects."""


@emits(BOTH, "TopK")
def top_k(op: Op, net: Net) -> list[Value]:
    """The K largest or smallest elements in order, of equal ones the first."""
    count = int(op.need_const(1, "K").item())
    if not op.attribute("sorted") and count > 1:
        raise Refused("sorted = 0 leaves the order open")
    x = op.value()
    if x.dtype == "uint64":
        raise Refused("TVM sorts no uint64")
    known = x if x.dtype in SORTED else net.cast(x, "int64")
    values, indices = net.top(known, count, op.attribute("axis"), bool(op.attribute("largest")))
    return [net.cast(values, x.dtype), indices]


@emits(BOTH, "CumSum")
def cumulative_sum(op: Op, net: Net) -> Value:
    """The sum of an element and those before it, or of these alone; `reverse`: of those behind it."""
    x, axis = op.value(), int(op.need_const(1, "axis").item()) % len(op.shape())
    reverse = bool(op.attribute("reverse"))
    if reverse:
        x = _backwards(net, x, axis)
    y = net("cumsum", x, axis, x.dtype, bool(op.attribute("exclusive")))
    return _backwards(net, y, axis) if reverse else y


@emits(BOTH, "OneHot")
def one_hot(op: Op, net: Net) -> Value:
    """`on` where the position on the new axis is the index, else `off`; an index out of range is nowhere."""
    depth, axis = int(op.need_const(1, "depth").item()), op.attribute("axis")
    indices = wrapped(net, net.reshape(op.value(), (*op.shape()[:axis], 1, *op.shape()[axis:])), depth)
    places = net.const(np.arange(depth).reshape([depth if a == axis else 1 for a in range(indices.rank)]))
    off, on = (net.take(op.value(2), net.const(np.array(i)), 0) for i in (0, 1))
    return net("where", net("equal", indices, places, dtype="bool"), on, off, dtype=on.dtype)


@emits(BOTH, "Trilu")
def triangle(op: Op, net: Net) -> Value:
    """Zero below (upper = 1) or above the k-th diagonal."""
    x = op.value()
    k = int(op.need_const(1, "k").item()) if op.has(1) else 0
    rows, columns = np.indices(x.shape[-2:])
    kept = columns - rows >= k if op.attribute("upper") else columns - rows <= k
    return net("where", net.const(kept), x, net.like(0, x), dtype=x.dtype)
