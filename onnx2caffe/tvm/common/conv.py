"""Convolutions."""

from __future__ import annotations

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "Conv")
def conv(op: Op, net: Net) -> Value:
    """`nn.conv{1,2,3}d` and the bias; a computed weight too."""
    rank = len(op.shape(1)) - 2
    if rank not in (1, 2, 3):
        raise Refused(f"a convolution over {rank} axes")
    y = net.conv(
        f"nn.conv{rank}d",
        op.value(0),
        op.value(1),
        op.outputs[0],
        strides=op.attribute("strides"),
        padding=op.attribute("pads"),
        dilation=op.attribute("dilations"),
        groups=op.attribute("group"),
    )
    return net.add_bias(y, op.value(2)) if op.has(2) else y


@emits(BOTH, "ConvTranspose")
def conv_transpose(op: Op, net: Net) -> Value:
    """`nn.conv{1,2,3}d_transpose` and the bias. Dilations, which Relay lacks, are zeros between the kernel's taps."""
    rank = len(op.shape(1)) - 2
    if rank not in (1, 2, 3):
        raise Refused(f"a transposed convolution over {rank} axes")
    y = net.conv(
        f"nn.conv{rank}d_transpose",
        op.value(0),
        _dilated(op, net),
        op.outputs[0],
        strides=op.attribute("strides"),
        padding=op.attribute("pads"),
        output_padding=op.attribute("output_padding"),
        groups=op.attribute("group"),
        kernel_layout="IO" + ("W", "HW", "DHW")[rank - 1],
    )
    return net.add_bias(y, op.value(2)) if op.has(2) else y


def _dilated(op: Op, net: Net) -> Value:
    dilations = op.attribute("dilations")
    if all(d == 1 for d in dilations):
        return op.value(1)
    weight = op.need_const(1, "dilated weights")
    spread = [(n - 1) * d + 1 for n, d in zip(weight.shape[2:], dilations, strict=True)]
    wide = np.zeros((*weight.shape[:2], *spread), weight.dtype)
    taps = tuple(slice(None, None, d) for d in (1, 1, *dilations))
    wide[taps] = weight
    return net.const(wide)
