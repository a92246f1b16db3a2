"""The process that holds a model's C, for `onnx2caffe.runtimes.c`. Arguments: the shared library, the function.

A request holds "outputs", their dtypes and shapes, and the inputs as arrays; the answer is {"code": what the function
gave} and the outputs.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx2caffe.runtimes.workers.frames import Channel
else:
    from frames import Channel


def main() -> None:
    """Answer requests until the stream ends."""
    channel = Channel()
    function = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
    channel.send({})
    while True:
        request = channel.receive()
        if request is None:
            return
        header, inputs = request
        outputs = [np.full(shape, 0xAA, np.uint8).view(dtype) for dtype, shape in _bytes(header["outputs"])]
        code = function(*(array.ctypes.data_as(ctypes.c_void_p) for array in (*inputs, *outputs)))
        shaped = [array.reshape(shape) for array, (_, shape) in zip(outputs, header["outputs"])]  # noqa: B905
        channel.send({"code": code}, shaped)


def _bytes(types: list[tuple[str, list[int]]]) -> list[tuple[str, int]]:
    """How many bytes each of these takes."""
    return [(dtype, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize) for dtype, shape in types]


if __name__ == "__main__":
    main()
