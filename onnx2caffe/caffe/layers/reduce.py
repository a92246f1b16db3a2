"""Reductions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = ["ArgMax", "Reduction"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Reduction(Layer):
    """SUM, ASUM, SUMSQ or MEAN from `axis` to the last axis, which are dropped."""

    type: ClassVar[str] = "Reduction"
    param_field: ClassVar[str | None] = "reduction_param"

    operation: str = "SUM"
    axis: int = 0
    coeff: float = 1.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ArgMax(Layer):
    """Indices (float; the last of equal ones), or with axis and out_max_val the values."""

    type: ClassVar[str] = "ArgMax"
    param_field: ClassVar[str | None] = "argmax_param"

    axis: int | None = None
    top_k: int = 1
    out_max_val: bool = False
