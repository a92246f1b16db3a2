"""What a node is worth on an accelerator: its multiply-accumulates."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnx2caffe import canon

__all__ = ["macs"]


def macs(node: ir.Node) -> int:
    """Multiply-accumulates of a canonical node, zeros included: convolutions, products, recurrent layers; else 0."""
    if node.domain or canon.is_opaque(node) or node.op_type not in _COUNTS:
        return 0
    try:
        return _COUNTS[node.op_type](node)
    except ValueError:  # next to an opaque node
        return 0


def _size(node: ir.Node, index: int) -> canon.Shape:
    value = node.inputs[index]
    assert value is not None
    return canon.shape(value)


def _convolution(node: ir.Node) -> int:
    return math.prod(canon.shape(node.outputs[0])) * math.prod(_size(node, 1)[1:])


def _transposed(node: ir.Node) -> int:
    return math.prod(_size(node, 0)) * math.prod(_size(node, 1)[1:])


def _product(node: ir.Node) -> int:
    left = _size(node, 0)
    inner = left[0] if canon.attribute(node, "transA", 0) else left[-1]
    return math.prod(canon.shape(node.outputs[0])) * inner


def _recurrent(node: ir.Node) -> int:
    steps, batch, _ = _size(node, 0)
    return steps * batch * (math.prod(_size(node, 1)) + math.prod(_size(node, 2)))


_COUNTS = {
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "Gemm": _product,
    "MatMul": _product,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
}
