"""Pooling."""

from __future__ import annotations

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "MaxPool")
def max_pool(op: Op, net: Net) -> Value:
    """`nn.max_pool{1,2,3}d`; where ONNX' last window would start behind the data, it has none, so neither may TVM."""
    if op.wanted(1):
        raise Refused("its indices are read")
    rank = len(op.shape()) - 2
    if rank not in (1, 2, 3):
        raise Refused(f"a pooling over {rank} axes")
    return net(
        f"nn.max_pool{rank}d",
        op.value(),
        shape=op.outputs[0],
        pool_size=op.attribute("kernel_shape"),
        strides=op.attribute("strides"),
        dilation=op.attribute("dilations"),
        padding=op.attribute("pads"),
        ceil_mode=bool(op.attribute("ceil_mode")),
    )


@emits(BOTH, "GlobalAveragePool")
def global_average_pool(op: Op, net: Net) -> Value:
    """The mean over all spatial axes."""
    return net("mean", op.value(), shape=op.outputs[0], axis=list(range(2, len(op.shape()))), keepdims=True)
