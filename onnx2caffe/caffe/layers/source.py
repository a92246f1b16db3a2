"""Layers without bottoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, register, scalar
from onnx2caffe.caffe.layers.codec import UNSET, Codec, Dims, DimsList
from onnx2caffe.caffe.proto import Message

__all__ = ["DummyData", "Input", "Parameter"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Input(Layer):
    """Net inputs: one shape per top."""

    type: ClassVar[str] = "Input"
    param_field: ClassVar[str | None] = "input_param"
    arity: ClassVar[tuple[int, int | None]] = (0, 0)
    codecs: ClassVar[Mapping[str, Codec]] = {"shape": DimsList("shape")}

    shape: tuple[Shape, ...]

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return list(self.shape)


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Parameter(Layer):
    """A learned blob as a top."""

    type: ClassVar[str] = "Parameter"
    param_field: ClassVar[str | None] = "parameter_param"
    arity: ClassVar[tuple[int, int | None]] = (0, 0)
    codecs: ClassVar[Mapping[str, Codec]] = {"shape": Dims("shape")}

    shape: Shape

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [self.shape]

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [self.shape]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [g.op("Identity", g.const(self.blobs[0]))]


class _Constant:
    """The value of a constant `data_filler`."""

    fields = ("data_filler",)

    def write(self, message: Message, value: float) -> None:
        message.data_filler.add(type="constant", value=value)

    def read(self, message: Message) -> Any:
        if not message.data_filler:
            return UNSET
        (filler,) = message.data_filler
        if filler.type != "constant":
            raise ValueError(f"a data_filler of type {filler.type!r} is not constant")
        return filler.value


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class DummyData(Layer):
    """A constant fill: one top, a data_filler of type constant."""

    type: ClassVar[str] = "DummyData"
    param_field: ClassVar[str | None] = "dummy_data_param"
    arity: ClassVar[tuple[int, int | None]] = (0, 0)
    codecs: ClassVar[Mapping[str, Codec]] = {"shape": Dims("shape"), "value": _Constant()}

    shape: Shape
    value: float = 0.0

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [self.shape]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [g.op("Expand", scalar(g, self.value), g.const(np.array(self.shape, np.int64)))]
