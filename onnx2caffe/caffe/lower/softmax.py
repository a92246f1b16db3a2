"""Softmax and its kin. Facts: recipes 7.22, 8.19, 10.11."""

from __future__ import annotations

import numpy as np

from onnx2caffe.caffe.layers import Softmax
from onnx2caffe.caffe.lower.arithmetic import above, at_least, difference, linear
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.elementwise import log
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.reduce import Run, reduce
from onnx2caffe.caffe.lower.registry import lowers
from onnx2caffe.caffe.net import Blob

__all__: list[str] = []


@lowers("Softmax")
def _softmax(op: Op, net: Emitter) -> Blob:
    """Softmax on any axis (recipes 10.11)."""
    return net(Softmax(axis=op.attribute("axis", -1) % len(op.shape())), op.blob())


@lowers("LogSoftmax")
def _log_softmax(op: Op, net: Emitter) -> Blob:
    """`(x − max x) + ln(max(Softmax x))` (recipes 8.19).

    The largest probability is 1 / Σ e^(x − max); small ones, whose logarithm the obvious form takes, underflow to 0.
    """
    x = _as_column(op, net)
    peak = reduce(net, "MAX", net(Softmax(axis=2), x), [2])
    centred = difference(net, x, reduce(net, "MAX", x, [2]))
    return reshape(net, linear(net, [(centred, 1.0), (log(net, peak), 1.0)]), op.shape())


@lowers("Hardmax")
def _hardmax(op: Op, net: Emitter) -> Blob:
    """1 at the first of the largest elements: [x = max] minus all such before, above one half (recipes 7.22)."""
    x = _as_column(op, net)
    is_peak = at_least(net, difference(net, x, reduce(net, "MAX", x, [2])))
    size = x.shape[2]
    before = np.eye(size) - np.tri(size, k=-1)
    return reshape(net, above(net, net.recipe("axis_map", is_peak, 2, before), 0.5), op.shape())


def _as_column(op: Op, net: Emitter) -> Blob:
    axis = op.attribute("axis", -1) % len(op.shape())
    return reshape(net, op.blob(), Run(op.shape(), axis, axis + 1).column)
