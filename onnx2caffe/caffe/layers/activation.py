"""Activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = [
    "BNLL",
    "ELU",
    "Clip",
    "Dropout",
    "HardSigmoid",
    "HardSwish",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "Sigmoid",
    "Softmax",
    "Swish",
    "TanH",
]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ReLU(Layer):
    """max(x, 0) + slope * min(x, 0)."""

    type: ClassVar[str] = "ReLU"
    param_field: ClassVar[str | None] = "relu_param"
    in_place: ClassVar[bool] = True

    negative_slope: float = 0.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class PReLU(Layer):
    """blob: slope (C,), or () when channel_shared; 2 to 4 axes."""

    type: ClassVar[str] = "PReLU"
    param_field: ClassVar[str | None] = "prelu_param"
    in_place: ClassVar[bool] = True

    channel_shared: bool = False


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ELU(Layer):
    """x > 0 ? x : alpha * (e^x - 1)."""

    type: ClassVar[str] = "ELU"
    param_field: ClassVar[str | None] = "elu_param"
    in_place: ClassVar[bool] = True

    alpha: float = 1.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Sigmoid(Layer):
    """1 / (1 + e^-x)."""

    type: ClassVar[str] = "Sigmoid"
    in_place: ClassVar[bool] = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class TanH(Layer):
    """tanh x."""

    type: ClassVar[str] = "TanH"
    in_place: ClassVar[bool] = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class BNLL(Layer):
    """log(1 + e^x), stable."""

    type: ClassVar[str] = "BNLL"
    in_place: ClassVar[bool] = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Clip(Layer):
    """min(max(x, lo), hi) (after BVLC 1.0)."""

    type: ClassVar[str] = "Clip"
    param_field: ClassVar[str | None] = "clip_param"
    in_place: ClassVar[bool] = True

    min: float
    max: float


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Swish(Layer):
    """x * sigmoid(beta x) (after BVLC 1.0)."""

    type: ClassVar[str] = "Swish"
    param_field: ClassVar[str | None] = "swish_param"
    in_place: ClassVar[bool] = True

    beta: float = 1.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ReLU6(Layer):
    """clip(x, 0, threshold) (extension)."""

    type: ClassVar[str] = "ReLU6"
    param_field: ClassVar[str | None] = "relu6_param"
    in_place: ClassVar[bool] = True

    threshold: float = 6.0


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Mish(Layer):
    """x * tanh(softplus x) (extension)."""

    type: ClassVar[str] = "Mish"
    in_place: ClassVar[bool] = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class HardSwish(Layer):
    """x * clip(x + 3, 0, 6) / 6 (extension)."""

    type: ClassVar[str] = "HardSwish"
    in_place: ClassVar[bool] = True


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class HardSigmoid(Layer):
    """clip(alpha x + beta, 0, 1) (extension)."""

    type: ClassVar[str] = "HardSigmoid"
    param_field: ClassVar[str | None] = "hardsigmoid_param"
    in_place: ClassVar[bool] = True

    alpha: float = 0.2
    beta: float = 0.5


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Dropout(Layer):
    """Identity in the TEST phase."""

    type: ClassVar[str] = "Dropout"
    param_field: ClassVar[str | None] = "dropout_param"
    in_place: ClassVar[bool] = True

    dropout_ratio: float = 0.5


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Softmax(Layer):
    """Stable softmax along one axis."""

    type: ClassVar[str] = "Softmax"
    param_field: ClassVar[str | None] = "softmax_param"
    in_place: ClassVar[bool] = True

    axis: int = 1
