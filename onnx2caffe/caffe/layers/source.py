"""Layers without bottoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, Shape, register

__all__ = ["DummyData", "Input", "Parameter"]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Input(Layer):
    """Net inputs: one shape per top."""

    type: ClassVar[str] = "Input"
    param_field: ClassVar[str | None] = "input_param"

    shape: tuple[Shape, ...]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Parameter(Layer):
    """A learned blob as a top."""

    type: ClassVar[str] = "Parameter"
    param_field: ClassVar[str | None] = "parameter_param"

    shape: Shape


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class DummyData(Layer):
    """A constant fill (data_filler of type constant)."""

    type: ClassVar[str] = "DummyData"
    param_field: ClassVar[str | None] = "dummy_data_param"

    shape: Shape
    value: float = 0.0
