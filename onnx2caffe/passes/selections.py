"""Choosing along an axis that a Reshape split off is a Slice of the axis it was split from.

Reshape (…, g·r, …) → (…, g, r, …), then index k (or a range) along g, is the range k·r … (k+1)·r of the long axis: the
halves of a channel shuffle written as x[0], x[1], and parts of a fused projection.
"""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.decompose.transpose import Blocks, Digits
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import ints, maker, source

__all__ = ["HoistSelections"]


class HoistSelections(NodePass):
    """Gather by one index, or Slice of a range, behind a Reshape becomes a Slice before it."""

    claim = "choosing along the leading part of a split axis is a range of the whole axis"
    ops = frozenset({"Gather", "Slice"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Hoist where the Slice has the wanted shape at once, so that the Reshape is not needed for this reader."""
        reshape = maker(source(node), "Reshape")
        chosen = _range(node)
        if reshape is None or chosen is None or 0 in canon.shape(node.outputs[0]):
            return False
        axis, start, end = chosen
        x = source(reshape)
        shape = list(canon.shape(x))
        place = _leading_part(Digits.of(Blocks((), ()), tuple(shape), canon.shape(source(node))), axis)
        if place is None:
            return False
        at, rest = place
        shape[at] = (end - start) * rest
        if tuple(shape) != canon.shape(node.outputs[0]):
            return False
        bounds = {"starts": start * rest, "ends": end * rest, "axes": at, "steps": 1}
        constants = [edit.constant([number], node.outputs[0], what) for what, number in bounds.items()]
        edit.replace(node, "Slice", [x, *constants], merged=[reshape])
        return True


def _leading_part(digits: Digits | None, axis: int) -> tuple[int, int] | None:
    """(j, r) when this axis of the output is the leading part of axis j of the input, r the size of what follows it."""
    group = digits.target[axis] if digits is not None else ()
    if digits is None or not group:
        return None
    for at, own in enumerate(digits.source):
        if own[: len(group)] == group:
            return at, digits.size(own[len(group) :])
    return None


def _range(node: ir.Node) -> tuple[int, int, int] | None:
    """(axis, start, end) of a node that takes one index, or one contiguous range along one axis."""
    if node.op_type == "Gather":
        axis = int(canon.attribute(node, "axis"))
        index = canon.const(source(node, 1))
        if index is None or index.size != 1:
            return None
        start = int(index.ravel()[0]) % canon.shape(source(node))[axis]
        return axis, start, start + 1
    listed = [ints(node, i) for i in range(1, 5)]
    if any(numbers is None or len(numbers) != 1 for numbers in listed):
        return None
    start, end, axis, step = (numbers[0] for numbers in listed if numbers is not None)
    return (axis, start, end) if step == 1 else None
