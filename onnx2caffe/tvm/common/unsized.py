"""Elements by what they are: how many there will be depends on data.

All is computed at full size and cut to the number that was found. TVM has operators for these too, but Relax' call back
into Python, which a board has not, and Relay's take integers only.
"""

from __future__ import annotations

import math

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.common.order import SORTED
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_LONGEST = 64
"""Elements of a slice by which slices are sorted: each is a sort of its own."""


@emits(BOTH, "NonZero")
def non_zero(op: Op, net: Net) -> Value:
    """The indices of the elements that are not zero, a row for each axis: these elements sorted before the others."""
    x = _some(op)
    if not x.rank:
        raise Refused("a scalar has no axes")
    numbers = net.cast(x, "int32") if x.dtype == "bool" else x
    there = net("not_equal", numbers, net.like(0, numbers), dtype="bool")
    flat = net.reshape(net.cast(there, "int64"), (math.prod(x.shape),))
    order = net.order(flat, 0, descending=True)
    sizes, strides = (net.const(np.reshape(n, (x.rank, 1))) for n in (x.shape, _strides(x.shape)))
    indices = net("mod", net("divide", order, strides), sizes)
    return net.first(indices, _total(net, flat), 1)


@emits(BOTH, "Unique")
def unique(op: Op, net: Net) -> list[Value | None]:
    """The distinct elements, or slices along an axis; where each is met first, which one each is, how many are alike.

    Sorted, those that are alike are neighbours: a group begins where one differs from the one before it.
    """
    x, axis = _some(op), op.attribute("axis")
    x, axis = (net.reshape(x, (math.prod(x.shape),)), 0) if axis is None else (x, axis % x.rank)
    rows = _rows(net, x, axis)
    order = _order(net, rows)
    new = _new(net, net.take(rows, order, 0))
    starts, counts = _runs(net, new)
    met = net.take(net.concat([order, net.const(np.array(new.shape))], 0), starts, 0)
    group = net("subtract", net("cumsum", new, 0, "int64", False), net.like(1, new))
    if not op.attribute("sorted", 1):
        by_place = net.order(met, 0)
        met, counts = net.take(met, by_place, 0), net.take(counts, by_place, 0)
        group = net.take(net.order(by_place, 0), group, 0)
    total = _total(net, new)

    def cut(index: int, value: Value, axis: int = 0) -> Value | None:
        return net.first(value, total, axis) if op.wanted(index) else None

    distinct = net.take(x, net("minimum", met, net.like(x.shape[axis] - 1, met)), axis)
    inverse = net.take(group, net.order(order, 0), 0)
    return [cut(0, distinct, axis), cut(1, met), inverse, cut(3, counts)][: len(op.types)]


def _some(op: Op) -> Value:
    if 0 in op.shape():
        raise Refused("its input has no elements")
    return op.value()


def _strides(shape: Shape) -> list[int]:
    """How many elements lie between neighbours along each axis."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _total(net: Net, ones: Value) -> Value:
    return net("sum", ones, 0, True, shape=(1,))


def _rows(net: Net, x: Value, axis: int) -> Value:
    """The slices along an axis as rows, in an element type that TVM sorts."""
    if x.dtype == "uint64":
        raise Refused("TVM sorts no uint64")
    length = math.prod(x.shape) // x.shape[axis]
    if length > _LONGEST:
        raise Refused(f"slices of {length} elements; {_LONGEST} are the most that are compared")
    known = x if x.dtype in SORTED else net.cast(x, "int64")
    first = net.transpose(known, [axis, *(other for other in range(x.rank) if other != axis)])
    return net.reshape(first, (x.shape[axis], length))


def _order(net: Net, rows: Value) -> Value:
    """Where the rows stand when they are sorted: by their last elements, then without disorder by those before."""
    order: Value | None = None
    for column in reversed(range(rows.shape[1])):
        elements = net.take(rows, net.const(np.array(column)), 1)
        if order is None:
            order = net.order(elements, 0)
        else:
            order = net.take(order, net.order(net.take(elements, order, 0), 0), 0)
    assert order is not None
    return order


def _new(net: Net, rows: Value) -> Value:
    """1 for a row that is not the one before it, 0 for others."""
    before = net.take(rows, net.const(np.maximum(np.arange(rows.shape[0]) - 1, 0)), 0)
    differs = net.cast(net("not_equal", rows, before, dtype="bool"), "int64")
    return net(
        "maximum", net("max", differs, 1, shape=rows.shape[:1]), net.const(np.eye(1, rows.shape[0], dtype=np.int64)[0])
    )


def _runs(net: Net, new: Value) -> list[Value]:
    """Where the groups begin and how many elements each has; behind the last group, the size and no more."""
    size = new.shape[0]
    places, end = net.const(np.arange(size)), net.const(np.array([size]))
    begins = net("where", net.cast(new, "bool"), places, end, dtype="int64")
    starts = net.take(begins, net.order(begins, 0), 0)
    stops = net.take(net.concat([starts, end], 0), net.const(np.arange(size) + 1), 0)
    return [starts, net("subtract", stops, starts)]
