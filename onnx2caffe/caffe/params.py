"""Layers to and from LayerParameter messages, by field names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from onnx2caffe.caffe.layers.base import Layer, LayerError
from onnx2caffe.caffe.layers.codec import UNSET, Codec, Plain
from onnx2caffe.caffe.proto import Message, message

__all__ = ["from_message", "parameter_names", "take_foreign_fields", "to_message"]

_COMMON = frozenset(
    ["name", "type", "bottom", "top", "blobs", "include", "exclude", "phase", "loss_weight", "param", "propagate_down"]
)
"""What every LayerParameter may hold; the reader and the writer see to what matters of it."""

_STRUCTURAL = frozenset({"blobs", "tops"})
"""Dataclass fields that are no parameters: weights, and the number of tops."""


def to_message(layer: Layer) -> Message:
    """A LayerParameter with the layer's type and parameters; names and weights are left to the caller.

    Caffe's defaults are left out, except enums: `pool: MAX` reads better than nothing.
    """
    param = message("LayerParameter")(type=layer.type)
    if layer.param_field is None:
        return param
    body = getattr(param, layer.param_field)
    for field, codec in _parameters(type(layer)):
        value = getattr(layer, field.name)
        if value is not None and (_is_enum(body, field.name) or not _is_default(field, value)):
            codec.write(body, value)
    return param


def from_message(cls: type[Layer], param: Message, tops: int) -> Layer:
    """A layer without weights from its LayerParameter and the number of its tops.

    Raises:
        ValueError: a needed field is missing, or a field is set that this package has no meaning for.

    """
    _refuse_other_params(cls, param)
    values: dict[str, Any] = {"tops": tops} if any(f.name == "tops" for f in dataclasses.fields(cls)) else {}
    if cls.param_field is None:
        return cls(**values)
    body = getattr(param, cls.param_field)
    for field, codec in _parameters(cls):
        value = codec.read(body)
        if value is not UNSET:
            values[field.name] = value
        elif field.default is dataclasses.MISSING:
            raise LayerError(f"{cls.param_field}.{field.name} is missing")
    if unknown := _foreign(cls, body):
        raise LayerError(f"{cls.param_field}.{unknown[0]} is not supported")
    return cls(**values)


def take_foreign_fields(cls: type[Layer], param: Message) -> list[str]:
    """Clear the fields that `from_message` would refuse; the names of those that this package has no meaning for."""
    for field, _ in param.ListFields():
        if field.name not in _COMMON and field.name != cls.param_field:
            param.ClearField(field.name)
    if cls.param_field is None:
        return []
    body = getattr(param, cls.param_field)
    foreign = _foreign(cls, body)
    for name in foreign:
        body.ClearField(name)
    return [f"{cls.param_field}.{name}" for name in foreign]


def _foreign(cls: type[Layer], body: Message) -> list[str]:
    """The fields set in a parameter message that the layer type has no meaning for."""
    read = set(cls.unread) | set(cls.fillers)
    for _, codec in _parameters(cls):
        read.update(codec.fields)
    return [f.name for f, value in body.ListFields() if f.name not in read and value != f.default_value]


def parameter_names(cls: type[Layer]) -> list[str]:
    """The fields of a layer type that are parameters."""
    return [field.name for field, _ in _parameters(cls)]


def _parameters(cls: type[Layer]) -> Iterator[tuple[dataclasses.Field[Any], Codec]]:
    for field in dataclasses.fields(cls):
        if field.name not in _STRUCTURAL:
            yield field, cls.codecs.get(field.name) or Plain(field.name)


def _refuse_other_params(cls: type[Layer], param: Message) -> None:
    for field, _ in param.ListFields():
        if field.name not in _COMMON and field.name != cls.param_field:
            raise LayerError(f"{field.name} does not belong to a layer of type {cls.type}")


def _is_enum(body: Message, name: str) -> bool:
    field = body.DESCRIPTOR.fields_by_name.get(name)
    return field is not None and field.enum_type is not None


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether leaving the field out means the same: a dataclass field's default is Caffe's."""
    if isinstance(field.default, float):
        return bool(np.float32(value) == np.float32(field.default))
    return bool(value == field.default)
