"""Products with learned matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, axis_index, register, require

__all__ = ["Embed", "InnerProduct"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class InnerProduct(Layer):
    """Flattens from `axis` on (inner_product_layer.cpp).

    blobs: W (num_output, K), or (K, num_output) when transpose; b (num_output,).
    """

    type: ClassVar[str] = "InnerProduct"
    param_field: ClassVar[str | None] = "inner_product_param"
    fillers: ClassVar[tuple[str, ...]] = ("weight_filler", "bias_filler")

    num_output: int
    axis: int = 1
    bias_term: bool = True
    transpose: bool = False

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        kept = bottoms[0][: axis_index(self.axis, len(bottoms[0]))]
        return [(*kept, self.num_output)]

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        k = self._inner(bottoms[0])
        weight = (k, self.num_output) if self.transpose else (self.num_output, k)
        return [weight, (self.num_output,)] if self.bias_term else [weight]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        (top,) = self.top_shapes([g.shape(x)])
        rows = g.op("Reshape", x, g.const(np.array([-1, self._inner(g.shape(x))], np.int64)))
        product = g.op("Gemm", rows, *(g.const(b) for b in self.blobs), transB=int(not self.transpose))
        return [g.op("Reshape", product, g.const(np.array(top, np.int64)))]

    def _inner(self, bottom: Shape) -> int:
        return math.prod(bottom[axis_index(self.axis, len(bottom)) :])


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Embed(Layer):
    """Table look-up by float indices, appending an axis (embed_layer.cpp).

    blobs: W (input_dim, num_output) [, b (num_output,)].
    """

    type: ClassVar[str] = "Embed"
    param_field: ClassVar[str | None] = "embed_param"
    fillers: ClassVar[tuple[str, ...]] = ("weight_filler", "bias_filler")

    num_output: int
    input_dim: int
    bias_term: bool = True

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(self.num_output > 0, "num_output must be positive")
        require(self.input_dim > 0, "input_dim must be positive")
        return [(*bottoms[0], self.num_output)]

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        weight = (self.input_dim, self.num_output)
        return [weight, (self.num_output,)] if self.bias_term else [weight]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        weight, *bias = (g.const(b) for b in self.blobs)
        rows = g.op("Gather", weight, g.op("Cast", bottoms[0], to=ir.DataType.INT64.value), axis=0)
        return [g.op("Add", rows, *bias) if bias else rows]
