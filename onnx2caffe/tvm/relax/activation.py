"""Activations under Relax's own names."""

from __future__ import annotations

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import emits

__all__: list[str] = []


@emits("relax", "LeakyRelu")
def leaky_relu(op: Op, net: Net) -> Value:
    """`nn.leakyrelu`, of any slope."""
    return net("nn.leakyrelu", op.value(), alpha=op.attribute("alpha"))
