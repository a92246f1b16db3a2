"""Pooling and pyramids of poolings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onnx2caffe.caffe.layers.base import Array, Layer, OnnxBuilder, Shape, register, require, scalar
from onnx2caffe.caffe.layers.codec import UNSET, Codec, Plain, is_set
from onnx2caffe.caffe.layers.windows import WINDOW_CODECS, Windows, pad_spatial
from onnx2caffe.caffe.proto import Message

__all__ = ["SPP", "Pooling"]

_LOWEST = float(np.finfo(np.float32).min)
"""Where MAX starts: windows without a larger value give it."""


class _RoundMode(Plain):
    """round_mode, or the name that SSD-style forks use for it."""

    def __init__(self) -> None:
        super().__init__("round_mode")
        self.fields = ("round_mode", "ceil_mode")

    def read(self, message: Message) -> Any:
        if is_set(message, "ceil_mode"):
            return "CEIL" if message.ceil_mode else "FLOOR"
        return super().read(message) if is_set(message, "round_mode") else UNSET


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Pooling(Layer):
    """4-D only (pooling_layer.cpp).

    pool: MAX (padding never wins) or AVE (divided by the part of the window within the padded image). round_mode: None
    (field absent: CEIL), "CEIL" or "FLOOR" (after BVLC 1.0). tops 2 with MAX: values and mask (index in the input
    plane, float; -1 where no value wins).
    """

    type: ClassVar[str] = "Pooling"
    param_field: ClassVar[str | None] = "pooling_param"
    codecs: ClassVar[Mapping[str, Codec]] = {
        **{name: WINDOW_CODECS[name] for name in ("kernel_size", "stride", "pad")},
        "round_mode": _RoundMode(),
    }
    unread: ClassVar[frozenset[str]] = frozenset({"engine"})

    pool: str = "MAX"
    kernel_size: tuple[int, ...] = ()
    stride: tuple[int, ...] = (1,)
    pad: tuple[int, ...] = (0,)
    global_pooling: bool = False
    round_mode: str | None = None
    tops: int = 1

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        require(len(x) == 4, f"takes 4 axes, not {len(x)}")
        require(self.pool in {"MAX", "AVE"}, f"pool {self.pool} does not run on a CPU")
        require(self.tops == 1 or (self.tops == 2 and self.pool == "MAX"), f"{self.pool} has no {self.tops} tops")
        windows = self._windows(x)
        require(
            all(p < k for p, k in zip(windows.pad, windows.kernel, strict=True)) or not any(windows.pad),
            f"pad {windows.pad} reaches kernel {windows.kernel}",
        )
        return [(*x[:2], *self._pooled(x, windows))] * self.tops

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        shape = g.shape(x)
        windows = self._windows(shape)
        if self.pool == "AVE":
            return [self._average(g, x, shape, windows)]
        return self._maximum(g, x, shape, windows)

    def _windows(self, x: Shape) -> Windows:
        if not self.global_pooling:
            return Windows.of(2, self.kernel_size, self.stride, self.pad)
        require(not self.kernel_size, "global_pooling takes no kernel_size")
        windows = Windows.of(2, x[2:], self.stride, self.pad)
        require(windows.pad == (0, 0) and windows.stride == (1, 1), "global_pooling takes only pad 0 and stride 1")
        return windows

    def _pooled(self, x: Shape, windows: Windows) -> Shape:
        rounded = math.floor if self.round_mode == "FLOOR" else math.ceil
        axes = zip(x[2:], windows.kernel, windows.stride, windows.pad, strict=True)
        sizes = [(n, s, p, rounded((n + 2 * p - k) / s) + 1) for n, k, s, p in axes]
        if not any(windows.pad):
            return tuple(o for *_, o in sizes)
        return tuple(o - 1 if (o - 1) * s >= n + p else o for n, s, p, o in sizes)

    def _maximum(self, g: OnnxBuilder, x: Any, shape: Shape, windows: Windows) -> list[Any]:
        lowest = scalar(g, _LOWEST)
        # NaN and -inf never win in Caffe
        x = g.op("Where", g.op("Greater", x, lowest), x, lowest)
        x = self._padded(g, x, shape, windows, _LOWEST)
        options: dict[str, Any] = {"kernel_shape": list(windows.kernel), "strides": list(windows.stride)}
        if self.tops == 1:
            return [g.op("MaxPool", x, **options)]
        values, indices = g.op("MaxPool", x, outputs=2, **options)
        plane = self._plane_indices(shape, windows)
        place = g.op("Mod", indices, g.const(np.array(plane.size, np.int64)))
        mask = g.op("Gather", g.const(plane.ravel()), place, axis=0)
        return [values, g.op("Where", g.op("Greater", values, lowest), mask, scalar(g, -1))]

    def _average(self, g: OnnxBuilder, x: Any, shape: Shape, windows: Windows) -> Any:
        x = self._padded(g, x, shape, windows, 0)
        mean = g.op("AveragePool", x, kernel_shape=list(windows.kernel), strides=list(windows.stride))
        area = self._areas(shape, windows)
        full = math.prod(windows.kernel)
        if (area == full).all():
            return mean
        return g.op("Div", g.op("Mul", mean, scalar(g, full)), g.const(area))

    def _padded(self, g: OnnxBuilder, x: Any, shape: Shape, windows: Windows, value: float) -> Any:
        return pad_spatial(g, x, windows.pad, windows.end_pads(shape[2:], self._pooled(shape, windows)), value)

    def _areas(self, shape: Shape, windows: Windows) -> Array:
        """(oh, ow): the divisor of AVE: the window clipped to the padded image; 0 or less where it lies outside."""
        lengths = []
        for axis, outputs in enumerate(self._pooled(shape, windows)):
            start = np.arange(outputs) * windows.stride[axis] - windows.pad[axis]
            end = np.minimum(start + windows.kernel[axis], shape[2 + axis] + windows.pad[axis])
            lengths.append((end - start).astype(np.float32))
        return np.asarray(np.outer(*lengths))

    def _plane_indices(self, shape: Shape, windows: Windows) -> Array:
        """For each place of the padded plane, its float index h * W + w in the input plane, or -1."""
        height, width = shape[2:]
        ends = windows.end_pads(shape[2:], self._pooled(shape, windows))
        rows = np.arange(height + windows.pad[0] + ends[0]) - windows.pad[0]
        columns = np.arange(width + windows.pad[1] + ends[1]) - windows.pad[1]
        inside = ((rows >= 0) & (rows < height))[:, None] & ((columns >= 0) & (columns < width))[None, :]
        return np.where(inside, rows[:, None] * width + columns[None, :], -1).astype(np.float32)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class SPP(Layer):
    """Spatial pyramid pooling, 4-D (spp_layer.cpp): level i pools into about 2^i x 2^i bins; flattened and joined.

    Top (N, sum of C * bins); with one level Caffe leaves the pooled blob (N, C, 1, 1) as it is.
    """

    type: ClassVar[str] = "SPP"
    param_field: ClassVar[str | None] = "spp_param"
    unread: ClassVar[frozenset[str]] = frozenset({"engine"})

    pyramid_height: int
    pool: str = "MAX"

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        require(len(x) == 4, f"takes 4 axes, not {len(x)}")
        require(self.pyramid_height > 0, "pyramid_height must be positive")
        levels = [level.infer([x])[0] for level in self._levels(x)]
        if len(levels) == 1:
            return levels
        return [(x[0], sum(math.prod(level[1:]) for level in levels))]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        pooled = [level.as_onnx(g, bottoms)[0] for level in self._levels(g.shape(bottoms[0]))]
        if len(pooled) == 1:
            return pooled
        return [g.op("Concat", *(g.op("Flatten", p, axis=1) for p in pooled), axis=1)]

    def _levels(self, x: Shape) -> list[Pooling]:
        levels = []
        for level in range(self.pyramid_height):
            bins = 2**level
            kernel = tuple(math.ceil(d / bins) for d in x[2:])
            pad = tuple((k * bins - d + 1) // 2 for k, d in zip(kernel, x[2:], strict=True))
            levels.append(Pooling(pool=self.pool, kernel_size=kernel, stride=kernel, pad=pad))
        return levels
