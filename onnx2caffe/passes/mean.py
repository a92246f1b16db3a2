"""What is subtracted from inputs, for targets that compute in 8 bits: it stays in front, factors move behind it.

In the bias of the first convolution a mean costs accuracy (nnie §18.7); the scale in its weights costs none.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.affine import arithmetic
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import maker, narrow, only_reader

__all__ = ["MeanFirst", "is_input"]

_MOVERS = ("Cast", "Gather", "Reshape", "Transpose")


def is_input(value: ir.Value) -> bool:
    """Whether a value is an input of the model, or one that was only moved and cast."""
    while (node := maker(value, *_MOVERS)) is not None and node.inputs[0] is not None:
        value = node.inputs[0]
    return value.is_graph_input()


class MeanFirst(NodePass):
    """A factor and then a shift on an input become a shift and then a factor."""

    claim = "a·x + c = a·(x + c/a)"
    ops = frozenset({"Add"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Swap an Add with the Mul in front of it, where 1/a is a number everywhere."""
        outer = arithmetic(node)
        inner = None if outer is None else maker(outer.value, "Mul")
        scale = None if inner is None else arithmetic(inner)
        if outer is None or inner is None or scale is None or only_reader(outer.value) is None:
            return False
        if not is_input(scale.value) or np.any(scale.factor == 0):
            return False
        shift = narrow(outer.shift / scale.factor)
        if not np.all(np.isfinite(shift)) or shift.ndim > len(canon.shape(scale.value)):
            return False
        output = node.outputs[0]
        moved = edit.add(
            node,
            "Add",
            [scale.value, edit.constant(shift, output, "mean")],
            {},
            shape=canon.shape(scale.value),
            what="centred",
            merged=[inner],
        )
        edit.replace(node, "Mul", [moved, edit.constant(narrow(scale.factor), output, "factor")], merged=[inner])
        return True
