"""Pooling."""

from __future__ import annotations

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "MaxPool")
def max_pool(op: Op, net: Net) -> Value:
    """`nn.max_pool{1,2,3}d`, its end pads such that rounding down gives ONNX's size.

    TVM's own ceil_mode may add a window that lies behind the data, which ONNX does not have (facts/tvm.md §9).
    """
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
        padding=_fitted_pads(op),
    )


def _fitted_pads(op: Op) -> list[int]:
    """The pads (begins, then ends) with which the windows that ONNX has, and no more, fit in."""
    pads = list(op.attribute("pads"))
    rank = len(pads) // 2
    sizes = zip(op.shape()[2:], op.outputs[0][2:], strict=True)
    for axis, (size, out) in enumerate(sizes):
        kernel, stride = op.attribute("kernel_shape")[axis], op.attribute("strides")[axis]
        reach = (out - 1) * stride + (kernel - 1) * op.attribute("dilations")[axis] + 1
        missing = reach - size - pads[axis]
        if not pads[axis + rank] - stride < missing <= pads[axis + rank]:
            pads[axis + rank] = missing
    return pads


@emits(BOTH, "GlobalAveragePool")
def global_average_pool(op: Op, net: Net) -> Value:
    """The mean over all spatial axes."""
    return net("mean", op.value(), shape=op.outputs[0], axis=list(range(2, len(op.shape()))), keepdims=True)
