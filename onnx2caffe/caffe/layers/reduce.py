"""Reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, axis_index, register, require, scalar

__all__ = ["ArgMax", "Reduction"]

_REDUCTIONS = {"SUM": "ReduceSum", "ASUM": "ReduceL1", "SUMSQ": "ReduceSumSquare", "MEAN": "ReduceMean"}


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Reduction(Layer):
    """coeff times SUM, ASUM, SUMSQ or MEAN from `axis` to the last axis, which are dropped (reduction_layer.cpp)."""

    type: ClassVar[str] = "Reduction"
    param_field: ClassVar[str | None] = "reduction_param"

    operation: str = "SUM"
    axis: int = 0
    coeff: float = 1.0

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(self.operation in _REDUCTIONS, f"operation {self.operation} does not exist")
        return [bottoms[0][: axis_index(self.axis, len(bottoms[0]))]]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        rank = len(g.shape(x))
        axes = np.arange(axis_index(self.axis, rank), rank)
        reduced = g.op(_REDUCTIONS[self.operation], x, g.const(axes), keepdims=0)
        return [reduced if self.coeff == 1 else g.op("Mul", reduced, scalar(g, self.coeff))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ArgMax(Layer):
    """The top_k largest, as float indices; of equal values the last one first (argmax_layer.cpp).

    Without axis: over everything but axis 0, top (N,1,top_k,…), with out_max_val (N,2,top_k,…): indices, then values.
    With axis: that axis becomes top_k, out_max_val gives the values instead.
    """

    type: ClassVar[str] = "ArgMax"
    param_field: ClassVar[str | None] = "argmax_param"

    axis: int | None = None
    top_k: int = 1
    out_max_val: bool = False

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        require(len(x) >= 1, "takes 1 axis or more")
        require(self.top_k >= 1, f"top_k {self.top_k} is less than 1")
        if self.axis is not None:
            axis = axis_index(self.axis, len(x))
            require(self.top_k <= x[axis], f"top_k {self.top_k} exceeds axis of {x[axis]}")
            return [(*x[:axis], self.top_k, *x[axis + 1 :])]
        require(self.top_k <= math.prod(x[1:]), f"top_k {self.top_k} exceeds {math.prod(x[1:])} values")
        return [(x[0], 1 + int(self.out_max_val), self.top_k) + (1,) * (len(x) - 3)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        shape = g.shape(x)
        if self.axis is not None:
            axis = axis_index(self.axis, len(shape))
            indices, values = self._largest(g, x, axis, shape[axis])
            return [values if self.out_max_val else indices]
        count = math.prod(shape[1:])
        rows = g.op("Reshape", x, g.const(np.array((shape[0], 1, count), np.int64)))
        indices, values = self._largest(g, rows, 2, count)
        (top,) = self.top_shapes([shape])
        result = g.op("Concat", indices, values, axis=1) if self.out_max_val else indices
        return [g.op("Reshape", result, g.const(np.array(top, np.int64)))]

    def _largest(self, g: OnnxBuilder, x: Any, axis: int, size: int) -> tuple[Any, Any]:
        """Indices and values along an axis. TopK prefers the first of equal values, so it looks from behind."""
        from_behind = g.op("Gather", x, g.const(np.arange(size)[::-1].copy()), axis=axis)
        k = g.const(np.array([self.top_k], np.int64))
        values, indices = g.op("TopK", from_behind, k, axis=axis, outputs=2)
        indices = g.op("Sub", g.const(np.array(size - 1, np.int64)), indices)
        return g.op("Cast", indices, to=ir.DataType.FLOAT.value), values
