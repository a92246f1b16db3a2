"""Convolutions."""

from __future__ import annotations

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
