"""A caffemodel's weights by layer name, straight from protobuf's wire format.

Only names and blobs are looked at, in layers of both generations: the numbers of the other fields mean different
messages in different forks of Caffe, and a parsed NetParameter would hold every weight twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onnx2caffe.caffe.layers.base import Array, Shape
from onnx2caffe.errors import UnreadableFile

__all__ = ["StoredBlob", "parse_blob", "read_weights"]

_LAYER, _LAYER_V1 = 100, 2
_NAME_AND_BLOBS = {_LAYER: (1, 7), _LAYER_V1: (4, 6)}
_SHAPE, _DATA, _DOUBLE_DATA = 7, 5, 8
_LEGACY = (1, 2, 3, 4)


@dataclass(frozen=True)
class StoredBlob:
    """A blob's values, flat float32, and its shape; `legacy`: four axes from before Caffe had shapes."""

    values: Array
    shape: Shape
    legacy: bool

    def fits(self, shape: Shape) -> bool:
        """Whether Caffe takes it for a blob of `shape` (Blob::ShapeEquals)."""
        if not self.legacy:
            return self.shape == shape
        return len(shape) <= 4 and (1,) * (4 - len(shape)) + shape == self.shape


def read_weights(path: Path) -> dict[str, list[StoredBlob]]:
    """The blobs of every layer of a caffemodel that has any; of two layers of one name the last one's, as in Caffe.

    Raises:
        UnreadableFile: no such file, or not a caffemodel.

    """
    try:
        if path.stat().st_size == 0:
            return {}
        return dict(_layers(np.memmap(path, np.uint8, "r").data))
    except OSError as problem:
        raise UnreadableFile(f"cannot read {path}: {problem.strerror}") from problem
    except ValueError as problem:
        raise UnreadableFile(f"{path} is not a caffemodel: {problem}") from problem


def parse_blob(data: bytes | memoryview) -> StoredBlob:
    """A serialized BlobProto.

    Raises:
        ValueError: not well-formed, or the number of values does not fit the shape.

    """
    parts: list[Array] = []
    shape: Shape = ()
    legacy: dict[int, int] = {}
    for number, value in _fields(memoryview(data)):
        if number == _SHAPE and isinstance(value, memoryview):
            shape = _dims(value)
        elif number in {_DATA, _DOUBLE_DATA} and isinstance(value, memoryview):
            parts.append(np.frombuffer(value, "<f4" if number == _DATA else "<f8"))
        elif number in _LEGACY and isinstance(value, int):
            legacy[number] = value
    values = np.concatenate([np.empty(0, np.float32), *parts], dtype=np.float32)
    if legacy:
        shape = tuple(legacy.get(axis, 0) for axis in _LEGACY)
    if values.size != math.prod(shape):
        raise ValueError(f"a blob of shape {shape} has {values.size} values")
    return StoredBlob(values, shape, bool(legacy))


def _layers(view: memoryview) -> Iterator[tuple[str, list[StoredBlob]]]:
    for number, layer in _fields(view):
        if number not in _NAME_AND_BLOBS or not isinstance(layer, memoryview):
            continue
        name_field, blobs_field = _NAME_AND_BLOBS[number]
        name, blobs = "", []
        for inner, value in _fields(layer):
            if inner == name_field and isinstance(value, memoryview):
                name = str(value, "utf-8")
            elif inner == blobs_field and isinstance(value, memoryview):
                blobs.append(parse_blob(value))
        if blobs:
            yield name, blobs


def _dims(shape: memoryview) -> Shape:
    dims: list[int] = []
    for number, value in _fields(shape):
        if number == 1 and isinstance(value, memoryview):
            position = 0
            while position < len(value):
                dim, position = _varint(value, position)
                dims.append(dim)
        elif number == 1 and isinstance(value, int):
            dims.append(value)
    return tuple(dims)


def _fields(view: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Field numbers and values: integers of varints, bytes of everything else.

    Raises:
        ValueError: not protobuf's wire format.

    """
    position = 0
    while position < len(view):
        tag, position = _varint(view, position)
        kind = tag & 7
        if kind == 0:
            number, position = _varint(view, position)
            yield tag >> 3, number
            continue
        if kind == 2:
            size, position = _varint(view, position)
        elif kind in {1, 5}:
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind} at byte {position}")
        if position + size > len(view):
            raise ValueError(f"a field of {size} bytes is cut off")
        yield tag >> 3, view[position : position + size]
        position += size


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if position >= len(view):
            raise ValueError("a number is cut off")
        byte = view[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
    raise ValueError("a number is too long")
