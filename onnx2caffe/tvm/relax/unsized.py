"""Elements by what they are: how many there will be depends on data.

All is computed at full size and cut to the number that was found. TVM has operators for these too, but they call back
into Python, which a board has not.
"""

from __future__ import annotations

import math

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.common.order import SORTED
from onnx2caffe.tvm.net import Op, Value
from onnx2caffe.tvm.program import Type
from onnx2caffe.tvm.registry import emits
from onnx2caffe.tvm.relax.net import RelaxNet

__all__: list[str] = []

_LONGEST = 64
"""Elements of a slice by which slices are sorted: each is a sort of its own."""


@emits("relax", "NonZero")
def non_zero(op: Op, net: RelaxNet) -> Value:
    """The indices of the elements that are not zero, a row for each axis: these elements sorted before the others."""
    x = _some(op)
    if not x.rank:
        raise Refused("a scalar has no axes")
    numbers = net.cast(x, "int32") if x.dtype == "bool" else x
    there = net("not_equal", numbers, net.like(0, numbers), dtype="bool")
    flat = net.reshape(net.cast(there, "int64"), (math.prod(x.shape),))
    order = net("argsort", flat, 0, True, "int64")
    sizes, strides = (net.const(np.reshape(n, (x.rank, 1))) for n in (x.shape, _strides(x.shape)))
    indices = net("floor_mod", net("floor_divide", order, strides), sizes)
    return _first(net, indices, _total(net, flat), 1, op.types[0])


@emits("relax", "Unique")
def unique(op: Op, net: RelaxNet) -> list[Value | None]:
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
        by_place = _ascending(net, met)
        met, counts = net.take(met, by_place, 0), net.take(counts, by_place, 0)
        group = net.take(_ascending(net, by_place), group, 0)
    total = _total(net, new)

    def cut(index: int, value: Value, axis: int = 0) -> Value | None:
        return _first(net, value, total, axis, op.types[index]) if op.wanted(index) else None

    distinct = net.take(x, net("minimum", met, net.like(x.shape[axis] - 1, met)), axis)
    inverse = net.take(group, _ascending(net, order), 0)
    return [cut(0, distinct, axis), cut(1, met), inverse, cut(3, counts)][: len(op.types)]


def _some(op: Op) -> Value:
    if 0 in op.shape():
        raise Refused("its input has no elements")
    return op.value()


def _strides(shape: Shape) -> list[int]:
    """How many elements lie between neighbours along each axis."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _total(net: RelaxNet, ones: Value) -> Value:
    return net("sum", ones, 0, True, shape=(1,))


def _first(net: RelaxNet, x: Value, count: Value, axis: int, kind: Type) -> Value:
    """The first `count` along an axis."""
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    known = [net.const(np.array(sizes)) if sizes else None for sizes in (before, behind)]
    stops = net.concat([sizes for sizes in (known[0], count, known[1]) if sizes], 0)
    starts, steps = (net.const(np.full(x.rank, n, np.int64)) for n in (0, 1))
    return net("dynamic_strided_slice", x, starts, stops, steps, shape=kind.shape)


def _rows(net: RelaxNet, x: Value, axis: int) -> Value:
    """The slices along an axis as rows, in an element type that TVM sorts."""
    if x.dtype == "uint64":
        raise Refused("TVM sorts no uint64")
    length = math.prod(x.shape) // x.shape[axis]
    if length > _LONGEST:
        raise Refused(f"slices of {length} elements; {_LONGEST} are the most that are compared")
    known = x if x.dtype in SORTED else net.cast(x, "int64")
    first = net.transpose(known, [axis, *(other for other in range(x.rank) if other != axis)])
    return net.reshape(first, (x.shape[axis], length))


def _ascending(net: RelaxNet, x: Value) -> Value:
    return net("argsort", x, 0, False, "int64", dtype="int64")


def _order(net: RelaxNet, rows: Value) -> Value:
    """Where the rows stand when they are sorted: by their last elements, then without disorder by those before."""
    order: Value | None = None
    for column in reversed(range(rows.shape[1])):
        elements = net.take(rows, net.const(np.array(column)), 1)
        if order is None:
            order = _ascending(net, elements)
        else:
            order = net.take(order, _ascending(net, net.take(elements, order, 0)), 0)
    assert order is not None
    return order


def _new(net: RelaxNet, rows: Value) -> Value:
    """1 for a row that is not the one before it, 0 for others."""
    before = net.take(rows, net.const(np.maximum(np.arange(rows.shape[0]) - 1, 0)), 0)
    differs = net.cast(net("not_equal", rows, before, dtype="bool"), "int64")
    return net(
        "maximum", net("max", differs, 1, shape=rows.shape[:1]), net.const(np.eye(1, rows.shape[0], dtype=np.int64)[0])
    )


def _runs(net: RelaxNet, new: Value) -> list[Value]:
    """Where the groups begin and how many elements each has; behind the last group, the size and no more."""
    size = new.shape[0]
    places, end = net.const(np.arange(size)), net.const(np.array([size]))
    starts = net("sort", net("where", net.cast(new, "bool"), places, end, dtype="int64"), 0, False)
    stops = net.take(net.concat([starts, end], 0), net.const(np.arange(size) + 1), 0)
    return [starts, net("subtract", stops, starts)]
