"""QuantizeLinear and DequantizeLinear, computed as they stand: the integers are float32."""

from __future__ import annotations

import math

import numpy as np

from onnx2caffe import canon
from onnx2caffe.caffe.lower.arithmetic import Operand, affine, difference, linear, operand, product
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.lower.rounding import nearest
from onnx2caffe.caffe.net import Blob
from onnx2caffe.ranges import limits

__all__: list[str] = []


@lowers("DequantizeLinear")
def _dequantize(op: Op, net: Emitter) -> Blob:
    """`s · (q − z)`, in one layer when both are constant (recipes §15, ONNX DequantizeLinear-23)."""
    scale = _parameter(op, net, 1)
    zero = _parameter(op, net, 2) if op.has(2) else np.zeros(())
    if isinstance(scale, Blob) or isinstance(zero, Blob):
        return product(net, [difference(net, op.blob(), zero), scale])
    factors = scale.astype(np.float64)
    return affine(net, op.blob(), factors, -factors * zero)


@lowers("QuantizeLinear")
def _quantize(op: Op, net: Emitter) -> Blob:
    """`clip(round(x / scale) + zero point)`, half to even (ONNX QuantizeLinear-23)."""
    dtype = canon.dtype(op.node.outputs[0])
    if not dtype.is_integer():
        raise Refused(f"QuantizeLinear to {dtype.name} rounds to {dtype.bitwidth} bits; Caffe has float32 only")
    scale = _parameter(op, net, 1)
    if isinstance(scale, Blob):
        raise Refused("a computed scale: x · (1 / scale) rounds halves otherwise than x / scale; --strip-qdq drops it")
    y = nearest(net, product(net, [op.blob(), 1.0 / scale]))
    if op.has(2):
        y = linear(net, [(y, 1.0), (_parameter(op, net, 2), 1.0)])
    clipped: Blob = net.recipe("clip", y, *limits(dtype))
    return clipped


def _parameter(op: Op, net: Emitter, index: int) -> Operand:
    """Scale or zero point, shaped to broadcast against the data: one number, one per position of an axis, or blocks."""
    value, shape, axis, block = operand(op, index), op.shape(), op.attribute("axis"), op.attribute("block_size")
    size = math.prod(value.shape)
    along = () if size == 1 else tuple(size if i == axis else 1 for i in range(len(shape)))
    if not block:
        return reshape(net, value, along) if isinstance(value, Blob) else value.astype(np.float64).reshape(along)
    if isinstance(value, Blob):
        raise Refused(f"block_size = {block} with computed scales or zero points")
    return np.repeat(value.astype(np.float64), block, axis)[tuple(slice(n) for n in shape)]
