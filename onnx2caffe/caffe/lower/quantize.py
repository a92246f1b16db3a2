"""Integers as numbers. The way back, rounding, has no Caffe form (`refusals.py`)."""

from __future__ import annotations

import numpy as np

from onnx2caffe.caffe.lower.arithmetic import affine
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob

__all__: list[str] = []


@lowers("DequantizeLinear")
def _dequantize(op: Op, net: Emitter) -> Blob:
    """`s · (q − z)` of an integer input (recipes §15).

    Raises:
        Refused: scale or zero point is computed, or given per block.

    """
    if op.attribute("block_size", 0):
        raise Refused(f"block_size = {op.attribute('block_size')}")
    x = op.blob()
    scale = op.need_const(1, "scale").astype(np.float64)
    zero = op.need_const(2, "zero point").astype(np.float64) if op.has(2) else np.zeros(())
    axis = op.attribute("axis", 1)
    scale, zero = (
        p.reshape(()) if p.size == 1 else p.reshape([-1 if i == axis else 1 for i in range(len(x.shape))])
        for p in (scale, zero)
    )
    return affine(net, x, scale, -scale * zero)
