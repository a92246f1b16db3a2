"""Convolution, pooling and their kin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onnx2caffe.caffe.layers.base import MAX_COUNT, Layer, OnnxBuilder, Shape, axis_index, register, require, scalar
from onnx2caffe.caffe.layers.codec import Codec
from onnx2caffe.caffe.layers.windows import WINDOW_CODECS, Windows, pad_spatial

__all__ = ["LRN", "Convolution", "Crop", "Deconvolution", "DepthwiseConv", "Im2col"]


class _Windowed(Layer):
    """Kernel, stride, pad and dilation of convolution_param, for the axes behind N and C (base_conv_layer.cpp)."""

    param_field: ClassVar[str | None] = "convolution_param"
    codecs: ClassVar[Mapping[str, Codec]] = WINDOW_CODECS
    unread: ClassVar[frozenset[str]] = frozenset({"engine", "force_nd_im2col"})

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]

    def _windows(self, bottom: Shape) -> Windows:
        require(len(bottom) >= 2, f"takes 2 axes or more, not {bottom}")
        spatial = len(bottom) - 2
        if spatial == 0:
            require(len(self.kernel_size) == 1, "kernel_size must be given once without spatial axes")
            return Windows((), (), (), ())
        return Windows.of(spatial, self.kernel_size, self.stride, self.pad, self.dilation)


class _Product(_Windowed):
    """What the convolutions share: weights, groups, and any number of bottoms of one shape."""

    arity: ClassVar[tuple[int, int | None]] = (1, None)
    fillers: ClassVar[tuple[str, ...]] = ("weight_filler", "bias_filler")

    num_output: int
    bias_term: bool

    def _groups(self, channels: int) -> int:
        raise NotImplementedError

    def _check(self, bottoms: Sequence[Shape]) -> None:
        require(len(set(bottoms)) == 1, f"bottoms differ in shape: {list(bottoms)}")
        require(len(bottoms[0]) >= 2, f"takes 2 axes or more, not {bottoms[0]}")
        groups = self._groups(bottoms[0][1])
        require(groups > 0 and bottoms[0][1] % groups == 0, f"group {groups} does not divide {bottoms[0][1]} channels")
        require(self.num_output > 0, "num_output must be positive")
        require(self.num_output % groups == 0, f"group {groups} does not divide num_output {self.num_output}")

    def _learned(self, weight: Shape) -> list[Shape]:
        return [weight, (self.num_output,)] if self.bias_term else [weight]

    def _apply(self, g: OnnxBuilder, op: str, x: Any, pads: Sequence[int]) -> Any:
        """One bottom's product. ONNX wants a spatial axis, so a bottom without any borrows one."""
        shape = g.shape(x)
        windows = self._windows(shape)
        weight, *bias = self.blobs
        if len(shape) == 2:
            x, weight = g.op("Reshape", x, g.const(np.array((*shape, 1), np.int64))), weight[..., None]
        product = g.op(
            op,
            x,
            g.const(weight),
            *(g.const(b) for b in bias),
            strides=list(windows.stride) or [1],
            dilations=list(windows.dilation) or [1],
            pads=list(pads) or [0, 0],
            group=self._groups(shape[1]),
        )
        if len(shape) > 2:
            return product
        return g.op("Reshape", product, g.const(np.array((shape[0], self.num_output), np.int64)))


