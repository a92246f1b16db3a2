"""Multiply-adds of a model and of a net, counted alike: convolutions and products, zeros included."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.net import Net

_CONVOLVES = frozenset({"Convolution", "DepthwiseConv"})


def model_macs(model: ir.Model) -> int:
    """Of a canonical model, before any pass."""
    return sum(_node_macs(n) for n in model.graph if n.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul"))


def _node_macs(node: ir.Node) -> int:
    x, w, y = (canon.shape(v) for v in (*node.inputs[:2], node.outputs[0]) if v is not None)
    if node.op_type == "Conv":
        return math.prod(y) * math.prod(w[1:])
    if node.op_type == "ConvTranspose":
        return math.prod(x) * math.prod(w[1:])
    inner = x[0] if canon.attribute(node, "transA", 0) else x[-1]
    return math.prod(y) * inner


def net_macs(net: Net) -> int:
    """Of a Caffe net."""
    return sum(
        _layer_macs(p.layer.type, net.shapes[p.bottoms[0]], _weights(p), net.shapes[p.tops[0]]) for p in _heavy(net)
    )


def _heavy(net: Net) -> Sequence:
    return [p for p in net if p.layer.type in (*_CONVOLVES, "Deconvolution", "InnerProduct")]


def _weights(placed) -> Sequence[int]:
    return placed.layer.blobs[0].shape


def _layer_macs(type_: str, bottom: Sequence[int], weights: Sequence[int], top: Sequence[int]) -> int:
    if type_ in _CONVOLVES:
        return math.prod(top) * math.prod(weights[1:])
    if type_ == "Deconvolution":
        return math.prod(bottom) * math.prod(weights[1:])
    return math.prod(top) * math.prod(weights) // top[-1]
