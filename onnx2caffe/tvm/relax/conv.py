"""Convolutions in Relax."""

from __future__ import annotations

from functools import partial

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import emits

__all__: list[str] = []

relax = partial(emits, "relax")


@relax("Conv")
def conv(op: Op, net: Net) -> Value:
    """`nn.conv{1,2,3}d`, then an addition: Relax has no bias."""
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
    )
    return net("add", y, net.reshape(op.value(2), (weight[0], *[1] * rank))) if op.has(2) else y
