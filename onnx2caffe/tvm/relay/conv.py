"""Convolutions in Relay."""

from __future__ import annotations

from functools import partial

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import emits

__all__: list[str] = []

relay = partial(emits, "relay")


@relay("Conv")
def conv(op: Op, net: Net) -> Value:
    """`nn.conv{1,2,3}d`, then `nn.bias_add`."""
    weight = op.shape(1)
    rank = len(weight) - 2
    if rank not in (1, 2, 3):
        raise Refused(f"a convolution over {rank} axes")
    y = net(
        f"nn.conv{rank}d",
        op.value(0),
        op.value(1),
        shape=op.outputs[0],
        strides=op.attribute("strides"),
        padding=op.attribute("pads"),
        dilation=op.attribute("dilations"),
        groups=op.attribute("group"),
        channels=weight[0],
        kernel_size=weight[2:],
    )
    return net("nn.bias_add", y, op.value(2), shape=y.shape) if op.has(2) else y
