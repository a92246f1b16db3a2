"""onnxruntime's own quantised ops (operator-oriented quantisation), taken apart into DQ, op, Q.

Source: onnxruntime's operator documentation (ContribOperators). Numbers, scale and zero point are three inputs each.
"""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.activation import over_trailing_axes
from onnx2caffe.frontend.upgrade.quantize import dequantized, quantized
from onnx2caffe.frontend.upgrade.registry import MICROSOFT, upgrades
from onnx2caffe.frontend.upgrade.window import average_pool_attributes

__all__: list[str] = []

_SOFTMAX_OVER_ONE_AXIS = 13


def _channels_first(node: Reader) -> None:
    if node.integer("channels_last", 0):
        raise Opaque("channels_last = 1")


@upgrades("QuantizeLinear", domain=MICROSOFT)
def quantize(node: Reader, build: Builder) -> ir.Value:
    """QuantizeLinear with the types that ONNX took up later."""
    return quantized(build, node.inputs, axis=node.integer("axis", 1))


@upgrades("DequantizeLinear", domain=MICROSOFT)
def dequantize(node: Reader, build: Builder) -> ir.Value:
    """DequantizeLinear with the types that ONNX took up later."""
    return dequantized(build, node.inputs, axis=node.integer("axis", 1))


@upgrades("QLinearAdd", domain=MICROSOFT)
@upgrades("QLinearMul", domain=MICROSOFT)
def binary(node: Reader, build: Builder) -> ir.Value:
    """Add or Mul."""
    a, b = dequantized(build, node.inputs[:3]), dequantized(build, node.inputs[3:6])
    return quantized(build, [build.op(node.op.removeprefix("QLinear"), a, b), *node.inputs[6:8]])


@upgrades("QLinearSigmoid", domain=MICROSOFT)
def sigmoid(node: Reader, build: Builder) -> ir.Value:
    """Sigmoid."""
    y = build.op("Sigmoid", dequantized(build, node.inputs[:3]))
    return quantized(build, [y, *node.inputs[3:5]])


@upgrades("QLinearSoftmax", domain=MICROSOFT)
def softmax(node: Reader, build: Builder) -> ir.Value:
    """Softmax as the opset meant it from which the op was made."""
    x, opset = dequantized(build, node.inputs[:3]), node.integer("opset")
    axis = node.axis(-1 if opset >= _SOFTMAX_OVER_ONE_AXIS else 1, len(canon.shape(x)))
    if opset >= _SOFTMAX_OVER_ONE_AXIS:
        y = build.op("Softmax", x, axis=axis)
    else:
        y = over_trailing_axes(build, "Softmax", x, axis)
    return quantized(build, [y, *node.inputs[3:5]])


@upgrades("QLinearLeakyRelu", domain=MICROSOFT)
def leaky_relu(node: Reader, build: Builder) -> ir.Value:
    """LeakyRelu."""
    y = build.op("LeakyRelu", dequantized(build, node.inputs[:3]), alpha=node.number("alpha", 0.01))
    return quantized(build, [y, *node.inputs[3:5]])


@upgrades("QLinearGlobalAveragePool", domain=MICROSOFT)
def global_average_pool(node: Reader, build: Builder) -> ir.Value:
    """GlobalAveragePool."""
    _channels_first(node)
    y = build.op("GlobalAveragePool", dequantized(build, node.inputs[:3]))
    return quantized(build, [y, *node.inputs[3:5]])


@upgrades("QLinearAveragePool", domain=MICROSOFT)
def average_pool(node: Reader, build: Builder) -> ir.Value:
    """AveragePool."""
    _channels_first(node)
    y = build.op("AveragePool", dequantized(build, node.inputs[:3]), **average_pool_attributes(node))
    return quantized(build, [y, *node.inputs[3:5]])


@upgrades("QLinearConcat", domain=MICROSOFT)
def concat(node: Reader, build: Builder) -> ir.Value:
    """Concat; the output's scale and zero point come first."""
    parts = [dequantized(build, node.inputs[i : i + 3]) for i in range(2, len(node), 3)]
    rank = len(canon.shape(parts[0]))
    y = build.op("Concat", *parts, axis=node.axis(rank=rank))
    return quantized(build, [y, *node.inputs[:2]])


@upgrades("QGemm", domain=MICROSOFT)
def gemm(node: Reader, build: Builder) -> ir.Value:
    """Gemm; the int32 bias is in units of (alpha x scale of a x scale of b); float without an output scale."""
    transposed, alpha = node.integer("transB", 0), node.number("alpha", 1.0)
    a = dequantized(build, node.inputs[:3])
    b = dequantized(build, node.inputs[3:6], axis=0 if transposed else 1)
    bias = node.optional(6)
    if bias is not None:
        unit = build.op("Mul", build.op("Mul", node.input(1), node.input(4)), build.like(alpha, node.input(1), "alpha"))
        bias = build.op("Mul", build.cast(bias, ir.DataType.FLOAT), unit)
    y = build.op("Gemm", a, b, bias, alpha=alpha, beta=1.0, transA=node.integer("transA", 0), transB=transposed)
    return quantized(build, [y, *node.inputs[7:9]]) if node.has(7) else y
