"""Dense layers: one form of Gemm, and Transposes before them absorbed by the weights.

Normal form (what `linear` and the exits read): Gemm with the activation on the left, constant weights (out, in),
alpha = beta = 1. A MatMul of a matrix with a constant matrix is such a Gemm.

Absorbing (recipes 5.8): where the movers in front only permute inside a row of the (rows, K) matrix,
y[r, k] = x[r, π(k)], the product Σ_k y[r, k]·W[o, k] is Σ_j x[r, j]·W[o, π⁻¹(j)]: the columns of W move instead.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.linear import linear
from onnx2caffe.passes.match import is_float, maker, source
from onnx2caffe.passes.movers import chain_above

__all__ = ["AbsorbMoversIntoDense", "NormalizeGemm"]

_PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}


class NormalizeGemm(NodePass):
    """Gemm and matrix-times-constant MatMul in one form: x·Wᵀ + b with W (out, in)."""

    claim = "α·A·B + β·C = A·(α·B) + (β·C); a 2-D MatMul is a Gemm without bias"
    ops = frozenset({"Gemm", "MatMul"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Respell with constant weights on the right; anything else stays."""
        left, right = source(node, 0), source(node, 1)
        weight = canon.const(right)
        if weight is None or canon.const(left) is not None or len(canon.shape(left)) != 2 or weight.ndim != 2:
            return False
        if (node.op_type == "Gemm" and linear(node) is not None) or not is_float(left):
            return False
        if canon.attribute(node, "transA", 0):
            return False
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        beta = float(canon.attribute(node, "beta", 1.0))
        if beta != 1 and bias is not None and canon.const(bias) is None:
            return False
        inputs: list[ir.Value | None] = [left, _weights(node, right, weight, edit)]
        if bias is not None:
            inputs.append(_scaled(node, bias, beta, edit))
        edit.replace(node, "Gemm", inputs, _PLAIN)
        return True


def _weights(node: ir.Node, right: ir.Value, weight: Array, edit: Editor) -> ir.Value:
    alpha = float(canon.attribute(node, "alpha", 1.0))
    rows = weight if canon.attribute(node, "transB", 0) else weight.T
    if rows is weight and alpha == 1:
        return right
    return edit.constant(rows if alpha == 1 else rows * np.float32(alpha), node.outputs[0], "weight")


def _scaled(node: ir.Node, bias: ir.Value, beta: float, edit: Editor) -> ir.Value:
    array = canon.const(bias)
    return bias if array is None or beta == 1 else edit.constant(array * np.float32(beta), node.outputs[0], "bias")


class AbsorbMoversIntoDense(NodePass):
    """Transposes that permute inside the rows of a dense layer's input go into the order of its weights."""

    claim = "Σ_k x[π(k)]·W[k] = Σ_j x[j]·W[π⁻¹(j)] (recipes 5.8)"
    ops = frozenset({"Gemm", "MatMul"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Absorb the longest chain of movers that stays inside the rows."""
        dense = linear(node)
        if dense is None or dense.value is not source(node, 0):
            return False
        mover = maker(dense.value, "Reshape", "Transpose")
        if mover is None:
            return False
        *leading, width = canon.shape(dense.value)
        rows = int(np.prod(leading))
        for chain in reversed(chain_above(mover)):
            parts = chain.blocks.split_at(rows) if chain.blocks.moves else None
            if parts is None or parts[0].moves or not parts[1].moves:
                continue
            order = np.argsort(parts[1].indices())
            axis = 0 if dense.inputs_first else 1
            value = edit.reshape(node, chain.root, (*leading, width), "rows")
            return dense.rebuild(
                node, edit, value=value, weight=np.take(dense.weight, order, axis=axis), merged=chain.nodes
            )
        return False
