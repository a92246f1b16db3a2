"""Channel permutations go into the weights of convolutions near them.

y = Gather(x, axis 1, p) takes channel p[o] of x as channel o. Behind a dense Conv, ConvTranspose or Gemm its outputs
are written in that order at once: W[p], b[p]. Before a dense one its inputs are read where they were: W[:, p⁻¹]
(recipes 5.9). In between may stand ops that treat all channels alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.linear import Linear, linear
from onnx2caffe.passes.match import computed, ints, only_reader, source

__all__ = ["AbsorbChannelOrder", "MergeGathers", "channel_order"]

_ALIKE = frozenset(
    {
        "Abs", "AveragePool", "Celu", "Clip", "Elu", "Erf", "Exp", "Gelu", "GlobalAveragePool", "GlobalMaxPool",
        "HardSigmoid", "HardSwish", "LeakyRelu", "MaxPool", "Mish", "Neg", "Relu", "Selu", "Sigmoid", "Softplus",
        "Softsign", "Sqrt", "Tanh",
    }
)  # fmt: skip


def channel_order(node: ir.Node) -> Array | None:
    """The permutation of axis 1 that a Gather is, if it is one."""
    indices = canon.const(source(node, 1))
    if node.op_type != "Gather" or canon.attribute(node, "axis") != 1 or indices is None or indices.ndim != 1:
        return None
    size = canon.shape(source(node))[1]
    return indices if np.array_equal(np.sort(indices), np.arange(size)) else None


def _treats_alike(node: ir.Node) -> bool:
    """Whether a node does the same to every channel, so that it commutes with any order of them."""
    if node.domain or canon.is_opaque(node) or len(node.outputs) != 1:
        return False
    if node.op_type == "Resize":
        return canon.shape(source(node))[:2] == canon.shape(node.outputs[0])[:2]
    if node.op_type == "Pad":
        pads = ints(node, 1)
        return pads is not None and not any(pads[1 :: len(pads) // 2])
    return node.op_type in _ALIKE and len(computed(node)) == 1


@dataclass(frozen=True)
class _Path:
    """Nodes that treat channels alike, in order, and the dense ops at the far end."""

    between: tuple[ir.Node, ...]
    ends: tuple[Linear, ...]


class AbsorbChannelOrder(NodePass):
    """A channel permutation is absorbed by the dense op before it, or by the dense ops behind it."""

    claim = "Gather(W·x + b, p) = W[p]·x + b[p], and W·Gather(x, p) = W[:, p⁻¹]·x"
    ops = frozenset({"Gather"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Upwards first: that frees the graph of the permutation whatever reads it."""
        order = channel_order(node)
        if order is None:
            return False
        above = _above(source(node))
        if above is not None:
            _write_in_order(node, above, order, edit)
            return True
        below = _below(node.outputs[0])
        if below is None:
            return False
        _read_in_place(node, below, order, edit)
        return True


def _dense(node: ir.Node | None, value: ir.Value | None = None) -> Linear | None:
    """The node as a linear op that mixes all channels along axis 1 (and reads `value` as its data)."""
    if node is None or node.domain or canon.is_opaque(node):
        return None
    found = linear(node) if node.op_type in ("Conv", "ConvTranspose", "Gemm") else None
    if found is None or found.group != 1 or (value is not None and found.value is not value):
        return None
    return found


def _above(value: ir.Value) -> _Path | None:
    between: tuple[ir.Node, ...] = ()
    while only_reader(value) is not None:
        node = value.producer()
        found = _dense(node)
        if found is not None:
            return _Path(between, (found,))
        if node is None or not _treats_alike(node):
            return None
        between = (node, *between)
        value = source(node)
    return None


def _below(value: ir.Value) -> _Path | None:
    between: tuple[ir.Node, ...] = ()
    while (node := only_reader(value)) is not None and _treats_alike(node):
        between = (*between, node)
        value = node.outputs[0]
    ends = [_dense(node, value) for node in dict.fromkeys(use.node for use in value.uses())]
    found = tuple(end for end in ends if end is not None)
    return _Path(between, found) if found and len(found) == len(ends) and not value.is_graph_output() else None


def _follow(value: ir.Value, between: tuple[ir.Node, ...], edit: Editor) -> ir.Value:
    """`value` through copies of these nodes."""
    for node in between:
        inputs = [value, *node.inputs[1:]]
        value = edit.copy(node, node.op_type, inputs, node.attributes, shapes=[canon.shape(node.outputs[0])])[0]
    return value


def _write_in_order(node: ir.Node, path: _Path, order: Array, edit: Editor) -> None:
    (dense,) = path.ends
    weight = np.take(dense.weight, order, axis=1 if dense.inputs_first else 0)
    bias = None if dense.bias is None else np.take(np.broadcast_to(dense.bias, (dense.outputs,)), order)
    if not path.between:
        dense.rebuild(node, edit, weight=weight, bias=bias, merged=[dense.node])
        return
    inputs = dense.inputs(dense.node.outputs[0], edit, weight=weight, bias=bias)
    assert inputs is not None
    shapes = [canon.shape(dense.node.outputs[0])]
    made = edit.copy(dense.node, dense.node.op_type, inputs, dense.node.attributes, shapes=shapes)[0]
    edit.forward(node.outputs[0], _follow(made, path.between, edit))


def _read_in_place(node: ir.Node, path: _Path, order: Array, edit: Editor) -> None:
    value = _follow(source(node), path.between, edit)
    for dense in path.ends:
        weight = np.take(dense.weight, np.argsort(order), axis=0 if dense.inputs_first else 1)
        dense.rebuild(dense.node, edit, value=value, weight=weight, merged=[node])


class MergeGathers(NodePass):
    """A Gather of a Gather along the same axis is one Gather."""

    claim = "x[p][q] = x[p[q]]"
    ops = frozenset({"Gather"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Compose constant index lists when nothing else reads the inner one."""
        inner = source(node).producer()
        if inner is None or inner.op_type != "Gather" or only_reader(source(node)) is None:
            return False
        first, second = canon.const(source(inner, 1)), canon.const(source(node, 1))
        axis = canon.attribute(node, "axis")
        if first is None or second is None or first.ndim != 1 or axis != canon.attribute(inner, "axis"):
            return False
        indices = edit.constant(first[second].astype(np.int64), node.outputs[0], "indices")
        edit.replace(node, "Gather", [source(inner), indices], {"axis": axis}, merged=[inner])
        return True
