"""What is joined behind the channels and then turned is turned first and joined on axis 1, for the NNIE.

Concat on axis 1 of turned maps is how compiled detection heads end; Concat on another axis was never seen (nnie §14).
"""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import maker, only_reader, source

__all__ = ["TurnBeforeConcat"]


class TurnBeforeConcat(NodePass):
    """Transpose of a Concat that nobody else reads becomes a Concat of Transposes where that joins on axis 1."""

    claim = "turning what is joined is joining what is turned"
    ops = frozenset({"Transpose"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Turn every part."""
        value = source(node)
        concat = maker(value, "Concat")
        if concat is None or only_reader(value) is None:
            return False
        perm = canon.attribute(node, "perm")
        axis = int(canon.attribute(concat, "axis"))
        if perm[0] != 0 or axis < 2 or perm[1] != axis:
            return False
        parts = []
        for part in (source(concat, i) for i in range(len(concat.inputs))):
            shape = tuple(canon.shape(part)[i] for i in perm)
            parts.append(
                edit.add(node, "Transpose", [part], {"perm": perm}, shape=shape, what="turned", merged=[concat])
            )
        edit.replace(node, "Concat", parts, {"axis": 1}, merged=[concat])
        return True
