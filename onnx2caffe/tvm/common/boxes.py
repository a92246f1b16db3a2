"""The choice of boxes at the end of a detector."""

from __future__ import annotations

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_LEAST = np.array(np.finfo(np.float32).tiny)


@emits(BOTH, "NonMaxSuppression")
def non_max_suppression(op: Op, net: Net) -> Value:
    """The best boxes of every class; places in the order of the scores stand for scores, which TVM wants positive."""
    boxes, scores = op.value(0), op.value(1)
    most = int(op.need_const(2, "max_output_boxes_per_class").item()) if op.has(2) else 0
    if most <= 0:
        raise Refused("max_output_boxes_per_class = 0 selects nothing")
    return net.best_boxes(
        _corners(net, boxes) if op.attribute("center_point_box", 0) else boxes,
        _places(net, scores, op.optional(4)),
        min(most, boxes.shape[1]),
        _next_above(net, op.optional(3) or net.const(0.0)),
    )


def _corners(net: Net, boxes: Value) -> Value:
    """Two corners instead of middle and size: (x, y, w, h) → (y, x, y, x).

    A negative size makes a box that shares nothing, as an empty one does; TVM would take its corners the other way.
    """
    middle, size = (net.take(boxes, net.const(np.array(axes)), 2) for axes in ([1, 0], [3, 2]))
    half = net("multiply", net("maximum", net.like(0, size), size), net.like(0.5, size))
    return net.concat([net("subtract", middle, half), net("add", middle, half)], 2)


def _places(net: Net, scores: Value, threshold: Value | None) -> Value:
    """The number of boxes for the best score of a class down to 1 for the worst; 0 for one not above a threshold."""
    order = net.order(scores, 2, descending=True)
    behind = net.order(order, 2)
    places = net("subtract", net.const(float(scores.shape[2])), net.cast(behind, "float32"), shape=scores.shape)
    if threshold is None:
        return places
    above = net("greater", scores, net.reshape(threshold, ()), dtype="bool")
    return net("where", above, places, net.const(0.0), shape=scores.shape, dtype="float32")


def _next_above(net: Net, threshold: Value) -> Value:
    """The next float32 above a threshold: TVM drops what reaches it, ONNX what exceeds it. At 0 TVM is off."""
    threshold = net.reshape(threshold, ())
    if threshold.array is not None:
        return net.const(np.maximum(np.nextafter(threshold.array, np.float32(np.inf)), _LEAST))
    bits = net.viewed(threshold, "int32")
    return net("maximum", net.viewed(net("add", bits, net.like(1, bits)), "float32"), net.const(_LEAST))
