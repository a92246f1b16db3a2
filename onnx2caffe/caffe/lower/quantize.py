"""Integers as numbers; the way back is refused (`refusals.py`)."""

from __future__ import annotations

import math

import numpy as np

from onnx2caffe.caffe.lower.arithmetic import Operand, affine, difference, operand, product
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob

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
