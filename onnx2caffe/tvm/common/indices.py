"""Gather and scatter by computed indices, all in one way: flat positions in a tensor of one axis.

TVM's own operators read a negative index wrongly (facts/tvm.md, T8); flat positions are never negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__ = ["computed", "picked", "positions", "strides", "wrapped"]

_NUMPY: Mapping[str, Callable[..., Any]] = {"add": np.add, "multiply": np.multiply}
_REDUCTIONS = {"none": "update"}


def computed(net: Net, fn: str, a: Value, b: Value) -> Value:
    """The sum or product of two values, computed here where both are constant."""
    if a.array is not None and b.array is not None:
        return net.const(_NUMPY[fn](a.array, b.array))
    return net(fn, a, b)


def wrapped(net: Net, indices: Value, size: int) -> Value:
    """Indices (-size … size - 1) as 0 … size - 1, int64."""
    if indices.array is not None:
        return net.const(indices.array.astype(np.int64) % max(size, 1))
    indices = net.cast(indices, "int64")
    negative = net("less", indices, net.like(0, indices), dtype="bool")
    return net("where", negative, net("add", indices, net.like(size, indices)), indices, dtype="int64")


def strides(shape: Shape) -> Shape:
    """How far apart neighbours along each axis lie in C order."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def positions(net: Net, parts: Sequence[tuple[Value, int]], first: Value) -> Value:
    """The flat positions first + Σ index · stride."""
    for index, stride in parts:
        first = computed(net, "add", computed(net, "multiply", index, net.like(stride, index)), first)
    return first


def picked(net: Net, x: Value, flat: Value) -> Value:
    """`x` at flat positions."""
    return net.take(net.reshape(x, (math.prod(x.shape),)), flat, 0)


def _on_axis(op: Op, net: Net) -> Value:
    """GatherElements' and ScatterElements' flat positions: the index on its axis, each element's own on the others."""
    shape, axis, indices = op.shape(0), op.attribute("axis"), op.value(1)
    steps = strides(shape)
    grid = np.indices(indices.shape, dtype=np.int64)
    own = sum((grid[a] * step for a, step in enumerate(steps) if a != axis), np.zeros(indices.shape, np.int64))
    return positions(net, [(wrapped(net, indices, shape[axis]), steps[axis])], net.const(own))


def _of_tuples(op: Op, net: Net, batch: int) -> Value:
    """GatherND's and ScatterND's flat positions: tuples that index the axes behind `batch`, all of what lies behind."""
    shape, indices = op.shape(0), op.value(1)
    depth = indices.shape[-1]
    before, inner = indices.shape[:-1], shape[batch + depth :]
    steps = strides(shape)
    own = np.arange(math.prod(inner)).reshape(inner)
    for axis in range(batch):
        place = np.arange(shape[axis]) * steps[axis]
        own = own + place.reshape([-1, *[1] * (len(before) - 1 - axis + len(inner))])
    parts = []
    for axis in range(depth):
        one = net.take(indices, net.const(np.array(axis)), len(before))
        one = net.reshape(wrapped(net, one, shape[batch + axis]), (*before, *[1] * len(inner)))
        parts.append((one, steps[batch + axis]))
    flat = positions(net, parts, net.const(own.astype(np.int64)))
    return net.broadcast(flat, (*before, *inner))


@emits(BOTH, "GatherElements")
def gather_elements(op: Op, net: Net) -> Value:
    """The element that the index names on its axis."""
    return picked(net, op.value(0), _on_axis(op, net))


@emits(BOTH, "GatherND")
def gather_nd(op: Op, net: Net) -> Value:
    """What index tuples name."""
    return picked(net, op.value(0), _of_tuples(op, net, op.attribute("batch_dims")))


@emits(BOTH, "ScatterElements")
def scatter_elements(op: Op, net: Net) -> Value:
    """The data with updates where the index says, one after another."""
    return _scattered(op, net, _on_axis(op, net))


@emits(BOTH, "ScatterND")
def scatter_nd(op: Op, net: Net) -> Value:
    """The data with updates where index tuples say, one after another."""
    return _scattered(op, net, _of_tuples(op, net, 0))


def _scattered(op: Op, net: Net, flat: Value) -> Value:
    reduction = op.attribute("reduction")
    return scattered(net, op.value(0), flat, op.value(2), _REDUCTIONS.get(reduction, reduction))


def scattered(net: Net, x: Value, flat: Value, updates: Value, reduction: str) -> Value:
    """`x` with updates at flat positions, one after another."""
    if not math.prod(flat.shape):
        return x
    target, places, new = (net.reshape(v, (math.prod(v.shape),)) for v in (x, flat, updates))
    result = net("scatter_elements", target, places, new, 0, reduction, shape=target.shape, dtype=x.dtype)
    return net.reshape(result, x.shape)


@emits(BOTH, "ReverseSequence")
def reverse_sequence(op: Op, net: Net) -> Value:
    """The first `sequence_lens` steps of every item backwards."""
    x, lengths = op.value(0), op.value(1)
    time, batch = op.attribute("time_axis"), op.attribute("batch_axis")

    def along(axis: int, size: int) -> list[int]:
        return [size if a == axis else 1 for a in range(x.rank)]

    steps = net.const(np.arange(x.shape[time]).reshape(along(time, -1)))
    length = net.reshape(net.cast(lengths, "int64"), along(batch, lengths.shape[0]))
    last = net("subtract", length, net.like(1, length))
    turned = net("where", net("less", steps, length, dtype="bool"), net("subtract", last, steps), steps, dtype="int64")
    others = np.indices(x.shape, dtype=np.int64)
    own = sum(others[a] * step for a, step in enumerate(strides(x.shape)) if a != time)
    return picked(net, x, positions(net, [(turned, strides(x.shape)[time])], net.const(np.asarray(own, np.int64))))
