"""Small questions that passes ask about the neighbourhood of a node."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.passes.editor import Array

__all__ = [
    "between",
    "channel_vector",
    "computed",
    "constant_operand",
    "ints",
    "is_float",
    "maker",
    "narrow",
    "only_reader",
    "operands",
    "scalar",
    "source",
    "trailing",
]


def source(node: ir.Node, index: int = 0) -> ir.Value:
    """Input `index` of a node whose op demands it.

    Raises:
        ValueError: the input is absent.

    """
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        raise ValueError(f"{node.op_type} {node.name!r} has no input {index}")
    return value


def maker(value: ir.Value | None, *ops: str) -> ir.Node | None:
    """The node that computes `value`, if it is one of `ops` and not opaque."""
    node = None if value is None else value.producer()
    if node is None or node.domain or node.op_type not in ops or canon.is_opaque(node):
        return None
    return node


def only_reader(value: ir.Value) -> ir.Node | None:
    """The one node that reads `value` when nobody else does (neither another node nor the graph's outputs)."""
    readers = {use.node for use in value.uses()}
    return readers.pop() if len(readers) == 1 and not value.is_graph_output() else None


def between(last: ir.Node, *roots: ir.Value) -> list[ir.Node]:
    """The nodes from `roots` to `last` (without it) that go when nothing but `last` needs them."""
    found: list[ir.Node] = []
    waiting = [last]
    while waiting:
        for value in waiting.pop().inputs:
            producer = None if value is None or value in roots else value.producer()
            if value is None or producer is None or producer in found:
                continue
            if {use.node for use in value.uses()} <= {last, *found} and not value.is_graph_output():
                found.append(producer)
                waiting.append(producer)
    return found


def computed(node: ir.Node) -> list[ir.Value]:
    """The inputs of `node` that are not constants."""
    return [value for value in node.inputs if value is not None and canon.const(value) is None]


def ints(node: ir.Node, index: int) -> tuple[int, ...] | None:
    """A constant integer input as a tuple; None when it is absent or computed."""
    array = canon.const(node.inputs[index]) if index < len(node.inputs) else None
    return None if array is None else tuple(int(i) for i in array.ravel())


def is_float(value: ir.Value) -> bool:
    """Whether a value holds float32, the one float type of canonical models."""
    return value.dtype == ir.DataType.FLOAT


def narrow(array: Array) -> Array:
    """float64 as float32; what float32 cannot hold becomes infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype=np.float32)


def scalar(value: ir.Value | None) -> float | None:
    """The number a constant holds in every element, whatever its shape; None if it is computed or varies."""
    array = canon.const(value)
    if array is None or array.size == 0:
        return None
    first = array.ravel()[0]
    return float(first) if array.size == 1 or bool(np.all(array == first)) else None


def operands(node: ir.Node) -> Iterable[tuple[ir.Value, ir.Value]]:
    """Both readings of a commutative node with two inputs."""
    a, b = source(node, 0), source(node, 1)
    return (a, b), (b, a)


def constant_operand(node: ir.Node) -> tuple[ir.Value, Array] | None:
    """(computed, constant) operand of a commutative binary node whose constant does not widen the computed one."""
    for value, other in operands(node):
        array = canon.const(other)
        if array is not None and canon.const(value) is None and canon.shape(value) == canon.shape(node.outputs[0]):
            return value, array
    return None


def channel_vector(array: Array, shape: Shape, axis: int) -> Array | None:
    """`array`, broadcast from the right, as one float64 per index of `axis` of `shape`; None if it varies elsewhere.

    The shape of the constant decides, never its length: (C) against (N,C,H,W) varies along W (problems 85, 136).
    """
    if array.ndim > len(shape):
        return None
    padded = (1,) * (len(shape) - array.ndim) + array.shape
    if math.prod(padded) != padded[axis]:
        return None
    return np.broadcast_to(array.astype(np.float64).ravel(), (shape[axis],))


def trailing(array: Array, shape: Shape) -> Array | None:
    """`array` broadcast to the trailing axes `shape`; None if it varies along an axis in front of them."""
    lead = max(array.ndim - len(shape), 0)
    if math.prod(array.shape[:lead]) != 1:
        return None
    return np.broadcast_to(array.reshape(array.shape[lead:]), shape)
