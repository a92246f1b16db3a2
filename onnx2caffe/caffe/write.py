"""Nets to files: the prototxt as readable text, the caffemodel streamed from the weights' own buffers.

Both are functions of the net alone: same net, same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from google.protobuf import text_format

from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.params import to_message
from onnx2caffe.caffe.proto import Message, message
from onnx2caffe.errors import Unsupported

__all__ = ["net_message", "write_caffemodel", "write_prototxt"]

MAX_CAFFEMODEL = 2**31 - 1
"""Bytes that protobuf, and so Caffe, reads at most (caffe §11)."""


def write_prototxt(net: Net, path: Path, header_lines: Sequence[str] = ()) -> str:
    """Write the net without weights; `header_lines` become comments at the top.

    Returns the file's sha256 as hex digits.
    """
    comments = [f"# {_printable(part)}".rstrip() for line in header_lines for part in line.splitlines() or [""]]
    text = "".join(f"{line}\n" for line in comments) + text_format.MessageToString(net_message(net), as_utf8=True)
    data = text.encode()
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def net_message(net: Net) -> Message:
    """The NetParameter of a net, without weights."""
    result = message("NetParameter")(name=net.name)
    for placed in net:
        param = to_message(placed.layer)
        param.name = placed.name
        param.bottom.extend(placed.bottoms)
        param.top.extend(placed.tops)
        result.layer.append(param)
    return result


def write_caffemodel(net: Net, path: Path) -> str:
    """Write the weights by layer name, one blob in memory at a time beyond the net's own arrays.

    Returns the file's sha256 as hex digits.

    Raises:
        Unsupported: the file would exceed what Caffe can read (2 GiB - 1); nothing is written.

    """
    weighted = [placed for placed in net if placed.layer.blobs]
    header = _string(_NET_NAME, net.name)
    size = len(header) + sum(_delimited_size(_NET_LAYER, _layer_size(placed)) for placed in weighted)
    if size > MAX_CAFFEMODEL:
        raise Unsupported(
            f"the weights need a caffemodel of {size} bytes; Caffe reads at most {MAX_CAFFEMODEL}",
            hint="split the model at a tensor (--output, then --input) and convert the parts",
        )
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for part in _parts(header, weighted):
            file.write(part)
            digest.update(part)
    return digest.hexdigest()


# Wire format: a length-delimited field is its tag, the length, the bytes. The numbers are those of proto/caffe.proto.
_NET_NAME, _NET_LAYER = 1, 100
_LAYER_NAME, _LAYER_TYPE, _LAYER_BLOBS = 1, 2, 7
_BLOB_DATA, _BLOB_SHAPE, _SHAPE_DIM = 5, 7, 1


def _parts(header: bytes, weighted: Iterable[Placed]) -> Iterable[bytes | memoryview]:
    yield header
    for placed in weighted:
        yield _prefix(_NET_LAYER, _layer_size(placed))
        yield _layer_head(placed)
        for blob in placed.layer.blobs:
            shape = _blob_shape(blob.shape)
            yield _prefix(_LAYER_BLOBS, _blob_size(blob))
            yield shape
            yield _prefix(_BLOB_DATA, 4 * blob.size)
            yield np.ascontiguousarray(blob, dtype="<f4").reshape(-1).view(np.uint8).data


def _layer_size(placed: Placed) -> int:
    blobs = sum(_delimited_size(_LAYER_BLOBS, _blob_size(blob)) for blob in placed.layer.blobs)
    return len(_layer_head(placed)) + blobs


def _layer_head(placed: Placed) -> bytes:
    return _string(_LAYER_NAME, placed.name) + _string(_LAYER_TYPE, placed.layer.type)


def _blob_size(blob: Array) -> int:
    return len(_blob_shape(blob.shape)) + _delimited_size(_BLOB_DATA, 4 * blob.size)


def _blob_shape(shape: Sequence[int]) -> bytes:
    dims = b"".join(_varint(d) for d in shape)
    body = _delimited(_SHAPE_DIM, dims) if dims else b""
    return _delimited(_BLOB_SHAPE, body)


def _string(field: int, text: str) -> bytes:
    return _delimited(field, text.encode())


def _delimited(field: int, body: bytes) -> bytes:
    return _prefix(field, len(body)) + body


def _delimited_size(field: int, size: int) -> int:
    return len(_prefix(field, size)) + size


def _prefix(field: int, size: int) -> bytes:
    return _varint(field << 3 | 2) + _varint(size)


def _varint(value: int) -> bytes:
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in line)
