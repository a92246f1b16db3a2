"""Slices that together cover an axis are one Split, for the NNIE: its Slice has no unread tops then (recipes 11.5)."""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import ints, source

__all__ = ["JoinSlices"]


class JoinSlices(NodePass):
    """Slices of one value that lie side by side and leave nothing out become a Split."""

    claim = "ranges that part an axis are the outputs of a Split"
    ops = frozenset({"Slice"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Join all Slices along this one's axis, where they are disjoint and complete."""
        value, own = source(node), _range(node)
        if own is None:
            return False
        axis = own[0]
        readers = {use.node for use in value.uses()}
        ranges = {reader: _range(reader) for reader in readers if reader.op_type == "Slice"}
        beside = sorted((r[1], r[2], reader) for reader, r in ranges.items() if r is not None and r[0] == axis)
        bounds = [0, *(end for _, end, _ in beside)]
        if len(beside) < 2 or [start for start, *_ in beside] != bounds[:-1] or bounds[-1] != canon.shape(value)[axis]:
            return False
        slices = [reader for *_, reader in beside]
        parts = edit.split(node, value, axis, [end - start for start, end, _ in beside], merged=slices)
        for one, part in zip(slices, parts, strict=True):
            edit.forward(one.outputs[0], part)
        return True


def _range(node: ir.Node) -> tuple[int, int, int] | None:
    """(axis, start, end) of a Slice of every element of a range along one axis."""
    listed = [ints(node, i) for i in range(1, 5)]
    if any(numbers is None or len(numbers) != 1 for numbers in listed):
        return None
    (start,), (end,), (axis,), (step,) = (numbers for numbers in listed if numbers is not None)
    size = canon.shape(source(node))[axis]
    kept = range(size)[start:end:step]
    return (axis, kept.start, kept.stop) if step == 1 and kept else None
