"""The windows of Conv, ConvTranspose and the poolings, in Caffe's terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused
from onnx2caffe.decompose.windows import Axis

__all__ = ["Taps", "axes_of", "even_pads"]

_FAR = 2**16
"""Places beyond the data that no window of a real net reaches."""


def axes_of(op: Op, kernel: Sequence[int]) -> list[Axis]:
    """One `Axis` per spatial axis of a Conv, ConvTranspose or pooling node.

    Raises:
        Refused: no window fits, or windows or padding go far beyond the data.

    """
    rank = len(kernel)
    if 0 in op.outputs[0]:
        raise Refused(f"output shape {op.outputs[0]} is empty: Caffe has no blobs of size 0")
    pads, ones = op.attribute("pads"), (1,) * rank
    strides, dilations = op.attribute("strides", ones), op.attribute("dilations", ones)
    sizes = op.shape()[2:], op.outputs[0][2:]
    for size, *sides in zip(op.shape()[2:], kernel, pads[:rank], pads[rank:], strict=True):
        if max(sides) > max(size, _FAR):
            raise Refused(f"kernel {tuple(kernel)} and pads {pads} go more than {_FAR:,} places beyond {sizes[0]}")
    return [Axis(*axis) for axis in zip(*sizes, kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)]


@dataclass(frozen=True)
class Taps:
    """One axis of a kernel in Caffe's terms: the pad of both ends, and zero taps in front of and behind the kernel."""

    pad: int
    front: int = 0
    behind: int = 0


def even_pads(axis: Axis) -> Taps:
    """Pad and zero taps that make Caffe's convolution windows those of the axis (recipes 3.2).

    Zero taps, `dilation` apart, move the end of the last window; it may lie anywhere in a range of `stride` places.

    Raises:
        Refused: no number of zero taps does it.

    """
    if axis.front < 0:
        raise Refused(f"pad {axis.front}: Caffe has no negative pads")
    room = axis.size + 2 * axis.front - axis.span
    least, most = (axis.out - 1) * axis.stride - room, axis.out * axis.stride - 1 - room
    d = axis.dilation
    steps = math.ceil(least / d) if least > 0 else min(0, math.floor(most / d))
    if not least <= steps * d <= most:
        raise Refused(f"pads {axis.front}, {axis.behind} cannot be made even by zero taps of dilation {d}")
    return Taps(axis.front + steps * d, front=steps) if steps > 0 else Taps(axis.front, behind=-steps)
