"""Products with learned matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = ["Embed", "InnerProduct"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class InnerProduct(Layer):
    """Flattens from `axis` on. blobs: W (num_output, K), or (K, num_output) when transpose; b (num_output,)."""

    type: ClassVar[str] = "InnerProduct"
    param_field: ClassVar[str | None] = "inner_product_param"

    num_output: int
    axis: int = 1
    bias_term: bool = True
    transpose: bool = False


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Embed(Layer):
    """Table look-up by float indices. blobs: W (input_dim, num_output) [, b]."""

    type: ClassVar[str] = "Embed"
    param_field: ClassVar[str | None] = "embed_param"

    num_output: int
    input_dim: int
    bias_term: bool = False
