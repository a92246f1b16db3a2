"""Region pooling (extensions)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = ["PSROIPooling", "ROIPooling"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ROIPooling(Layer):
    """bottoms: map, rois (R,5)."""

    type: ClassVar[str] = "ROIPooling"
    param_field: ClassVar[str | None] = "roi_pooling_param"

    pooled_h: int
    pooled_w: int
    spatial_scale: float = 1.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class PSROIPooling(Layer):
    """bottoms: map, rois (R,5)."""

    type: ClassVar[str] = "PSROIPooling"
    param_field: ClassVar[str | None] = "psroi_pooling_param"

    spatial_scale: float
    output_dim: int
    group_size: int
