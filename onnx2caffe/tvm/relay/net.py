"""The words of Relay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.decompose.matmul import product
from onnx2caffe.tvm.net import Net, Value
from onnx2caffe.tvm.program import Type

__all__ = ["RelayNet"]


class RelayNet(Net):
    """A Relay program under construction."""

    index_dtype = "int32"

    def conv(self, fn: str, x: Value, weight: Value, shape: Shape, **attrs: Any) -> Value:
        """Relay's own builds want to be told what the weight says."""
        return super().conv(fn, x, weight, shape, channels=shape[1], kernel_size=weight.shape[2:], **attrs)

    def _transpose(self, x: Value, perm: list[int], shape: list[int]) -> Value:
        return self("transpose", x, perm, shape=shape)

    def _cast(self, x: Value, dtype: str) -> Value:
        """TVM's own; a NaN is true, which it makes false where it compares with 0."""
        if dtype == "bool" and np.dtype(x.dtype).kind == "f":
            x = self("where", self("isnan", x, dtype="bool"), self.like(1, x), x, dtype=x.dtype)
        return self("cast", x, dtype, dtype=dtype)

    def add_bias(self, x: Value, bias: Value) -> Value:
        return self("nn.bias_add", x, bias, shape=x.shape)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self("concatenate", list(parts), axis, shape=shape, dtype=parts[0].dtype)

    def slice(self, x: Value, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> Value:
        shape = [len(range(*bounds)) for bounds in zip(starts, stops, steps, strict=True)]
        return self("strided_slice", x, list(starts), list(stops), list(steps), shape=shape)

    def pad(self, x: Value, before: Sequence[int], after: Sequence[int], mode: str, value: float) -> Value:
        shape = [b + n + a for b, n, a in zip(before, x.shape, after, strict=True)]
        widths = list(zip(before, after, strict=True))
        return self("nn.pad", x, widths, self.like(value, x), shape=shape, pad_mode=mode)

    def top(self, x: Value, count: int, axis: int, largest: bool) -> list[Value]:
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        types = [Type(x.dtype, shape), Type("int64", shape)]
        return self.many("topk", x, count, axis, "both", not largest, "int64", types=types)

    def order(self, x: Value, axis: int, descending: bool = False) -> Value:
        return self("argsort", x, axis, not descending, "int64", dtype="int64")

    def first(self, x: Value, count: Value, axis: int) -> Value:
        """Taken, not sliced: of a slice TVM would know no size at all."""
        zero, one = (self.const(np.array(n, np.int64)) for n in (0, 1))
        places = self("arange", zero, self.reshape(count, ()), one, "int64", shape=(-1,))
        return self.take(x, places, axis)

    def viewed(self, x: Value, dtype: str) -> Value:
        return self("reinterpret", x, dtype, dtype=dtype)

    def best_boxes(self, boxes: Value, scores: Value, most: int, threshold: Value) -> Value:
        """TVM gives room for all boxes, and how many rows of it are chosen ones."""
        types = [Type("int64", (math.prod(scores.shape), 3)), Type("int64", (1,))]
        limits = most, threshold, 0.5
        rows, count = self.many("vision.all_class_non_max_suppression", boxes, scores, *limits, types=types)
        return self.first(rows, count, 0)

    def round_half_even(self, x: Value) -> Value:
        """Relay's own `round` takes halves away from zero; twice the rounded half of such an x is the even one."""
        away = self("round", x)
        distance = self.absolute(self("subtract", away, x))
        even = self("multiply", self("round", self("multiply", x, self.like(0.5, x))), self.like(2, x))
        return self("where", self("equal", distance, self.like(0.5, x), dtype="bool"), even, away, dtype=x.dtype)

    def matmul(self, a: Value, b: Value) -> Value:
        """The source method's three branches, and what it leaves open: 1-D operands, broadcasting, 2-D × N-D, sizes 0.

        - 2-D × 2-D: `dense`, which wants its right side transposed.
        - N-D × 2-D: the left side as [-1, K], the same, back to the result's shape.
        - N-D × N-D: both sides 3-D, `batch_matmul`, back to out_batch + [M, N].
        """
        sizes = product(a.shape, b.shape)
        if 0 in (*a.shape, *b.shape):
            return self("zeros", sizes.result, a.dtype, shape=sizes.result, dtype=a.dtype)
        if b.rank <= 2:
            left = self.reshape(a, (sizes.multiplications // (sizes.inner * sizes.columns), sizes.inner))
            right = self.transpose(self.reshape(b, (sizes.inner, sizes.columns)), (1, 0))
            result = self("nn.dense", left, right, shape=(left.shape[0], sizes.columns))
        else:
            left = self._batched(a, sizes.left, sizes.batch, (sizes.rows, sizes.inner))
            right = self._batched(b, sizes.right, sizes.batch, (sizes.inner, sizes.columns))
            shape = (max(left.shape[0], right.shape[0]), sizes.rows, sizes.columns)
            result = self("nn.batch_matmul", left, right, shape=shape, transpose_b=False)
        return self.reshape(result, sizes.result)

    def _batched(self, x: Value, own: Shape, batch: Shape, matrix: Shape) -> Value:
        """`x` as one 3-D stack of matrices; of a batch of one, `batch_matmul` takes the rest."""
        if math.prod(own) != 1 and own != batch:
            x, own = self.broadcast(self.reshape(x, (*own, *matrix)), (*batch, *matrix)), batch
        return self.reshape(x, (math.prod(own), *matrix))
