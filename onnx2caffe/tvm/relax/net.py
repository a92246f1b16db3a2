"""The words of Relax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnx2caffe.decompose.matmul import product
from onnx2caffe.tvm.net import Net, Value
from onnx2caffe.tvm.program import ELEMENTS, Type

__all__ = ["RelaxNet"]

_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}


class RelaxNet(Net):
    """A Relax program under construction."""

    castable = ELEMENTS | {"float8_e5m2"}

    def _transpose(self, x: Value, perm: list[int], shape: list[int]) -> Value:
        return self("permute_dims", x, perm, shape=shape)

    def _cast(self, x: Value, dtype: str) -> Value:
        read = self._upper_bytes(x) if x.dtype == "float8_e5m2" else x
        return self("astype", read, dtype, dtype=dtype)

    def _upper_bytes(self, x: Value) -> Value:
        """float8_e5m2, the upper byte of a float16, as float16; TVM's own cast loses the smallest and the infinite."""
        byte = self.viewed(x, "uint8")
        word = self("astype", byte, "uint16", dtype="uint16")
        return self.viewed(self("left_shift", word, self.like(8, word)), "float16")

    def add_bias(self, x: Value, bias: Value) -> Value:
        return self("add", x, self.reshape(bias, (x.shape[1], *[1] * (x.rank - 2))))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self("concat", list(parts), axis, shape=shape, dtype=parts[0].dtype)

    def slice(self, x: Value, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> Value:
        shape = [len(range(*bounds)) for bounds in zip(starts, stops, steps, strict=True)]
        return self("strided_slice", x, list(range(x.rank)), list(starts), list(stops), list(steps), shape=shape)

    def pad(self, x: Value, before: Sequence[int], after: Sequence[int], mode: str, value: float) -> Value:
        shape = [b + n + a for b, n, a in zip(before, x.shape, after, strict=True)]
        widths = [width for pair in zip(before, after, strict=True) for width in pair]
        return self("nn.pad", x, widths, shape=shape, pad_mode=_PAD_MODES[mode], pad_value=value)

    def top(self, x: Value, count: int, axis: int, largest: bool) -> list[Value]:
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        types = [Type(x.dtype, shape), Type("int64", shape)]
        return self.many("topk", x, count, axis, "both", largest, "int64", types=types)

    def order(self, x: Value, axis: int, descending: bool = False) -> Value:
        return self("argsort", x, axis, descending, "int64", dtype="int64")

    def first(self, x: Value, count: Value, axis: int) -> Value:
        """TVM infers a shape of unknown sizes, of which the module checks the known ones when it runs."""
        before, behind = x.shape[:axis], x.shape[axis + 1 :]
        known = [self.const(np.array(sizes)) if sizes else None for sizes in (before, behind)]
        stops = self.concat([sizes for sizes in (known[0], count, known[1]) if sizes], 0)
        starts, steps = (self.const(np.full(x.rank, n, np.int64)) for n in (0, 1))
        return self("dynamic_strided_slice", x, starts, stops, steps, shape=(*before, -1, *behind))

    def viewed(self, x: Value, dtype: str) -> Value:
        return self("memory.view", x, list(x.shape), dtype, shape=x.shape, dtype=dtype)

    def best_boxes(self, boxes: Value, scores: Value, most: int, threshold: Value) -> Value:
        limits = self.const(np.array(most)), threshold, self.const(0.5)
        types = [Type("int64", (-1, 3)), Type("int64", (1,))]
        return self.many("vision.all_class_non_max_suppression", boxes, scores, *limits, types=types)[0]

    def round_half_even(self, x: Value) -> Value:
        return self("round", x)

    def matmul(self, a: Value, b: Value) -> Value:
        """`matmul` is numpy's, of any ranks; only sizes of 0 it does not take."""
        shape = product(a.shape, b.shape).result
        if 0 in (*a.shape, *b.shape):
            return self("zeros", shape, a.dtype, shape=shape, dtype=a.dtype)
        return self("matmul", a, b, shape=shape)
