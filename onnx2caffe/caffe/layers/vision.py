"""Convolution, pooling and their kin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = ["LRN", "SPP", "Convolution", "Crop", "Deconvolution", "DepthwiseConv", "Im2col", "Pooling"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Convolution(Layer):
    """blobs: W (num_output, C/group, k…) and, with bias_term, b (num_output,). One value per spatial axis, or one for all."""

    type: ClassVar[str] = "Convolution"
    param_field: ClassVar[str | None] = "convolution_param"

    num_output: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    group: int = 1
    bias_term: bool = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Deconvolution(Layer):
    """blobs: W (C, num_output/group, k…) as ONNX ConvTranspose, and, with bias_term, b (num_output,)."""

    type: ClassVar[str] = "Deconvolution"
    param_field: ClassVar[str | None] = "convolution_param"

    num_output: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    group: int = 1
    bias_term: bool = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class DepthwiseConv(Layer):
    """Convolution with group = C (extension; the vendor's fast depthwise layer). blobs as Convolution: W (C, 1, kh, kw), b (C,)."""

    type: ClassVar[str] = "DepthwiseConv"
    param_field: ClassVar[str | None] = "convolution_param"

    num_output: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    bias_term: bool = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Pooling(Layer):
    """4-D only. pool: MAX or AVE; round_mode: None (field absent: CEIL), "CEIL" or "FLOOR" (after BVLC 1.0). tops 2 with MAX: values and mask (index in the input plane, float)."""

    type: ClassVar[str] = "Pooling"
    param_field: ClassVar[str | None] = "pooling_param"

    pool: str = "MAX"
    kernel_size: tuple[int, ...] = ()
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    global_pooling: bool = False
    round_mode: str | None = None
    tops: int = 1


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class LRN(Layer):
    """Local response normalisation, 4-D."""

    type: ClassVar[str] = "LRN"
    param_field: ClassVar[str | None] = "lrn_param"

    local_size: int = 5
    alpha: float = 1.0
    beta: float = 0.75
    k: float = 1.0
    norm_region: str = "ACROSS_CHANNELS"


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Im2col(Layer):
    """(N, C, H, W) to (N, C*kh*kw, H', W'): the windows as channels."""

    type: ClassVar[str] = "Im2col"
    param_field: ClassVar[str | None] = "convolution_param"

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class SPP(Layer):
    """Spatial pyramid pooling, 4-D."""

    type: ClassVar[str] = "SPP"
    param_field: ClassVar[str | None] = "spp_param"

    pyramid_height: int
    pool: str = "MAX"


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Crop(Layer):
    """Crops bottom 0 to the size of bottom 1 on the axes from `axis` on."""

    type: ClassVar[str] = "Crop"
    param_field: ClassVar[str | None] = "crop_param"

    axis: int = 2
    offset: tuple[int, ...] = ()
