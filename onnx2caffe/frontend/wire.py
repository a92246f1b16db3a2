"""Protobuf wire format: take the large payloads out of a serialised model before it is parsed.

Parsing a model copies every weight. Here each large `TensorProto.raw_data` is replaced by an external-data reference to
its own place in the same file (`location` ""), so that weights of either kind are read from memory-mapped files.
Source: protobuf encoding specification; field numbers from onnx.proto (IR version 14).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator

__all__ = ["INLINE_LIMIT", "Damaged", "without_payloads"]

INLINE_LIMIT = 4096
"""Payloads and messages up to this many bytes stay in the parsed model."""

Buffer = bytes | mmap.mmap

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_CHILDREN: dict[str, dict[int, str]] = {
    "Model": {7: "Graph", 25: "Function"},
    "Function": {7: "Node"},
    "Graph": {1: "Node", 5: "Tensor"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph"},
    "Tensor": {},
}
_DEPTH = 100
"""How deep messages may be nested; protobuf's own limit."""

_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_EXTERNAL = 1


class Damaged(ValueError):
    """The bytes are no well-formed protobuf message."""


def without_payloads(data: Buffer) -> bytes:
    """The same ModelProto with each `raw_data` above `INLINE_LIMIT` replaced by a reference into `data`.

    Raises:
        Damaged: a length or a tag does not fit the bytes that are there.

    """
    return b"".join(_rewritten(data, 0, len(data), "Model"))


def _rewritten(data: Buffer, start: int, end: int, kind: str, depth: int = 0) -> Iterator[bytes]:
    if depth > _DEPTH:
        raise Damaged(f"messages are nested more than {_DEPTH} deep")
    position = start
    while position < end:
        begin = position
        tag, position = _varint(data, position, end)
        field, wire = tag >> 3, tag & 7
        if wire != _BYTES:
            position = _skip(data, position, end, wire)
            yield data[begin:position]
            continue
        length, position = _varint(data, position, end)
        stop = position + length
        if stop > end:
            raise Damaged(f"a field of {length} bytes at byte {begin} ends behind its message")
        child = _CHILDREN[kind].get(field)
        if length <= INLINE_LIMIT or (child is None and not (kind == "Tensor" and field == _RAW_DATA)):
            yield data[begin:stop]
        elif child is None:
            yield from _reference(position, length)
        else:
            body = b"".join(_rewritten(data, position, stop, child, depth + 1))
            yield from (_encoded(tag), _encoded(len(body)), body)
        position = stop


def _reference(offset: int, length: int) -> Iterator[bytes]:
    for key, value in (("location", ""), ("offset", str(offset)), ("length", str(length))):
        yield _field(_EXTERNAL_DATA, _field(1, key.encode()) + _field(2, value.encode()))
    yield _encoded(_DATA_LOCATION << 3 | _VARINT) + _encoded(_EXTERNAL)


def _field(number: int, body: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(body)) + body


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise Damaged("the bytes end inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise Damaged(f"no number at byte {position}")


def _skip(data: Buffer, position: int, end: int, wire: int) -> int:
    if wire == _VARINT:
        return _varint(data, position, end)[1]
    width = {_FIXED64: 8, _FIXED32: 4}.get(wire)
    if width is None or position + width > end:
        raise Damaged(f"no protobuf field at byte {position}")
    return position + width
