"""Activations under Relax's own names."""

from __future__ import annotations

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import emits

__all__: list[str] = []


@emits("relax", "LeakyRelu")
def leaky_relu(op: Op, net: Net) -> Value:
    """`nn.leakyrelu`; with a slope of 0 it would lose a NaN."""
    x, alpha = op.value(), op.attribute("alpha")
    return net("nn.leakyrelu", x, alpha=alpha) if alpha else net.relu(x)
