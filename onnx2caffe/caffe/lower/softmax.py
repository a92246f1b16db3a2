"""Softmax and its kin. Facts: recipes 7.22, 8.19, 10.11."""

from __future__ import annotations

import numpy as np

from onnx2caffe.caffe.layers import Slice, Softmax
from onnx2caffe.caffe.lower.arithmetic import above, at_least, difference, linear
from onnx2caffe.caffe.lower.blocks import concat, reshape
from onnx2caffe.caffe.lower.elementwise import log
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.maps import around, fold, forward
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.reduce import Run, reduce
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.net import Blob

__all__: list[str] = []


@lowers("Softmax")
def _softmax(op: Op, net: Emitter) -> Blob:
    """The recipe "softmax" (recipes 10.11)."""
    return net.recipe("softmax", op.blob(), op.attribute("axis", -1) % len(op.shape()))


@recipe("softmax", "layer")
def _softmax_layer(net: Emitter, x: Blob, axis: int) -> Blob:
    """Softmax on any axis (recipes 10.11)."""
    return net(Softmax(axis=axis), x)


@recipe("softmax", "channels")
def _softmax_channels(net: Emitter, x: Blob, axis: int) -> Blob:
    """The first axis behind the batch as the channels of a vector or map (recipes 10.11, nnie §1 W14)."""
    batch, before, size, behind = around(x, axis)
    if before > 1:
        raise Refused(f"axis {axis} of shape {list(x.shape)} is not the channels")
    direct = axis == 1 and len(x.shape) in (2, 4)
    view = x.shape if direct else (batch, size, *fold(behind))
    return reshape(net, net(Softmax(axis=1), reshape(net, x, view)), x.shape)


@recipe("softmax", "rows")
def _softmax_rows(net: Emitter, x: Blob, axis: int) -> Blob:
    """The last axis as that of a 3-D blob (recipes 10.12, 10.13)."""
    *rows, behind = around(x, axis)
    if behind > 1:
        raise Refused(f"axis {axis} of shape {list(x.shape)} is not the last")
    return reshape(net, net(Softmax(axis=2), reshape(net, x, rows)), x.shape)


@recipe("softmax", "slices")
def _softmax_slices(net: Emitter, x: Blob, axis: int) -> Blob:
    """Groups of channels, each by itself (recipes 6.15, 10.13)."""
    batch, groups, size, behind = around(x, axis)
    maps = reshape(net, x, (batch, groups * size, *fold(behind)))
    parts = net.many(Slice(axis=1, slice_point=tuple(range(size, groups * size, size)), tops=groups), maps)
    return reshape(net, concat(net, [net(Softmax(axis=1), part) for part in parts], 1), x.shape)


@recipe("softmax", "rotation")
def _softmax_rotation(net: Emitter, x: Blob, axis: int) -> Blob:
    """Any axis turned into the channels and back."""
    y = net(Softmax(axis=1), forward(net, reshape(net, x, around(x, axis))))
    return reshape(net, forward(net, forward(net, y)), x.shape)


@lowers("LogSoftmax")
def _log_softmax(op: Op, net: Emitter) -> Blob:
    """`(x − max x) + ln(max(Softmax x))` (recipes 8.19).

    The largest probability is 1 / Σ e^(x − max); small ones, whose logarithm the obvious form takes, underflow to 0.
    """
    x = _as_column(op, net)
    peak = reduce(net, "MAX", net.recipe("softmax", x, 2), [2])
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
