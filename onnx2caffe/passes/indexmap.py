"""Which element goes where: data movers recognised by evaluating them, not by reading attributes (recipes, rule 2).

Reshape and Transpose are followed as moved digits (`decompose.transpose`), Slice, Split and Gather by one index list
per axis: the mover is run on the coordinates of each axis. Both stay small however large the tensor is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.evaluate import evaluate
from onnx2caffe.passes.editor import Array
from onnx2caffe.passes.match import maker, source

__all__ = ["Selection", "selection"]


@dataclass(frozen=True)
class Selection:
    """A value that is `root` with, along each axis, the elements that axis' index list names."""

    root: ir.Value
    axes: tuple[Array, ...]
    nodes: tuple[ir.Node, ...]
    """The movers from `root` down to the value."""


def selection(value: ir.Value) -> list[Selection]:
    """The selections `value` is of the values above it, nearest root (itself) first."""
    found = [Selection(value, tuple(np.arange(size) for size in canon.shape(value)), ())]
    while (node := maker(found[-1].root, "Gather", "Slice", "Split")) is not None:
        step = _axis_lists(node, found[-1].root)
        if step is None:
            break
        last = found[-1]
        axes = tuple(inner[outer] for inner, outer in zip(step, last.axes, strict=True))
        found.append(Selection(source(node), axes, (node, *last.nodes)))
    return found


def _axis_lists(node: ir.Node, output: ir.Value) -> tuple[Array, ...] | None:
    """Run the mover on the coordinates of each axis (broadcast views: nothing is allocated by Slice and Split)."""
    constants = [canon.const(value) for value in node.inputs[1:]]
    shape = canon.shape(source(node))
    if any(array is None for array in constants) or 0 in canon.shape(output) or len(canon.shape(output)) != len(shape):
        return None
    if node.op_type == "Gather" and canon.shape(source(node, 1)) == ():
        return None
    lists = []
    for axis, size in enumerate(shape):
        along = np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        moved = evaluate(node, [np.broadcast_to(along, shape), *constants])[output.index() or 0]
        lists.append(moved[tuple(slice(None) if i == axis else 0 for i in range(len(shape)))])
    return tuple(lists)
