"""Region pooling (extensions)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, register, require, scalar

__all__ = ["PSROIPooling", "ROIPooling"]


def _check(bottoms: Sequence[Shape]) -> None:
    require(len(bottoms[0]) == 4, f"takes a map of 4 axes, not {bottoms[0]}")
    require(len(bottoms[1]) >= 1 and int(np.prod(bottoms[1][1:])) == 5, f"takes rois of 5 values, not {bottoms[1]}")


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ROIPooling(Layer):
    """Maxima over pooled_h x pooled_w bins of each region (Fast R-CNN's layer).

    bottoms: map (N,C,H,W), rois (R,5) = batch index, x1, y1, x2, y2; top (R,C,pooled_h,pooled_w). An empty bin gives 0.
    """

    type: ClassVar[str] = "ROIPooling"
    param_field: ClassVar[str | None] = "roi_pooling_param"
    arity: ClassVar[tuple[int, int | None]] = (2, 2)

    pooled_h: int
    pooled_w: int
    spatial_scale: float = 1.0

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        _check(bottoms)
        require(self.pooled_h > 0 and self.pooled_w > 0, "pooled_h and pooled_w must be positive")
        return [(bottoms[1][0], bottoms[0][1], self.pooled_h, self.pooled_w)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        x, rois = bottoms
        rois = g.op("Reshape", rois, g.const(np.array([-1, 5], np.int64)))
        bins = [self.pooled_h, self.pooled_w]
        return [g.op("MaxRoiPool", x, rois, pooled_shape=bins, spatial_scale=self.spatial_scale)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class PSROIPooling(Layer):
    """Position-sensitive averages (R-FCN's layer).

    bottoms: map (N, output_dim * group_size^2, H, W), rois (R,5); top (R, output_dim, group_size, group_size). Bin
    (i, j) of channel c averages its own input channel (c * group_size + i) * group_size + j. An empty bin gives 0.
    """

    type: ClassVar[str] = "PSROIPooling"
    param_field: ClassVar[str | None] = "psroi_pooling_param"
    arity: ClassVar[tuple[int, int | None]] = (2, 2)

    spatial_scale: float
    output_dim: int
    group_size: int

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        _check(bottoms)
        require(self.group_size > 0 and self.output_dim > 0, "group_size and output_dim must be positive")
        channels = self.output_dim * self.group_size**2
        require(bottoms[0][1] == channels, f"takes {channels} channels, not {bottoms[0][1]}")
        return [(bottoms[1][0], self.output_dim, self.group_size, self.group_size)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        x, rois = bottoms
        n, _, h, w = g.shape(x)
        size = self.group_size
        rois = g.op("Reshape", rois, g.const(np.array([-1, 5], np.int64)))
        batch, x1, y1, x2, y2 = g.op("Split", rois, g.const(np.ones(5, np.int64)), axis=1, outputs=5)
        rows = self._inside(g, y1, y2, h)
        columns = self._inside(g, x1, x2, w)
        maps = g.op("Reshape", x, g.const(np.array((n, self.output_dim, size, size, h, w), np.int64)))
        batch = g.op("Reshape", g.op("Cast", batch, to=ir.DataType.INT64.value), g.const(np.array([-1], np.int64)))
        picked = g.op("Gather", maps, batch, axis=0)
        row_shape = g.const(np.array((-1, 1, size, 1, h, 1), np.int64))
        column_shape = g.const(np.array((-1, 1, 1, size, 1, w), np.int64))
        inside = g.op("Mul", g.op("Reshape", rows, row_shape), g.op("Reshape", columns, column_shape))
        plane = g.const(np.array([4, 5], np.int64))
        area = g.op("Max", g.op("ReduceSum", inside, plane, keepdims=0), scalar(g, 1))
        total = g.op("ReduceSum", g.op("Mul", picked, inside), plane, keepdims=0)
        return [g.op("Div", total, area)]

    def _inside(self, g: OnnxBuilder, start: Any, end: Any, size: int) -> Any:
        """(R, group_size, size): 1 where a pixel lies in a bin of the regions start … end (R,1), else 0."""
        scale = scalar(g, self.spatial_scale)
        first = g.op("Mul", _round(g, start), scale)
        last = g.op("Mul", g.op("Add", _round(g, end), scalar(g, 1)), scale)
        extent = g.op("Max", g.op("Sub", last, first), scalar(g, 0.1))
        step = g.op("Div", extent, scalar(g, self.group_size))
        bins = np.arange(self.group_size + 1, dtype=np.float32)
        low = g.op("Floor", g.op("Add", g.op("Mul", step, g.const(bins[:-1])), first))
        high = g.op("Ceil", g.op("Add", g.op("Mul", step, g.const(bins[1:])), first))
        last_axis = g.const(np.array([2], np.int64))
        pixels = g.const(np.arange(size, dtype=np.float32))
        above = g.op("GreaterOrEqual", pixels, g.op("Unsqueeze", low, last_axis))
        below = g.op("Less", pixels, g.op("Unsqueeze", high, last_axis))
        return g.op("Cast", g.op("And", above, below), to=ir.DataType.FLOAT.value)


def _round(g: OnnxBuilder, x: Any) -> Any:
    """C's round: halves away from zero, where ONNX's Round goes to even."""
    return g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Add", g.op("Abs", x), scalar(g, 0.5))))
