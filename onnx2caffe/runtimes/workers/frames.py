"""Frames between this package and its worker processes.

A frame is an 8-byte little-endian length, that many bytes of JSON, and the arrays whose dtypes and shapes the JSON
lists under "arrays". A greeting goes before the first frame of a worker: whoever started it may have printed before.
Read by any Python from 3.6 with numpy; the other end is `onnx2caffe.runtimes.process`.
"""

import json
import os
import struct
from typing import Any

__all__ = ["GREETING", "Channel"]

GREETING = b"\0frames of onnx2caffe\0"
"""What a worker says first."""


class Channel:
    """Frames over the standard streams, which library code can then no longer touch."""

    def __init__(self) -> None:
        self.incoming: Any = os.fdopen(os.dup(0), "rb")
        self.outgoing = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self.outgoing.write(GREETING)

    def receive(self) -> "tuple[dict[str, Any], list[Any]] | None":
        """The next frame as (header, arrays); None at the end of the stream."""
        import numpy as np

        start = self.incoming.read(8)
        if len(start) < 8:
            return None
        header = json.loads(self.incoming.read(struct.unpack("<Q", start)[0]).decode())
        arrays = []
        for dtype, shape in header.pop("arrays"):
            array = np.empty(shape, dtype)
            self.incoming.readinto(array.reshape(-1).view(np.uint8))
            arrays.append(array)
        return header, arrays

    def send(self, header: "dict[str, Any]", arrays: Any = ()) -> None:
        """Write a frame."""
        import numpy as np

        arrays = [np.asarray(array, order="C") for array in arrays]
        text = json.dumps(dict(header, arrays=[[str(array.dtype), array.shape] for array in arrays])).encode()
        self.outgoing.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            self.outgoing.write(array.reshape(-1).view(np.uint8))
        self.outgoing.flush()
