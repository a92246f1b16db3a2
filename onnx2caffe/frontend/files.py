"""The bytes behind tensors: external data, sizes checked, memory-mapped, never copied.

External data may lie only inside the model's own folder (after symbolic links are resolved).
"""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from onnx2caffe.errors import UnreadableFile

__all__ = ["Array", "Payloads", "map_file"]

Array = np.ndarray[Any, Any]

_PACKED = {
    onnx.TensorProto.STRING,
    *(getattr(onnx.TensorProto, name) for name in ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")),
}
"""Element types whose bytes are not the array's bytes."""


def map_file(path: Path) -> bytes | mmap.mmap:
    """The file's bytes, memory-mapped read-only (b"" for an empty file)."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class Payloads:
    """Turns TensorProtos of one model into arrays.

    `folder`: where external data may lie (None: the model came without a file, so nowhere).
    `own`: the model file's own bytes, for references made by `wire.without_payloads`.
    """

    def __init__(self, folder: Path | None, own: bytes | mmap.mmap = b"") -> None:
        self._folder = folder
        self._maps: dict[str, bytes | mmap.mmap] = {"": own}

    def array(self, proto: onnx.TensorProto) -> Array:
        """The tensor's values: a read-only view of the mapped file, or of the parsed bytes.

        Raises:
            UnreadableFile: type, size or place of the data is not what the tensor claims.

        """
        name = proto.name or "(unnamed)"
        try:
            dtype = ir.DataType(proto.data_type)
            elements = math.prod(proto.dims)
            if dtype == ir.DataType.UNDEFINED or any(d < 0 for d in proto.dims):
                raise ValueError(f"type {proto.data_type}, dims {list(proto.dims)}")
            data = self._bytes(proto)
            if data is not None and proto.data_type not in _PACKED:
                return self._view(data, dtype, elements).reshape(tuple(proto.dims))
            if data is not None:
                inline = onnx.TensorProto(dims=proto.dims, data_type=proto.data_type, raw_data=bytes(data))
                return numpy_helper.to_array(inline)
            return numpy_helper.to_array(proto)
        except UnreadableFile:
            raise
        except (ValueError, TypeError, OverflowError, KeyError) as error:
            raise UnreadableFile(f"the data of tensor {name!r} does not fit its type and shape: {error}") from error

    @staticmethod
    def _view(data: memoryview, dtype: ir.DataType, elements: int) -> Array:
        size = elements * dtype.bitwidth // 8
        if size != len(data):
            raise ValueError(f"{elements:,} x {dtype.name} need {size:,} bytes, {len(data):,} are there")
        return np.frombuffer(data, dtype=dtype.numpy()) if elements else np.zeros(0, dtype.numpy())

    def _bytes(self, proto: onnx.TensorProto) -> memoryview | None:
        if proto.data_location == onnx.TensorProto.EXTERNAL:
            return self._external(proto)
        return memoryview(proto.raw_data) if proto.HasField("raw_data") else None

    def _external(self, proto: onnx.TensorProto) -> memoryview:
        entries = {entry.key: entry.value for entry in proto.external_data}
        data = self._map(entries.get("location", ""), proto.name)
        offset = int(entries.get("offset") or 0)
        length = int(entries["length"]) if entries.get("length") else len(data) - offset
        if offset < 0 or length < 0 or offset + length > len(data):
            where = repr(entries.get("location") or "the model file")
            raise UnreadableFile(
                f"the data of tensor {proto.name!r} should be {length:,} bytes at {offset:,} of {where}, "
                f"which has {len(data):,} bytes"
            )
        return memoryview(data)[offset : offset + length]

    def _map(self, location: str, tensor: str) -> bytes | mmap.mmap:
        if location not in self._maps:
            self._maps[location] = map_file(self._inside(location, tensor))
        return self._maps[location]

    def _inside(self, location: str, tensor: str) -> Path:
        what = f"external data {location!r} of tensor {tensor!r}"
        if self._folder is None:
            raise UnreadableFile(f"{what}: the model has no folder", "pass base_dir, or convert the file itself")
        folder = self._folder.resolve()
        try:
            path = (folder / location).resolve()
            inside = (
                path.is_relative_to(folder) and not Path(location).is_absolute() and ".." not in Path(location).parts
            )
            there = inside and path.is_file()
        except (OSError, ValueError) as error:
            raise UnreadableFile(f"{what}: no usable path ({error})") from error
        if not inside:
            raise UnreadableFile(f"{what} lies outside the model's own folder", "external data is read only from there")
        if not there:
            raise UnreadableFile(f"{what} is missing", f"put the file {location!r} beside the model")
        return path
