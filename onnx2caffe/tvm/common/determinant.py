"""Determinants by elimination, which neither dialect has."""

from __future__ import annotations

import math

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.common.layout import sliced
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_LARGEST = 64
"""Largest matrix that is eliminated column by column (about 25 calls each)."""


@emits(BOTH, "Det")
def determinant(op: Op, net: Net) -> Value:
    """The product of the pivots, each column's largest element, with the sign of the order their rows come in."""
    x, shape = op.value(), op.outputs[0]
    size = x.shape[-1]
    if size > _LARGEST:
        raise Refused(f"matrices of {size} × {size}, whose columns each become calls of their own (at most {_LARGEST})")
    rest = net.reshape(x, (math.prod(shape), size, size))
    places = net.const(np.arange(size).reshape(1, size, 1))
    unused = net.const(np.ones((rest.shape[0], size, 1), x.dtype))
    result = net.const(np.ones((rest.shape[0], 1, 1), x.dtype))
    for _ in range(size):
        first = sliced(net, rest, 2, range(1))
        found = net.arg_max(net.absolute(first), 1, keepdims=True)  # never a row that was used: it holds zeros
        row, above = (net.cast(net(fn, places, found, dtype="bool"), x.dtype) for fn in ("equal", "less"))
        pivots = _over_rows(net, "sum", net("multiply", row, rest))
        pivot = sliced(net, pivots, 2, range(1))
        result = net("multiply", net("multiply", result, pivot), _sign(net, net("multiply", unused, above)))
        unused = net("subtract", unused, row)
        rest = _eliminated(net, rest, first, pivots, pivot)
    return net.reshape(result, shape)


def _over_rows(net: Net, fn: str, matrices: Value) -> Value:
    return net(fn, matrices, axis=[1], keepdims=True, shape=(matrices.shape[0], 1, matrices.shape[2]))


def _sign(net: Net, passed: Value) -> Value:
    """-1 where an odd number of rows are marked."""
    return _over_rows(net, "prod", net("subtract", net.like(1, passed), net("multiply", passed, net.like(2, passed))))


def _eliminated(net: Net, rest: Value, first: Value, pivots: Value, pivot: Value) -> Value:
    """The other columns, less what makes the first one zero; it is zero already where the pivot is."""
    if rest.shape[2] == 1:
        return rest
    is_zero = net("equal", pivot, net.like(0, pivot), dtype="bool")
    factors = net("divide", first, net("where", is_zero, net.like(1, pivot), pivot, dtype=pivot.dtype))
    behind = range(1, rest.shape[2])
    taken = net("multiply", factors, sliced(net, pivots, 2, behind))
    return net("subtract", sliced(net, rest, 2, behind), taken)
