"""What only moves elements."""

from __future__ import annotations

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "Reshape")
def reshape(op: Op, net: Net) -> Value:
    """Its target is static."""
    return net.reshape(op.value(), op.outputs[0])


@emits(BOTH, "Transpose")
def transpose(op: Op, net: Net) -> Value:
    """`perm` is explicit."""
    return net.transpose(op.value(), op.attribute("perm"))


@emits(BOTH, "Concat")
def concat(op: Op, net: Net) -> Value:
    """Values one after another."""
    return net.concat(op.values, op.attribute("axis"))
