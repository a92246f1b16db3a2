"""Matrix products."""

from __future__ import annotations

from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@emits(BOTH, "MatMul")
def matmul(op: Op, net: Net) -> Value:
    """The dialect's own product, of any ranks."""
    return net.matmul(op.value(0), op.value(1))


@emits(BOTH, "Gemm")
def gemm(op: Op, net: Net) -> Value:
    """A′ · B′ · alpha + C · beta; a constant side takes alpha while converting."""
    a, b = (
        net.transpose(op.value(i), (1, 0)) if op.attribute(turned) else op.value(i)
        for i, turned in enumerate(("transA", "transB"))
    )
    y = _scaled(net, net.matmul(a, b), op.attribute("alpha"))
    if not op.has(2) or op.attribute("beta") == 0:
        return y
    return net("add", y, _scaled(net, op.value(2), op.attribute("beta")))


def _scaled(net: Net, x: Value, factor: float) -> Value:
    if factor == 1:
        return x
    if x.array is not None:
        return net.const(x.array * x.array.dtype.type(factor))
    return net("multiply", x, net.like(factor, x))
