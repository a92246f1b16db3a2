"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onnx2caffe.caffe.layers.base import Array, Layer, OnnxBuilder, Shape, register, require, scalar

__all__ = ["MVN", "BatchNorm", "Normalize"]


def _channels(blob: Array, rank: int) -> Array:
    """A value per channel, shaped to broadcast over (N, C, …)."""
    return blob.reshape(blob.shape + (1,) * (rank - 2)) if blob.ndim else blob


def _mean(g: OnnxBuilder, x: Any, axes: Sequence[int]) -> Any:
    return g.op("ReduceMean", x, g.const(np.array(axes, np.int64)), keepdims=1)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class BatchNorm(Layer):
    """(x - mean / factor) / sqrt(variance / factor + eps) (batch_norm_layer.cpp).

    blobs: mean (C,), variance (C,), factor (1,); factor 0 stands for mean and variance 0. use_global_stats None: true
    in TEST; false: mean and biased variance of the batch. 2 axes or more.
    """

    type: ClassVar[str] = "BatchNorm"
    param_field: ClassVar[str | None] = "batch_norm_param"
    in_place: ClassVar[bool] = True
    unread: ClassVar[frozenset[str]] = frozenset({"moving_average_fraction"})

    use_global_stats: bool | None = None
    eps: float = 1e-5

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(len(bottoms[0]) >= 2, "takes 2 axes or more")
        return [bottoms[0]]

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        channels = (bottoms[0][1],)
        return [channels, channels, (1,)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        rank = len(g.shape(x))
        if self.use_global_stats is False:
            axes = (0, *range(2, rank))
            centred = g.op("Sub", x, _mean(g, x, axes))
            variance = _mean(g, g.op("Mul", centred, centred), axes)
            return [g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, scalar(g, self.eps))))]
        mean, variance, factor = (blob.astype(np.float32) for blob in self.blobs)
        scale = np.float32(0) if factor[0] == 0 else 1 / factor[0]
        deviation = np.sqrt(variance * scale + np.float32(self.eps))
        centred = g.op("Sub", x, g.const(_channels(mean * scale, rank)))
        return [g.op("Div", centred, g.const(_channels(deviation, rank)))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class MVN(Layer):
    """(x - mean) / (sqrt(var) + eps), eps outside the root, over H, W or C, H, W (mvn_layer.cpp).

    Up to 4 axes; the top always has 4: axes of 1 are appended.
    """

    type: ClassVar[str] = "MVN"
    param_field: ClassVar[str | None] = "mvn_param"
    in_place: ClassVar[bool] = True

    normalize_variance: bool = True
    across_channels: bool = False
    eps: float = 1e-9

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        require(len(x) <= 4, f"takes at most 4 axes, not {len(x)}")
        return [x + (1,) * (4 - len(x))]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (shape,) = self.top_shapes([g.shape(bottoms[0])])
        axes = (1, 2, 3) if self.across_channels else (2, 3)
        x = g.op("Reshape", bottoms[0], g.const(np.array(shape, np.int64)))
        centred = g.op("Sub", x, _mean(g, x, axes))
        if not self.normalize_variance:
            return [centred]
        deviation = g.op("Sqrt", _mean(g, g.op("Mul", centred, centred), axes))
        return [g.op("Div", centred, g.op("Add", deviation, scalar(g, self.eps)))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Normalize(Layer):
    """x / sqrt(sum of x^2 + eps) * blob, the sum over C or over all but N (SSD's layer; extension).

    blob: () if channel_shared, else (C,). 2 axes or more.
    """

    type: ClassVar[str] = "Normalize"
    param_field: ClassVar[str | None] = "norm_param"
    in_place: ClassVar[bool] = True
    fillers: ClassVar[tuple[str, ...]] = ("scale_filler",)

    across_spatial: bool = True
    channel_shared: bool = True
    eps: float = 1e-10

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(len(bottoms[0]) >= 2, "takes 2 axes or more")
        return [bottoms[0]]

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [() if self.channel_shared else (bottoms[0][1],)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        rank = len(g.shape(x))
        axes = range(1, rank) if self.across_spatial else [1]
        square = g.op("ReduceSumSquare", x, g.const(np.array(axes, np.int64)), keepdims=1)
        unit = g.op("Div", x, g.op("Sqrt", g.op("Add", square, scalar(g, self.eps))))
        return [g.op("Mul", unit, g.const(_channels(self.blobs[0], rank)))]
