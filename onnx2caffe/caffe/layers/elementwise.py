"""Arithmetic of one or several blobs, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, axis_index, register, require, scalar

__all__ = ["AbsVal", "Axpy", "Bias", "Eltwise", "Exp", "Log", "Power", "Scale", "Threshold"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Eltwise(Layer):
    """operation: SUM (with one coeff per bottom), PROD, MAX (eltwise_layer.cpp). Two bottoms or more, of one shape."""

    type: ClassVar[str] = "Eltwise"
    param_field: ClassVar[str | None] = "eltwise_param"
    arity: ClassVar[tuple[int, int | None]] = (2, None)
    unread: ClassVar[frozenset[str]] = frozenset({"stable_prod_grad"})

    operation: str = "SUM"
    coeff: tuple[float, ...] = ()

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(self.operation in {"SUM", "PROD", "MAX"}, f"operation {self.operation} does not exist")
        require(len(self.coeff) in {0, len(bottoms)}, f"{len(self.coeff)} coefficients for {len(bottoms)} bottoms")
        require(self.operation != "PROD" or not self.coeff, "PROD takes no coefficients")
        require(len(set(bottoms)) == 1, f"bottoms differ in shape: {list(bottoms)}")
        return [bottoms[0]]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        if self.operation == "MAX":
            return [reduce(lambda best, x: g.op("Where", g.op("Greater", best, x), best, x), bottoms)]
        if self.operation == "PROD":
            return [reduce(lambda product, x: g.op("Mul", product, x), bottoms)]
        coefficients = self.coeff or (1.0,) * len(bottoms)
        terms = [
            x if factor == 1 else g.op("Mul", x, scalar(g, factor))
            for x, factor in zip(bottoms, coefficients, strict=True)
        ]
        return [reduce(lambda total, x: g.op("Add", total, x), terms)]


class _Spread(Layer):
    """A second operand that covers the bottom's axes from `axis` on: a bottom, or a blob over `num_axes` axes."""

    in_place: ClassVar[bool] = True
    arity: ClassVar[tuple[int, int | None]] = (1, 2)

    axis: int
    num_axes: int

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        x, operand = bottoms[0], self._operand(bottoms)
        start = self._start(len(x), len(operand))
        covered = x[start : start + len(operand)]
        require(operand == covered, f"operand of shape {operand} does not cover axes {covered} of {x} from {start} on")
        return [x]

    def _operand(self, bottoms: Sequence[Shape]) -> Shape:
        if len(bottoms) == 2:
            return bottoms[1]
        x = bottoms[0]
        start = axis_index(self.axis, len(x))
        require(self.num_axes >= -1, f"num_axes {self.num_axes} is below -1")
        require(start + self.num_axes <= len(x), f"num_axes {self.num_axes} from axis {start} exceeds {len(x)} axes")
        return x[start:] if self.num_axes == -1 else x[start : start + self.num_axes]

    def _start(self, rank: int, operand_rank: int) -> int:
        return axis_index(self.axis, rank) if operand_rank else 0

    def _aligned(self, rank: int, operand: Shape) -> Shape:
        """The operand's shape with axes of 1 behind, so that ONNX broadcasts it as Caffe does."""
        return operand + (1,) * (rank - self._start(rank, len(operand)) - len(operand))

    def _value(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Any:
        """The second operand, ready to broadcast."""
        rank = len(g.shape(bottoms[0]))
        if len(bottoms) == 2:
            shape = self._aligned(rank, g.shape(bottoms[1]))
            return g.op("Reshape", bottoms[1], g.const(np.array(shape, np.int64)))
        return self._blob(g, rank, 0)

    def _blob(self, g: OnnxBuilder, rank: int, index: int) -> Any:
        blob = self.blobs[index]
        return g.const(blob.reshape(self._aligned(rank, blob.shape)))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Scale(_Spread):
    """Product (scale_layer.cpp).

    One bottom: blobs scale [, bias], shaped like the bottom's axes [axis, axis+num_axes). Two bottoms: bottom 1's shape
    equals bottom 0's axes from `axis` on; blobs: [bias].
    """

    type: ClassVar[str] = "Scale"
    param_field: ClassVar[str | None] = "scale_param"
    fillers: ClassVar[tuple[str, ...]] = ("filler", "bias_filler")

    axis: int = 1
    num_axes: int = 1
    bias_term: bool = False

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        learned = 2 - len(bottoms) + int(self.bias_term)
        return [self._operand(bottoms)] * learned

    def filler_fields(self, bottoms: int) -> Sequence[str]:
        return self.fillers[bottoms - 1 :]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        product = g.op("Mul", bottoms[0], self._value(g, bottoms))
        if not self.bias_term:
            return [product]
        return [g.op("Add", product, self._blob(g, len(g.shape(bottoms[0])), -1))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Bias(_Spread):
    """As Scale, added (bias_layer.cpp): one bottom with a blob, or two bottoms without."""

    type: ClassVar[str] = "Bias"
    param_field: ClassVar[str | None] = "bias_param"
    fillers: ClassVar[tuple[str, ...]] = ("filler",)

    axis: int = 1
    num_axes: int = 1

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [self._operand(bottoms)] if len(bottoms) == 1 else []

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [g.op("Add", bottoms[0], self._value(g, bottoms))]


def _line(g: OnnxBuilder, x: Any, scale: float, shift: float) -> Any:
    """Shift + scale * x, each step only where it changes something."""
    scaled = x if scale == 1 else g.op("Mul", x, scalar(g, scale))
    return scaled if shift == 0 else g.op("Add", scaled, scalar(g, shift))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Power(Layer):
    """(shift + scale * x) ** power; a constant when scale or power is 0 (power_layer.cpp)."""

    type: ClassVar[str] = "Power"
    param_field: ClassVar[str | None] = "power_param"
    in_place: ClassVar[bool] = True

    power: float = 1.0
    scale: float = 1.0
    shift: float = 0.0

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        if self.power * self.scale == 0:
            with np.errstate(all="ignore"):
                value = np.power(np.float32(self.shift), np.float32(self.power))
            return [g.op("Expand", scalar(g, float(value)), g.const(np.array(g.shape(x), np.int64)))]
        base = _line(g, x, self.scale, self.shift)
        return [base if self.power == 1 and base is not x else g.op("Pow", base, scalar(g, self.power))]


def _check_base(base: float) -> None:
    require(base == -1 or base > 0, f"base {base} is not positive")


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Exp(Layer):
    """base ** (shift + scale * x); base -1 is e (exp_layer.cpp)."""

    type: ClassVar[str] = "Exp"
    param_field: ClassVar[str | None] = "exp_param"
    in_place: ClassVar[bool] = True

    base: float = -1.0
    scale: float = 1.0
    shift: float = 0.0

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        _check_base(self.base)
        return [bottoms[0]]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        base = math.e if self.base == -1 else self.base
        inner = g.op("Exp", g.op("Mul", bottoms[0], scalar(g, math.log(base) * self.scale)))
        return [inner if self.shift == 0 else g.op("Mul", inner, scalar(g, base**self.shift))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Log(Layer):
    """log_base(shift + scale * x); base -1 is e (log_layer.cpp)."""

    type: ClassVar[str] = "Log"
    param_field: ClassVar[str | None] = "log_param"
    in_place: ClassVar[bool] = True

    base: float = -1.0
    scale: float = 1.0
    shift: float = 0.0

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        _check_base(self.base)
        require(self.base != 1, "base 1 has no logarithm")
        return [bottoms[0]]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        natural = g.op("Log", _line(g, bottoms[0], self.scale, self.shift))
        return [natural if self.base == -1 else g.op("Mul", natural, scalar(g, 1 / math.log(self.base)))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class AbsVal(Layer):
    """|x|."""

    type: ClassVar[str] = "AbsVal"

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [g.op("Abs", bottoms[0])]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Threshold(Layer):
    """1 where x > threshold, else 0 (threshold_layer.cpp)."""

    type: ClassVar[str] = "Threshold"
    param_field: ClassVar[str | None] = "threshold_param"
    in_place: ClassVar[bool] = True

    threshold: float = 0.0

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        above = g.op("Greater", bottoms[0], scalar(g, self.threshold))
        return [g.op("Cast", above, to=ir.DataType.FLOAT.value)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Axpy(Layer):
    """bottom0 (N,C,1,…) * bottom1 (N,C,…) + bottom2, one factor per channel (extension)."""

    type: ClassVar[str] = "Axpy"
    arity: ClassVar[tuple[int, int | None]] = (3, 3)

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        factor, x, y = bottoms
        require(len(factor) >= 2 and factor[:2] == x[:2], f"factors {factor} do not fit {x}")
        require(math.prod(factor[2:]) == 1, f"one factor per channel, not {factor}")
        require(x == y, f"bottoms 1 and 2 differ in shape: {x}, {y}")
        return [x]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        factor, x, y = bottoms
        shape = g.shape(x)[:2] + (1,) * (len(g.shape(x)) - 2)
        return [g.op("Add", g.op("Mul", g.op("Reshape", factor, g.const(np.array(shape, np.int64))), x), y)]
