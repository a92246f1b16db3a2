"""Normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = ["MVN", "BatchNorm", "Normalize"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class BatchNorm(Layer):
    """blobs: mean (C,), variance (C,), factor (1,). use_global_stats None: true in TEST; false: statistics of the batch."""

    type: ClassVar[str] = "BatchNorm"
    param_field: ClassVar[str | None] = "batch_norm_param"
    in_place: ClassVar[bool] = True

    use_global_stats: bool | None = None
    eps: float = 1e-5


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class MVN(Layer):
    """(x - mean) / (sqrt(var) + eps): eps outside the root."""

    type: ClassVar[str] = "MVN"
    param_field: ClassVar[str | None] = "mvn_param"
    in_place: ClassVar[bool] = True

    normalize_variance: bool = True
    across_channels: bool = False
    eps: float = 1e-9


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Normalize(Layer):
    """x / sqrt(sum x^2 + eps) * blob (extension). blob: () if channel_shared, else (C,)."""

    type: ClassVar[str] = "Normalize"
    param_field: ClassVar[str | None] = "norm_param"
    in_place: ClassVar[bool] = True

    across_spatial: bool = True
    channel_shared: bool = True
    eps: float = 1e-10
