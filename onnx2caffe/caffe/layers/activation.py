"""Activations: one bottom, one top of its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, axis_index, register, require, scalar

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


class _Activation(Layer):
    """A function of one element."""

    in_place: ClassVar[bool] = True

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        return [self.function(g, x)]

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        """The function's nodes."""
        raise NotImplementedError


def _leaky(g: OnnxBuilder, x: Any, slope: Any) -> Any:
    """Caffe's form, not ONNX's: slope 0 turns -inf into NaN."""
    zero = scalar(g, 0)
    return g.op("Add", g.op("Max", x, zero), g.op("Mul", g.op("Min", x, zero), slope))


def _clamp(g: OnnxBuilder, x: Any, low: float, high: float) -> Any:
    return g.op("Min", g.op("Max", x, scalar(g, low)), scalar(g, high))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ReLU(_Activation):
    """max(x, 0) + slope * min(x, 0) (relu_layer.cpp)."""

    type: ClassVar[str] = "ReLU"
    param_field: ClassVar[str | None] = "relu_param"
    unread: ClassVar[frozenset[str]] = frozenset({"engine"})

    negative_slope: float = 0.0

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return _leaky(g, x, scalar(g, self.negative_slope))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class PReLU(_Activation):
    """blob: slope (C,), or () when channel_shared; 2 to 4 axes (prelu_layer.cpp)."""

    type: ClassVar[str] = "PReLU"
    param_field: ClassVar[str | None] = "prelu_param"
    fillers: ClassVar[tuple[str, ...]] = ("filler",)

    channel_shared: bool = False

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(2 <= len(bottoms[0]) <= 4, f"takes 2 to 4 axes, not {len(bottoms[0])}")
        return [bottoms[0]]

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [() if self.channel_shared else (bottoms[0][1],)]

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        (slope,) = self.blobs
        return _leaky(g, x, g.const(slope.reshape(slope.shape + (1,) * (len(g.shape(x)) - 2))))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ELU(_Activation):
    """x > 0 ? x : alpha * (e^x - 1) (elu_layer.cpp)."""

    type: ClassVar[str] = "ELU"
    param_field: ClassVar[str | None] = "elu_param"

    alpha: float = 1.0

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        zero = scalar(g, 0)
        negative = g.op("Sub", g.op("Exp", g.op("Min", x, zero)), scalar(g, 1))
        return g.op("Add", g.op("Max", x, zero), g.op("Mul", negative, scalar(g, self.alpha)))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Sigmoid(_Activation):
    """1 / (1 + e^-x)."""

    type: ClassVar[str] = "Sigmoid"
    param_field: ClassVar[str | None] = "sigmoid_param"
    unread: ClassVar[frozenset[str]] = frozenset({"engine"})

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return g.op("Sigmoid", x)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class TanH(_Activation):
    """tanh x."""

    type: ClassVar[str] = "TanH"
    param_field: ClassVar[str | None] = "tanh_param"
    unread: ClassVar[frozenset[str]] = frozenset({"engine"})

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return g.op("Tanh", x)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class BNLL(_Activation):
    """log(1 + e^x), stable."""

    type: ClassVar[str] = "BNLL"

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return g.op("Softplus", x)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Clip(_Activation):
    """max(min, min(x, max)); NaN gives min (clip_layer.cpp, after BVLC 1.0)."""

    type: ClassVar[str] = "Clip"
    param_field: ClassVar[str | None] = "clip_param"

    min: float
    max: float

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        low = scalar(g, self.min)
        capped = g.op("Min", x, scalar(g, self.max))
        return g.op("Where", g.op("Greater", capped, low), capped, low)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Swish(_Activation):
    """x * sigmoid(beta x) (after BVLC 1.0)."""

    type: ClassVar[str] = "Swish"
    param_field: ClassVar[str | None] = "swish_param"

    beta: float = 1.0

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return g.op("Mul", x, g.op("Sigmoid", g.op("Mul", x, scalar(g, self.beta))))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ReLU6(_Activation):
    """clip(x, 0, threshold) (extension)."""

    type: ClassVar[str] = "ReLU6"
    param_field: ClassVar[str | None] = "relu6_param"

    threshold: float = 6.0

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return _clamp(g, x, 0, self.threshold)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Mish(_Activation):
    """x * tanh(softplus x) (extension)."""

    type: ClassVar[str] = "Mish"

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return g.op("Mul", x, g.op("Tanh", g.op("Softplus", x)))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class HardSwish(_Activation):
    """x * clip(x + 3, 0, 6) / 6 (extension)."""

    type: ClassVar[str] = "HardSwish"

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        gate = _clamp(g, g.op("Add", x, scalar(g, 3)), 0, 6)
        return g.op("Div", g.op("Mul", x, gate), scalar(g, 6))


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class HardSigmoid(_Activation):
    """clip(alpha x + beta, 0, 1) (extension)."""

    type: ClassVar[str] = "HardSigmoid"
    param_field: ClassVar[str | None] = "hardsigmoid_param"

    alpha: float = 0.2
    beta: float = 0.5

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        line = g.op("Add", g.op("Mul", x, scalar(g, self.alpha)), scalar(g, self.beta))
        return _clamp(g, line, 0, 1)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Dropout(_Activation):
    """Identity in the TEST phase."""

    type: ClassVar[str] = "Dropout"
    param_field: ClassVar[str | None] = "dropout_param"

    dropout_ratio: float = 0.5

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return g.op("Identity", x)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Softmax(_Activation):
    """Stable softmax along one axis (softmax_layer.cpp)."""

    type: ClassVar[str] = "Softmax"
    param_field: ClassVar[str | None] = "softmax_param"
    unread: ClassVar[frozenset[str]] = frozenset({"engine"})

    axis: int = 1

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        axis_index(self.axis, len(bottoms[0]))
        return [bottoms[0]]

    def function(self, g: OnnxBuilder, x: Any) -> Any:
        return g.op("Softmax", x, axis=self.axis)
