"""Reductions and pools that are simpler than they look.

Reducing axes of size 1 does nothing (Mean, Sum, Max, Min, Prod). Reducing in two steps with one op is reducing once. A
mean or maximum over the whole map is global pooling (recipes 10.1), so is a pool whose one window covers the map.
"""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import ints, maker, only_reader, source

__all__ = ["MergeReductions", "RaiseGlobalPooling"]

_REDUCTIONS = frozenset({"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"})
_GLOBAL = {"ReduceMax": "GlobalMaxPool", "ReduceMean": "GlobalAveragePool"}
_GLOBAL_OF_POOL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool"}


def _reduced(shape: Shape, axes: tuple[int, ...], *, keep: bool) -> Shape:
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)


class MergeReductions(NodePass):
    """Axes of size 1 leave a reduction, and a reduction of a reduction is one."""

    claim = "a reduction over size 1 is the element itself; reducing over a, then b, is reducing over both"
    ops = _REDUCTIONS

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Simplify the axes, or join with the reduction in front that only this node reads."""
        axes = ints(node, 1)
        if axes is None:
            return False
        shape = canon.shape(source(node))
        useful = tuple(axis for axis in axes if shape[axis] != 1)
        if not useful:
            edit.replace_by_reshape(node, source(node))
            return True
        if useful != axes:
            _reduce(node, source(node), useful, (), edit)
            return True
        return _join(node, axes, edit)


def _join(node: ir.Node, axes: tuple[int, ...], edit: Editor) -> bool:
    inner = maker(source(node), node.op_type)
    first = ints(inner, 1) if inner is not None else None
    if inner is None or first is None or only_reader(inner.outputs[0]) is None:
        return False
    rank = len(canon.shape(source(inner)))
    kept = [axis for axis in range(rank) if canon.attribute(inner, "keepdims") or axis not in first]
    both = tuple(sorted({*first, *(kept[axis] for axis in axes)}))
    _reduce(node, source(inner), both, (inner,), edit)
    return True


def _reduce(node: ir.Node, value: ir.Value, axes: tuple[int, ...], merged: tuple[ir.Node, ...], edit: Editor) -> None:
    """`node`'s output as one reduction of `value`, with a Reshape behind when that drops other axes than it reduces."""
    target = canon.shape(node.outputs[0])
    for keep in (True, False):
        if _reduced(canon.shape(value), axes, keep=keep) == target:
            inputs = [value, edit.constant(axes, node.outputs[0], "axes")]
            edit.replace(node, node.op_type, inputs, {**node.attributes, "keepdims": int(keep)}, merged=merged)
            return
    constant = edit.constant(axes, node.outputs[0], "axes")
    shape = _reduced(canon.shape(value), axes, keep=True)
    attributes = {**node.attributes, "keepdims": 1}
    reduced = edit.add(node, node.op_type, [value, constant], attributes, shape=shape, what="reduced", merged=merged)
    edit.replace_by_reshape(node, reduced, merged=merged)


class RaiseGlobalPooling(NodePass):
    """ReduceMean/ReduceMax over all spatial axes, and pools whose one window is the map, become global pooling."""

    claim = "one mean (maximum) over every spatial axis is GlobalAveragePool (GlobalMaxPool)"
    ops = frozenset(_GLOBAL) | frozenset(_GLOBAL_OF_POOL)

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Raise maps (rank 4 and more): on rank 3 a mean over the last axis is no pooling in anybody's mind."""
        value = source(node)
        shape = canon.shape(value)
        if len(shape) < 4:
            return False
        op = _GLOBAL.get(node.op_type) if ints(node, 1) == tuple(range(2, len(shape))) else _covering_pool(node, shape)
        if op is None:
            return False
        pooled = (*shape[:2], *(1 for _ in shape[2:]))
        if canon.shape(node.outputs[0]) == pooled:
            edit.replace(node, op, [value])
        else:
            edit.replace_by_reshape(node, edit.add(node, op, [value], {}, shape=pooled, what="pooled"))
        return True


def _covering_pool(node: ir.Node, shape: Shape) -> str | None:
    """The global op that a pool with one window over the whole map is; for an average no padding may count."""
    op = _GLOBAL_OF_POOL.get(node.op_type)
    if op is None or any(n != 1 for n in canon.shape(node.outputs[0])[2:]) or len(node.outputs) > 1:
        return None
    kernel, pads = canon.attribute(node, "kernel_shape"), canon.attribute(node, "pads")
    begins = pads[: len(kernel)]
    covers = all(k - p >= n for k, p, n in zip(kernel, begins, shape[2:], strict=True))
    if not covers or set(canon.attribute(node, "dilations", (1,))) != {1}:
        return None
    counts_padding = bool(canon.attribute(node, "count_include_pad")) and any(pads)
    return None if counts_padding else op
