"""Between a layer's dataclass fields and the fields of its parameter message.

Most fields stand in the message under their own name; `Plain` does those. The others have a codec in the layer type's
`codecs`. A codec also names the message fields it reads, so that the reader can refuse what nobody read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from onnx2caffe.caffe.proto import Message

__all__ = ["UNSET", "Codec", "Dims", "DimsList", "PerAxis", "Plain", "is_set"]

UNSET: Any = object()
"""What `Codec.read` gives for a field that the message does not hold."""


class Codec(Protocol):
    """How one dataclass field is spelled in a message."""

    @property
    def fields(self) -> Sequence[str]:
        """The message fields that `read` looks at."""
        ...

    def write(self, message: Message, value: Any) -> None:
        """Set the message's fields."""
        ...

    def read(self, message: Message) -> Any:
        """The dataclass field's value, or UNSET."""
        ...


class Plain:
    """One message field, singular or repeated; enums by their names. Old names (`aliases`) are read, not written."""

    def __init__(self, name: str, *aliases: str) -> None:
        self._name = name
        self.fields = (name, *aliases)

    def write(self, message: Message, value: Any) -> None:
        field = message.DESCRIPTOR.fields_by_name[self._name]
        if _repeated(message, self._name):
            getattr(message, self._name).extend(value)
        elif field.enum_type is not None:
            setattr(message, self._name, field.enum_type.values_by_name[value].number)
        else:
            setattr(message, self._name, value)

    def read(self, message: Message) -> Any:
        for name in self.fields:
            if is_set(message, name):
                return _value(message, name)
        return UNSET


class PerAxis:
    """One value per spatial axis, or one for all: a field and, where Caffe has them, its forms for height and width."""

    def __init__(self, name: str, *height_width: str) -> None:
        self._name = name
        self._pair = height_width
        self.fields = (name, *height_width)

    def write(self, message: Message, value: Sequence[int]) -> None:
        if len(value) == 2 and value[0] != value[1] and self._pair:
            for name, one in zip(self._pair, value, strict=True):
                setattr(message, name, one)
            return
        one_for_all = value[:1] if len(set(value)) == 1 else value
        if _repeated(message, self._name):
            getattr(message, self._name).extend(one_for_all)
        elif one_for_all:
            (only,) = one_for_all
            setattr(message, self._name, only)

    def read(self, message: Message) -> Any:
        if any(is_set(message, name) for name in self._pair):
            return tuple(getattr(message, name) for name in self._pair)
        if not is_set(message, self._name):
            return UNSET
        value = _value(message, self._name)
        return value if isinstance(value, tuple) else (value,)


class Dims:
    """A shape in a BlobShape; where Caffe allows several, exactly one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.fields = (name,)

    def write(self, message: Message, value: Sequence[int]) -> None:
        shape = getattr(message, self._name)
        if _repeated(message, self._name):
            shape.add(dim=value)
        else:
            shape.SetInParent()
            shape.dim.extend(value)

    def read(self, message: Message) -> Any:
        if not is_set(message, self._name):
            return UNSET
        shape = getattr(message, self._name)
        if not _repeated(message, self._name):
            return tuple(shape.dim)
        if len(shape) > 1:
            raise ValueError(f"{len(shape)} shapes in {self._name}: only one is supported")
        return tuple(shape[0].dim)


class DimsList:
    """Several shapes, each in a BlobShape."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.fields = (name,)

    def write(self, message: Message, value: Sequence[Sequence[int]]) -> None:
        for shape in value:
            getattr(message, self._name).add(dim=shape)

    def read(self, message: Message) -> Any:
        return tuple(tuple(shape.dim) for shape in getattr(message, self._name))


def is_set(message: Message, name: str) -> bool:
    """Whether the message's text or bytes held the field."""
    return len(getattr(message, name)) > 0 if _repeated(message, name) else bool(message.HasField(name))


def _repeated(message: Message, name: str) -> bool:
    return not message.DESCRIPTOR.fields_by_name[name].has_presence


def _value(message: Message, name: str) -> Any:
    value = getattr(message, name)
    if _repeated(message, name):
        return tuple(value)
    enum = message.DESCRIPTOR.fields_by_name[name].enum_type
    return value if enum is None else enum.values_by_number[value].name
