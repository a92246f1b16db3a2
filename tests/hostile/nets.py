"""What is tried on `compare`: nets and weights that others wrote, or that say they did. Rows of README.md too."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NETS", "NetAttack"]

INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }\n'
RELU = 'layer { name: "y" type: "ReLU" bottom: "x" top: "y" }\n'
CONV = 'layer {{ name: "y" type: "Convolution" bottom: "x" top: "y" convolution_param {{ {} }} }}\n'


@dataclass(frozen=True)
class NetAttack:
    """A prototxt and a caffemodel beside `y = Relu(x)`; the exit code and a part of the message."""

    what: str
    prototxt: bytes | str | Callable[[Path], object]
    code: int
    says: str = ""
    caffemodel: bytes | Callable[[Path], object] = b""

    def make(self, folder: Path) -> None:
        """Write `net.prototxt` and `net.caffemodel`."""
        for name, content in (("net.prototxt", self.prototxt), ("net.caffemodel", self.caffemodel)):
            if callable(content):
                content(folder / name)
            else:
                (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def layer(text: str) -> str:
    return INPUT + text


def sized(*dims: int) -> str:
    listed = " ".join(f"dim: {d}" for d in dims)
    return f'layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ {listed} }} }} }}\n{RELU}'


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def blob(*dims: int, values: bytes = b"") -> bytes:
    shape = field(7, field(1, b"".join(varint(d) for d in dims)))
    return field(100, field(1, b"y") + field(7, shape + field(5, values)))


CONV4 = layer(CONV.format("num_output: 4 kernel_size: 1 bias_term: false"))
PARSED = [
    NetAttack("an empty prototxt", "", 2, "no input of the net"),
    NetAttack("a prototxt that is a binary", bytes(range(256)) * 9, 2, "is not a prototxt"),
    NetAttack("a prototxt of words", "once upon a time", 2, "is not a prototxt"),
    NetAttack("a prototxt cut in half", layer(RELU)[:-20], 2, "is not a prototxt"),
    NetAttack("a prototxt nested 10,000 deep", "layer { " * 10000, 2, "is not a prototxt"),
    NetAttack("a prototxt that is a folder", lambda path: path.mkdir(), 2, "net.prototxt"),
    NetAttack("a prototxt that is a pipe", os.mkfifo, 2, "net.prototxt"),
    NetAttack(
        "a field of another Caffe",
        layer('layer { name: "y" type: "ReLU" bottom: "x" top: "y" magic: 7 }'),
        2,
        'has no field named "magic"',
    ),
    NetAttack(
        "an unknown layer",
        layer('layer { name: "y" type: "Evil" bottom: "x" top: "y" }'),
        3,
        "unknown layer types: Evil (1)",
    ),
    NetAttack(
        "a Python layer",
        layer('layer { name: "y" type: "Python" bottom: "x" top: "y" python_param { module: "os" layer: "system" } }'),
        2,
        "python_param",
    ),
    NetAttack(
        "a Python layer without parameters",
        layer('layer { name: "y" type: "Python" bottom: "x" top: "y" }'),
        3,
        "Python (1)",
    ),
    NetAttack(
        "a layer that reads a database",
        layer('layer { name: "d" type: "Data" top: "d" data_param { source: "/etc" } }'),
        2,
        "data_param",
    ),
    NetAttack("a layer without a type", layer('layer { name: "y" bottom: "x" top: "y" }'), 3, "unknown layer types"),
    NetAttack(
        "a bottom that nothing makes",
        layer('layer { name: "y" type: "ReLU" bottom: "z" top: "y" }'),
        2,
        "unknown bottom blob 'z'",
    ),
    NetAttack(
        "layers in a circle",
        layer(
            'layer { name: "a" type: "ReLU" bottom: "b" top: "a" } layer { name: "b" '
            'type: "ReLU" bottom: "a" top: "b" }'
        ),
        2,
        "unknown bottom",
    ),
    NetAttack("a blob made twice", layer(RELU + RELU), 2, "top blob 'y' is produced by several layers"),
    NetAttack("two layers of one name", layer(RELU + RELU.replace('top: "y"', 'top: "z"')), 0),
    NetAttack(
        "a net without an input",
        'layer { name: "y" type: "DummyData" top: "y" }',
        2,
        "dummy_data_param.shape is missing",
    ),
    NetAttack("an input of 10^18", sized(10**9, 10**9), 2, "INT_MAX"),
    NetAttack("an input of 2 GB", sized(1, 3, 13000, 13000), 2, "fits no input of the net"),
    NetAttack("an input of negative size", sized(1, -3, 8, 8), 2, "top shape (1, -3, 8, 8) has an empty axis"),
    NetAttack("an input of another size", sized(1, 3, 9, 8), 2, "fits no input of the net"),
    NetAttack("an input with 40 axes", sized(*[1] * 40), 2, "a blob has at most 32 axes, not 40"),
    NetAttack(
        "2^31 outputs of a convolution", layer(CONV.format("num_output: 2147483647 kernel_size: 1")), 2, "INT_MAX"
    ),
    NetAttack(
        "no output of a convolution",
        layer(CONV.format("num_output: 0 kernel_size: 1")),
        2,
        "num_output must be positive",
    ),
    NetAttack("a kernel of 0", layer(CONV.format("num_output: 4 kernel_size: 0")), 2, "kernel (0, 0) must be positive"),
    NetAttack(
        "a kernel of 4,000,000,000",
        layer(CONV.format("num_output: 4 kernel_size: 4000000000")),
        2,
        "top shape (1, 4, -3999999991, -3999999991) has an empty axis",
    ),
    NetAttack(
        "a stride of 0 in a net",
        layer(CONV.format("num_output: 4 kernel_size: 1 stride: 0")),
        2,
        "stride (0, 0) must be positive",
    ),
    NetAttack(
        "a pad of 4,000,000,000",
        layer(CONV.format("num_output: 4 kernel_size: 1 pad: 4000000000")),
        2,
        "exceeds INT_MAX elements",
    ),
    NetAttack(
        "a group of 0",
        layer(CONV.format("num_output: 4 kernel_size: 1 group: 0")),
        2,
        "group 0 does not divide 3 channels",
    ),
    NetAttack(
        "a dilation of 0 in a net",
        layer(CONV.format("num_output: 4 kernel_size: 1 dilation: 0")),
        2,
        "dilation (0, 0) must be positive",
    ),
    NetAttack(
        "Reshape with two -1 in a net",
        layer('layer { name: "y" type: "Reshape" bottom: "x" top: "y" reshape_param { shape { dim: -1 dim: -1 } } }'),
        2,
        "several -1 in (-1, -1)",
    ),
    NetAttack(
        "Slice beyond the end",
        layer('layer { name: "y" type: "Slice" bottom: "x" top: "y" top: "z" slice_param { slice_point: 99 } }'),
        2,
        "slice points (99,) do not rise",
    ),
    NetAttack(
        "Tile by 2,000,000,000",
        layer('layer { name: "y" type: "Tile" bottom: "x" top: "y" tile_param { tiles: 2000000000 } }'),
        2,
        "INT_MAX",
    ),
    NetAttack(
        "Upsample by 100,000",
        layer('layer { name: "y" type: "Upsample" bottom: "x" top: "y" upsample_param { scale: 100000 } }'),
        2,
        "INT_MAX",
    ),
    NetAttack(
        "LRN over 10^9 channels",
        layer('layer { name: "y" type: "LRN" bottom: "x" top: "y" lrn_param { local_size: 999999999 } }'),
        2,
        "INT_MAX",
    ),
]

WEIGHTS = [
    NetAttack("a caffemodel that is empty", CONV4, 2, "no weights"),
    NetAttack("a caffemodel of words", CONV4, 2, "is not a caffemodel", b"once upon a time"),
    NetAttack("a caffemodel of random bytes", CONV4, 2, "is not a caffemodel", bytes(range(255, -1, -1)) * 99),
    NetAttack("a caffemodel that is a folder", CONV4, 2, "net.caffemodel", lambda path: path.mkdir()),
    NetAttack("a caffemodel that is a pipe", CONV4, 2, "net.caffemodel", os.mkfifo),
    NetAttack("weights that claim 5 GB", CONV4, 2, "has 0 values", blob(1 << 20, 1280)),
    NetAttack("weights whose size overflows", CONV4, 2, "has 0 values", blob(1 << 40, 1 << 40)),
    NetAttack("weights of negative size", CONV4, 2, "has 0 values", blob((1 << 64) - 4, (1 << 64) - 3)),
    NetAttack(
        "weights of another shape",
        CONV4,
        2,
        "the file has a blob of shape (1, 3, 1, 4) for it, it needs (4, 3, 1, 1)",
        blob(1, 3, 1, 4, values=bytes(48)),
    ),
    NetAttack("weights cut off", CONV4, 2, "is not a caffemodel", blob(4, 3, 1, 1, values=bytes(48))[:-9]),
    NetAttack("weights of 47 bytes", CONV4, 2, "is not a caffemodel", blob(4, 3, 1, 1, values=bytes(47))),
    NetAttack(
        "weights that are not finite", CONV4, 1, "", blob(4, 3, 1, 1, values=struct.pack("<12f", *[float("nan")] * 12))
    ),
]

NETS = {"Nets": PARSED, "Weights": WEIGHTS}
"""Section -> its rows."""
