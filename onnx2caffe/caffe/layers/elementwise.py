"""Arithmetic of one or several blobs, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = ["AbsVal", "Axpy", "Bias", "Eltwise", "Exp", "Log", "Power", "Scale", "Threshold"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Eltwise(Layer):
    """operation: SUM (with one coeff per bottom), PROD, MAX; two bottoms or more, all of one shape."""

    type: ClassVar[str] = "Eltwise"
    param_field: ClassVar[str | None] = "eltwise_param"

    operation: str = "SUM"
    coeff: tuple[float, ...] = ()


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Scale(Layer):
    """One bottom: blobs scale [, bias], shaped like the bottom's axes [axis, axis+num_axes). Two bottoms: bottom 1's shape equals bottom 0's axes from `axis` on; blobs: [bias]."""

    type: ClassVar[str] = "Scale"
    param_field: ClassVar[str | None] = "scale_param"
    in_place: ClassVar[bool] = True

    axis: int = 1
    num_axes: int = 1
    bias_term: bool = False


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Bias(Layer):
    """As Scale, added: one bottom with blob, or two bottoms without."""

    type: ClassVar[str] = "Bias"
    param_field: ClassVar[str | None] = "bias_param"
    in_place: ClassVar[bool] = True

    axis: int = 1
    num_axes: int = 1


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Power(Layer):
    """(shift + scale * x) ** power."""

    type: ClassVar[str] = "Power"
    param_field: ClassVar[str | None] = "power_param"
    in_place: ClassVar[bool] = True

    power: float = 1.0
    scale: float = 1.0
    shift: float = 0.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Exp(Layer):
    """base ** (shift + scale * x); base -1 is e."""

    type: ClassVar[str] = "Exp"
    param_field: ClassVar[str | None] = "exp_param"
    in_place: ClassVar[bool] = True

    base: float = -1.0
    scale: float = 1.0
    shift: float = 0.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Log(Layer):
    """log_base(shift + scale * x); base -1 is e."""

    type: ClassVar[str] = "Log"
    param_field: ClassVar[str | None] = "log_param"
    in_place: ClassVar[bool] = True

    base: float = -1.0
    scale: float = 1.0
    shift: float = 0.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class AbsVal(Layer):
    """|x|."""

    type: ClassVar[str] = "AbsVal"


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Threshold(Layer):
    """1 where x > threshold, else 0."""

    type: ClassVar[str] = "Threshold"
    param_field: ClassVar[str | None] = "threshold_param"
    in_place: ClassVar[bool] = True

    threshold: float = 0.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Axpy(Layer):
    """bottom0 (N,C,1,1) * bottom1 + bottom2 (extension)."""

    type: ClassVar[str] = "Axpy"
