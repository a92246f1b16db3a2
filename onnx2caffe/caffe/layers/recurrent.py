"""Recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = ["LSTM", "RNN"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class LSTM(Layer):
    """bottoms x (T,N,…), cont (T,N) [, h0, c0 (1,N,D)]; top (T,N,D) [, hT, cT]. Gate order i, f, o, g. blobs: W_xc (4D,I), b_c (4D,), W_hc (4D,D)."""

    type: ClassVar[str] = "LSTM"
    param_field: ClassVar[str | None] = "recurrent_param"

    num_output: int
    expose_hidden: bool = False


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class RNN(Layer):
    """h = tanh(W_xh x + b_h + W_hh h'), o = tanh(W_ho h + b_o). blobs: W_xh, b_h, W_hh, W_ho, b_o."""

    type: ClassVar[str] = "RNN"
    param_field: ClassVar[str | None] = "recurrent_param"

    num_output: int
    expose_hidden: bool = False
