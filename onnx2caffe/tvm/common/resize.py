"""Resize (Upsample is read as one)."""

from __future__ import annotations

import numpy as np

from onnx2caffe.decompose.resize import AxisMap, axis_maps
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
_MODES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")


@emits(BOTH, "Resize")
def resize(op: Op, net: Net) -> Value:
    """`image.resize2d` where it means what ONNX means; elsewhere one linear map per axis.

    TVM knows sizes only and takes its coordinates from in / out; ONNX takes them from the scale, which is another where
    size times scale is no integer (facts/tvm.md §8).
    """
    return _resize2d(op, net) if _is_resize2d(op) else _by_axis(op, net)


def _is_resize2d(op: Op) -> bool:
    before, after = op.shape(), op.outputs[0]
    mode, coordinates = op.attribute("mode"), op.attribute("coordinate_transformation_mode")
    if len(before) != 4 or before[:2] != after[:2] or coordinates not in _MODES or 0 in before:
        return False
    scales = op.const(2)
    if scales is not None and any(n * np.float32(s) != m for n, s, m in zip(before, scales, after, strict=True)):
        return False
    if op.attribute("antialias") and any(m < n for n, m in zip(before, after, strict=True)):
        return False
    if coordinates == "align_corners" and 1 in after[2:]:
        return False
    return bool(mode != "nearest" or coordinates != "asymmetric" or op.attribute("nearest_mode") == "floor")


def _resize2d(op: Op, net: Net) -> Value:
    out = op.outputs[0]
    mode = op.attribute("mode")
    return net(
        "image.resize2d",
        op.value(),
        list(out[2:]),
        shape=out,
        layout="NCHW",
        method=_METHODS[mode],
        coordinate_transformation_mode=op.attribute("coordinate_transformation_mode"),
        rounding_method=op.attribute("nearest_mode") if mode == "nearest" else "",
        cubic_alpha=op.attribute("cubic_coeff_a"),
        cubic_exclude=op.attribute("exclude_outside"),
    )


def _by_axis(op: Op, net: Net) -> Value:
    attributes = {name: op.attribute(name) for name in op.node.attributes}
    maps = axis_maps(op.shape(), op.outputs[0], attributes, op.const(2), op.const(1))
    x = op.value()
    for axis, one in enumerate(maps):
        x = _along(net, x, axis, one)
    outside = np.zeros(x.shape, bool)
    for axis, one in enumerate(maps):
        outside |= one.outside.reshape([-1 if a == axis else 1 for a in range(x.rank)])
    if not outside.any():
        return x
    return net("where", net.const(outside), net.like(op.attribute("extrapolation_value"), x), x, dtype=x.dtype)


def _along(net: Net, x: Value, axis: int, one: AxisMap) -> Value:
    """A map of one axis: a choice of its elements, or a matrix."""
    if one.identity:
        return x
    if one.index is not None:
        return net.take(x, net.const(one.index.astype(np.int64)), axis)
    if x.dtype != "float32":
        raise Refused(f"it interpolates {x.dtype}")
    order = [*(a for a in range(x.rank) if a != axis), axis]
    turned = net.matmul(net.transpose(x, order), net.const(np.ascontiguousarray(one.matrix.T)))
    return net.transpose(turned, [order.index(a) for a in range(x.rank)])
