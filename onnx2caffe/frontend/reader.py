"""What an upgrade sees of one of the user's nodes: inputs, and attributes that are counted as they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
from onnx import AttributeProto, helper

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.frontend.builder import Opaque
from onnx2caffe.frontend.files import Array, Payloads

__all__ = ["Entry", "Reader"]

Entry = ir.Value | tuple[ir.Value, ...]
"""What a name stands for: a value, or a sequence of values known at conversion time."""

_EXPECTED = {
    "integer": AttributeProto.INT,
    "integers": AttributeProto.INTS,
    "number": AttributeProto.FLOAT,
    "numbers": AttributeProto.FLOATS,
    "text": AttributeProto.STRING,
    "tensor": AttributeProto.TENSOR,
}


class Reader:
    """One node of the user's file, written for `version` of its op.

    An attribute that no upgrade reads is left over, and `finish` refuses the node for it: nothing is dropped unseen.
    """

    def __init__(
        self,
        proto: onnx.NodeProto,
        version: int,
        inputs: Sequence[Entry | None],
        attributes: Mapping[str, AttributeProto],
        payloads: Payloads,
    ) -> None:
        self.op = proto.op_type
        self.version = version
        self.entries = tuple(inputs)
        self.wanted = tuple(bool(name) for name in proto.output)
        self._unread = dict(attributes)
        self._attributes = attributes
        self._payloads = payloads

    def __len__(self) -> int:
        """The number of inputs, absent ones counted."""
        return len(self.entries)

    def has(self, index: int) -> bool:
        """Whether input `index` is there."""
        return index < len(self.entries) and self.entries[index] is not None

    def input(self, index: int = 0) -> ir.Value:
        """Input `index`, which must be there and be a tensor."""
        value = self.optional(index)
        if value is None:
            raise Opaque(f"input {index} of {self.op} is missing")
        return value

    def optional(self, index: int) -> ir.Value | None:
        """Input `index`, or None when it is absent."""
        entry = self.entries[index] if index < len(self.entries) else None
        if isinstance(entry, tuple):
            raise Opaque(f"input {index} is a sequence")
        return entry

    @property
    def inputs(self) -> list[ir.Value | None]:
        """All inputs."""
        return [self.optional(i) for i in range(len(self.entries))]

    @property
    def present(self) -> list[ir.Value]:
        """All inputs of a variadic op."""
        return [self.input(i) for i in range(len(self.entries))]

    def shape(self, index: int = 0) -> Shape:
        """The static shape of input `index`."""
        return canon.shape(self.input(index))

    def constant(self, index: int, what: str) -> Array | None:
        """The array of an input that must be constant; None when it is absent.

        Raises:
            Opaque: it is computed.

        """
        value = self.optional(index)
        if value is None:
            return None
        array = canon.const(value)
        if array is None:
            raise Opaque(f"its {what} ({value.name!r}) must not depend on data")
        return array

    def int_list(self, index: int, what: str) -> list[int] | None:
        """A constant input as a list of integers; None when it is absent."""
        array = self.constant(index, what)
        return None if array is None else [int(v) for v in array.reshape(-1)]

    def integer(self, name: str, default: int | None = None) -> int:
        """An INT attribute."""
        return int(self._read(name, "integer", default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An INTS attribute."""
        return tuple(self._read(name, "integers", default))

    def number(self, name: str, default: float | None = None) -> float:
        """A FLOAT attribute."""
        return float(self._read(name, "number", default))

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """A FLOATS attribute."""
        return tuple(self._read(name, "numbers", default))

    def text(self, name: str, default: str | None = None) -> str:
        """A STRING attribute."""
        value = self._read(name, "text", default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def tensor(self, name: str) -> Array:
        """A TENSOR attribute."""
        return self._payloads.array(self._read(name, "tensor", None))

    def given(self, name: str) -> bool:
        """Whether the attribute is written in the file."""
        return name in self._attributes

    def axis(self, default: int | None = None, rank: int | None = None, name: str = "axis") -> int:
        """An axis attribute, made positive for data of `rank` (default: the rank of input 0)."""
        return self.positive(self.integer(name, default), len(self.shape()) if rank is None else rank)

    def positive(self, axis: int, rank: int) -> int:
        """`axis` counted from the front.

        Raises:
            Opaque: there is no such axis.

        """
        if not -rank <= axis < max(rank, 1):
            raise Opaque(f"axis {axis} does not exist in {rank} dimensions")
        return axis + rank if axis < 0 else axis

    def explicit(self) -> dict[str, Any]:
        """All attributes of this version of the op, defaults of that version filled in; those without one stay away."""
        schema = onnx.defs.get_schema(self.op, self.version, "")
        found: dict[str, Any] = {}
        for name, attribute in schema.attributes.items():
            if name in self._attributes:
                self._unread.pop(name, None)
                found[name] = self._value(self._attributes[name])
            elif attribute.default_value.type != AttributeProto.UNDEFINED:
                found[name] = self._value(attribute.default_value)
        return found

    def finish(self) -> None:
        """Refuse the node if an attribute was not read."""
        if self._unread:
            raise Opaque(f"attribute {', '.join(sorted(self._unread))} of {self.op}-{self.version} is not known")

    def _read(self, name: str, kind: str, default: Any) -> Any:
        attribute = self._attributes.get(name)
        if attribute is None:
            if default is None:
                raise Opaque(f"attribute {name} of {self.op} is missing")
            return default
        self._unread.pop(name, None)
        if attribute.type != _EXPECTED[kind]:
            raise Opaque(f"attribute {name} of {self.op} has type {AttributeProto.AttributeType.Name(attribute.type)}")
        return helper.get_attribute_value(attribute)

    def _value(self, attribute: AttributeProto) -> Any:
        value = helper.get_attribute_value(attribute)
        if attribute.type == AttributeProto.TENSOR:
            return self._payloads.array(value)
        if attribute.type == AttributeProto.STRING:
            return value.decode("utf-8", "replace")
        if attribute.type == AttributeProto.STRINGS:
            return tuple(v.decode("utf-8", "replace") for v in value)
        return tuple(value) if isinstance(value, list) else value
