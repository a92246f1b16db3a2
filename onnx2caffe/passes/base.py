"""The contract of a pass: a name, a one-line claim, and `call(model)`."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx2caffe import canon
from onnx2caffe.passes.editor import Editor

__all__ = ["NodePass", "Pass", "PassResult", "Repeat"]


class Pass(InPlacePass):
    """A canonical-model-to-canonical-model rewrite, exact in real arithmetic (float reordering allowed).

    `claim` states in one line what is replaced by what and why that is equal; `approximate = True` marks a rewrite
    that is not exact (off unless the user asks, and then reported with its measured error). A pass takes what it knows
    (a target's limits, the user's options) in its constructor.
    """

    claim: ClassVar[str] = ""
    approximate: ClassVar[bool] = False

    @abc.abstractmethod
    def call(self, model: ir.Model) -> PassResult:
        """Rewrite `model` in place; `PassResult(model, modified)`."""


class NodePass(Pass):
    """A pass that looks at one node (and what is around it) at a time, in topological order.

    `ops` names the op types of ai.onnx it wants to see; empty: all. Opaque nodes are never shown.
    """

    ops: ClassVar[frozenset[str]] = frozenset()

    @abc.abstractmethod
    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Rewrite the pattern that ends in `node`, if it is there; True when something changed.

        Nodes that nobody reads any more are gone when this returns (`Editor` sees to it).
        """

    def call(self, model: ir.Model) -> PassResult:
        """Offer every node once."""
        edit = Editor(model.graph)
        modified = False
        for node in list(model.graph):
            if node.graph is not None and self._wants(node):
                modified |= self.rewrite(node, edit)
        return PassResult(model, modified)

    def _wants(self, node: ir.Node) -> bool:
        known = node.domain == "" and not canon.is_opaque(node)
        return known and (not self.ops or node.op_type in self.ops) and _is_static(node)


def _is_static(node: ir.Node) -> bool:
    """Whether all shapes around the node are known; they are not next to opaque nodes."""
    values = (value for value in (*node.inputs, *node.outputs) if value is not None and value.name)
    return all(value.dtype is not None and value.shape is not None and value.shape.is_static() for value in values)


class Repeat(Pass):
    """A group of passes run again and again until none changes anything, at most `limit` times."""

    claim = "runs its passes until nothing changes"

    def __init__(self, passes: Sequence[Pass], limit: int = 10) -> None:
        super().__init__()
        self.passes = tuple(passes)
        self.limit = limit

    def call(self, model: ir.Model) -> PassResult:
        """Run the group to its fixpoint."""
        modified = False
        for _ in range(self.limit):
            results = [one.call(model).modified for one in self.passes]
            if not any(results):
                break
            modified = True
        return PassResult(model, modified)