class _Correlation(_Product):
    """A product of each window with the weights (conv_layer.cpp)."""

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        self._check(bottoms)
        n, _, *size = bottoms[0]
        output = self._windows(bottoms[0]).convolved(tuple(size))
        return [(n, self.num_output, *output)] * len(bottoms)

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        channels = bottoms[0][1]
        kernel = self._windows(bottoms[0]).kernel
        return self._learned((self.num_output, channels // self._groups(channels), *kernel))

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [self._apply(g, "Conv", x, self._pads(g.shape(x))) for x in bottoms]

    def _pads(self, shape: Shape) -> Shape:
        """Symmetric, but longer behind where the only window reaches beyond the padded input."""
        windows = self._windows(shape)
        size = shape[2:]
        missing = windows.end_pads(size, windows.convolved(size))
        return windows.pad + tuple(max(p, m) for p, m in zip(windows.pad, missing, strict=True))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Convolution(_Correlation):
    """Parameters have one value per spatial axis, or one for all.

    blobs: W (num_output, C/group, k…) and, with bias_term, b (num_output,).
    """

    type: ClassVar[str] = "Convolution"

    num_output: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    group: int = 1
    bias_term: bool = True

    def _groups(self, channels: int) -> int:
        return self.group


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class DepthwiseConv(_Correlation):
    """Convolution with group = C unless given (extension; the vendor's fast depthwise layer).

    blobs as Convolution: W (num_output, 1, kh, kw) and b (num_output,).
    """

    type: ClassVar[str] = "DepthwiseConv"

    num_output: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    group: int | None = None
    bias_term: bool = True

    def _groups(self, channels: int) -> int:
        return channels if self.group is None else self.group


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Deconvolution(_Product):
    """The transposed Convolution (deconv_layer.cpp).

    blobs: W (C, num_output/group, k…) as ONNX ConvTranspose and, with bias_term, b (num_output,).
    """

    type: ClassVar[str] = "Deconvolution"

    num_output: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    group: int = 1
    bias_term: bool = True

    def _groups(self, channels: int) -> int:
        return self.group

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        self._check(bottoms)
        n, _, *size = bottoms[0]
        output = self._windows(bottoms[0]).deconvolved(tuple(size))
        return [(n, self.num_output, *output)] * len(bottoms)

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        kernel = self._windows(bottoms[0]).kernel
        return self._learned((bottoms[0][1], self.num_output // self.group, *kernel))

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [self._apply(g, "ConvTranspose", x, self._windows(g.shape(x)).pad * 2) for x in bottoms]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Im2col(_Windowed):
    """(N, C, H, W) to (N, C*kh*kw, H', W'): the windows as channels (im2col_layer.cpp). Any number of spatial axes."""

    type: ClassVar[str] = "Im2col"

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(len(bottoms[0]) >= 3, f"takes 3 axes or more, not {bottoms[0]}")
        n, c, *size = bottoms[0]
        windows = self._windows(bottoms[0])
        return [(n, c * math.prod(windows.kernel), *windows.convolved(tuple(size)))]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        shape = g.shape(x)
        windows = self._windows(shape)
        (top,) = self.top_shapes([shape])
        spatial = len(shape) - 2
        x = pad_spatial(g, x, windows.pad, windows.end_pads(shape[2:], top[2:]), 0)
        for i in range(spatial):
            x = g.op("Gather", x, g.const(windows.indices(i, top[2 + i])), axis=2 + 2 * i)
        kernels, positions = range(2, 2 + 2 * spatial, 2), range(3, 3 + 2 * spatial, 2)
        x = g.op("Transpose", x, perm=[0, 1, *kernels, *positions])
        return [g.op("Reshape", x, g.const(np.array(top, np.int64)))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class LRN(Layer):
    """Local response normalisation, 4-D (lrn_layer.cpp).

    ACROSS_CHANNELS: x / (k + alpha / n * sum of n squares)^beta. WITHIN_CHANNEL: x / (1 + alpha * mean of n x n
    squares)^beta.
    """

    type: ClassVar[str] = "LRN"
    param_field: ClassVar[str | None] = "lrn_param"
    unread: ClassVar[frozenset[str]] = frozenset({"engine"})

    local_size: int = 5
    alpha: float = 1.0
    beta: float = 0.75
    k: float = 1.0
    norm_region: str = "ACROSS_CHANNELS"

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(len(bottoms[0]) == 4, f"takes 4 axes, not {len(bottoms[0])}")
        require(self.local_size % 2 == 1, f"local_size {self.local_size} is even")
        require(self.norm_region in {"ACROSS_CHANNELS", "WITHIN_CHANNEL"}, f"no norm_region {self.norm_region}")
        _, channels, *plane = bottoms[0]
        if self.norm_region == "ACROSS_CHANNELS":  # Caffe makes a blob of the squares, padded
            padded = (1, channels + self.local_size - 1, *plane)
            require(math.prod(padded) <= MAX_COUNT, f"blob {padded} exceeds INT_MAX elements")
        return [bottoms[0]]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        if self.norm_region == "ACROSS_CHANNELS":
            return [g.op("LRN", x, alpha=self.alpha, beta=self.beta, bias=self.k, size=self.local_size)]
        size, pad = self.local_size, self.local_size // 2
        mean = g.op(
            "AveragePool",
            g.op("Mul", x, x),
            kernel_shape=[size] * 2,
            pads=[pad] * 4,
            strides=[1, 1],
            count_include_pad=1,
        )
        base = g.op("Add", g.op("Mul", mean, scalar(g, self.alpha)), scalar(g, 1))
        return [g.op("Mul", x, g.op("Pow", base, scalar(g, -self.beta)))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Crop(Layer):
    """Crops bottom 0 to the size of bottom 1 from `axis` on (crop_layer.cpp); offset: one, or one per axis."""

    type: ClassVar[str] = "Crop"
    param_field: ClassVar[str | None] = "crop_param"
    arity: ClassVar[tuple[int, int | None]] = (2, 2)

    axis: int = 2
    offset: tuple[int, ...] = ()

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        x, size = bottoms
        start = axis_index(self.axis, len(x))
        require(len(size) >= len(x), f"takes the size from {len(x)} axes, not {size}")
        for axis, offset in enumerate(self._offsets(len(x)), start):
            require(x[axis] - offset >= size[axis], f"axis {axis}: {size[axis]} from {offset} on exceeds {x[axis]}")
        return [(*x[:start], *size[start : len(x)])]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        x = g.shape(bottoms[0])
        start = axis_index(self.axis, len(x))
        starts = np.array(self._offsets(len(x)), np.int64)
        (top,) = self.top_shapes([g.shape(b) for b in bottoms])
        ends = starts + np.array(top[start:], np.int64)
        axes = np.arange(start, len(x))
        return [g.op("Slice", bottoms[0], g.const(starts), g.const(ends), g.const(axes))]

    def _offsets(self, rank: int) -> Shape:
        cropped = rank - axis_index(self.axis, rank)
        if len(self.offset) <= 1:
            return (self.offset or (0,)) * cropped
        require(len(self.offset) == cropped, f"{len(self.offset)} offsets for {cropped} axes")
        return self.offset
