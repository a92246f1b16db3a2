"""Layers that resize planes; 4-D only (extensions)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, register, require, scalar

__all__ = ["Interp", "Upsample"]


def _bilinear(g: OnnxBuilder, x: Any, size: Sequence[int], target: Sequence[int], *, corners: bool) -> Any:
    """Bilinear resizing of the axes 2 and 3, edges clamped, corner-aligned or by half pixels."""
    for axis, old, new in zip((2, 3), size, target, strict=True):
        x = _linear(g, x, axis, old, new, corners=corners)
    return x


def _linear(g: OnnxBuilder, x: Any, axis: int, old: int, new: int, *, corners: bool) -> Any:
    index = np.arange(new, dtype=np.float32)
    if corners:
        at = index * np.float32((old - 1) / (new - 1) if new > 1 else 0)
    else:
        at = (index + np.float32(0.5)) * np.float32(old / new) - np.float32(0.5)
    at = np.clip(at, 0, old - 1)
    low = at.astype(np.int64)
    weight = (at - low).astype(np.float32).reshape((-1,) + (1,) * (3 - axis))
    below = g.op("Gather", x, g.const(low), axis=axis)
    above = g.op("Gather", x, g.const(np.minimum(low + 1, old - 1)), axis=axis)
    return g.op("Add", g.op("Mul", below, g.const(1 - weight)), g.op("Mul", above, g.const(weight)))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Upsample(Layer):
    """Nearest by repetition, half-pixel bilinear (mode BILINEAR), or un-max-pooling.

    One bottom (N,C,H,W): factor `scale` (Caffe's default 2), `scale_h`/`scale_w` or size `upsample_h` x `upsample_w`.
    Two bottoms: values and MAX Pooling's mask, both (N,C,H,W). With a stride, that is the factor, and values are
    multiplied by `scale`.
    """

    type: ClassVar[str] = "Upsample"
    param_field: ClassVar[str | None] = "upsample_param"
    arity: ClassVar[tuple[int, int | None]] = (1, 2)

    scale: float | None = None
    scale_h: int | None = None
    scale_w: int | None = None
    upsample_h: int | None = None
    upsample_w: int | None = None
    pad_out_h: bool = False
    pad_out_w: bool = False
    stride: int | None = None
    stride_h: int | None = None
    stride_w: int | None = None
    mode: str | None = None

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        x = bottoms[0]
        require(len(x) == 4, f"takes 4 axes, not {len(x)}")
        require(set(bottoms) == {x}, f"the mask {bottoms[-1]} has not the shape of the values {x}")
        height = self._size(x[2], self.scale_h, self.stride_h, self.upsample_h, self.pad_out_h)
        width = self._size(x[3], self.scale_w, self.stride_w, self.upsample_w, self.pad_out_w)
        require(height > 0 and width > 0, f"target size {height}x{width} is empty")
        return [(*x[:2], height, width)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        n, c, h, w = g.shape(bottoms[0])
        (top,) = self.top_shapes([(n, c, h, w)])
        _, _, height, width = top
        if len(bottoms) == 2:
            return [self._unpool(g, bottoms[0], bottoms[1], top)]
        if self.mode == "BILINEAR":
            resized = _bilinear(g, bottoms[0], (h, w), (height, width), corners=False)
        else:
            rows = g.op("Gather", bottoms[0], g.const(np.arange(height) * h // height), axis=2)
            resized = g.op("Gather", rows, g.const(np.arange(width) * w // width), axis=3)
        if not self._strided or self.scale is None:
            return [resized]
        return [g.op("Mul", resized, scalar(g, self.scale))]

    @staticmethod
    def _unpool(g: OnnxBuilder, x: Any, mask: Any, top: Shape) -> Any:
        n, c, h, w = g.shape(x)
        planes = g.const(np.array((n, c, h * w), np.int64))
        empty = g.op("Expand", scalar(g, 0), g.const(np.array((n, c, top[2] * top[3]), np.int64)))
        index = g.op("Cast", g.op("Reshape", mask, planes), to=ir.DataType.INT64.value)
        filled = g.op("ScatterElements", empty, index, g.op("Reshape", x, planes), axis=2)
        return g.op("Reshape", filled, g.const(np.array(top, np.int64)))

    @property
    def _strided(self) -> bool:
        return any(s is not None for s in (self.stride, self.stride_h, self.stride_w))

    def _size(self, old: int, scale: int | None, stride: int | None, size: int | None, cropped: bool) -> int:
        if size is not None:
            return size
        if scale is not None:
            factor: float = scale
        elif self._strided:
            factor = stride or self.stride or 2
        else:
            factor = 2 if self.scale is None else self.scale
        require(math.isfinite(factor), f"factor {factor} is not finite")
        return math.floor(np.float32(old) * np.float32(factor)) - int(cropped)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Interp(Layer):
    """Bilinear with aligned corners (DeepLab's layer).

    The size: that of a second bottom, or `height` x `width`, or by `shrink_factor` and `zoom_factor`; pads are negative
    (they crop).
    """

    type: ClassVar[str] = "Interp"
    param_field: ClassVar[str | None] = "interp_param"
    arity: ClassVar[tuple[int, int | None]] = (1, 2)

    height: int | None = None
    width: int | None = None
    zoom_factor: int | None = None
    shrink_factor: int | None = None
    pad_beg: int = 0
    pad_end: int = 0

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        x = bottoms[0]
        require(len(x) == 4, f"takes 4 axes, not {len(x)}")
        require(self.pad_beg <= 0 and self.pad_end <= 0, "pads can only crop")
        require(min(self._cropped(x)) > 0, f"nothing is left of {x} after cropping")
        if len(bottoms) == 2:
            require(len(bottoms[1]) == 4, f"takes the size from 4 axes, not {len(bottoms[1])}")
            return [(*x[:2], *bottoms[1][2:])]
        if self.height is not None and self.width is not None:
            return [(*x[:2], self.height, self.width)]
        return [(*x[:2], *(self._factored(d) for d in self._cropped(x)))]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        x = bottoms[0]
        shape = g.shape(x)
        (top,) = self.top_shapes([g.shape(b) for b in bottoms])
        if self.pad_beg or self.pad_end:
            pads = np.array([0, 0, self.pad_beg, self.pad_beg, 0, 0, self.pad_end, self.pad_end], np.int64)
            x = g.op("Pad", x, g.const(pads))
        return [_bilinear(g, x, self._cropped(shape), top[2:], corners=True)]

    def _cropped(self, x: Shape) -> list[int]:
        return [d + self.pad_beg + self.pad_end for d in x[2:]]

    def _factored(self, size: int) -> int:
        for factor in (self.shrink_factor, self.zoom_factor):
            require(factor is None or factor >= 1, f"factor {factor} is below 1")
        if self.shrink_factor is not None:
            size = (size - 1) // self.shrink_factor + 1
        return size + (size - 1) * ((self.zoom_factor or 1) - 1)
