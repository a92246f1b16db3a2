"""Quantised ops: QuantizeLinear and DequantizeLinear stay, the fused ones become DQ, op, Q."""

from __future__ import annotations

from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import inlined, upgrades

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.upgrade.window import conv_attributes

__all__: list[str] = []

_VERSIONS = (10, 13, 19, 21, 23, 24, 25, 28)

inlined("DynamicQuantizeLinear", 11)


@upgrades("DequantizeLinear", *_VERSIONS)
def dequantize(node: Reader, build: Builder) -> ir.Value:
    """DequantizeLinear; of constants, a constant."""
    axis = node.integer("axis", 1)
    node.integer("output_dtype", 0)
    return _dequantized(build, node.input(0), node.input(1), node.optional(2), axis, node.integer("block_size", 0))


@upgrades("QuantizeLinear", *_VERSIONS)
def quantize(node: Reader, build: Builder) -> ir.Value:
    """QuantizeLinear."""
    axis = node.integer("axis", 1)
    block, dtype = node.integer("block_size", 0), node.integer("output_dtype", 0)
    node.integer("precision", 0)
    return _quantized(
        build, node.input(0), node.input(1), node.optional(2), axis, block, dtype, node.integer("saturate", 1)
    )


def _axis(axis: int, rank: int) -> int:
    """A positive axis; for a parameter of one number any value is allowed, and 0 is as good."""
    return axis % rank if rank and -rank <= axis < rank else 0


def _dequantized(
    build: Builder, x: ir.Value, scale: ir.Value, zero: ir.Value | None, axis: int = 1, block: int = 0
) -> ir.Value:
    at = _axis(axis, len(canon.shape(x)))
    return build.op("DequantizeLinear", x, scale, zero, axis=at, block_size=block)


def _quantized(
    build: Builder,
    x: ir.Value,
    scale: ir.Value,
    zero: ir.Value | None,
    axis: int = 1,
    block: int = 0,
    dtype: int = 0,
    saturate: int = 1,
) -> ir.Value:
    at = _axis(axis, len(canon.shape(x)))
    return build.op(
        "QuantizeLinear", x, scale, zero, axis=at, block_size=block, output_dtype=dtype or None, saturate=saturate
    )


@upgrades("QLinearMatMul", 10, 21)
def qlinear_matmul(node: Reader, build: Builder) -> ir.Value:
    """DQ, MatMul, Q."""
    a, b = (_dequantized(build, node.input(i), node.input(i + 1), node.optional(i + 2), axis=-1) for i in (0, 3))
    return _quantized(build, build.op("MatMul", a, b), node.input(6), node.optional(7), axis=-1)


@upgrades("QLinearConv", 10)
def qlinear_conv(node: Reader, build: Builder) -> ir.Value:
    """DQ, Conv, Q; the int32 bias is in units of (input scale x weight scale)."""
    x = _dequantized(build, node.input(0), node.input(1), node.optional(2))
    weight = _dequantized(build, node.input(3), node.input(4), node.optional(5), axis=0)
    bias = node.optional(8)
    if bias is not None:
        unit = build.op("Mul", node.input(1), node.input(4))
        bias = build.op("Mul", build.cast(bias, ir.DataType.FLOAT), unit)
    y = build.op("Conv", x, weight, bias, **conv_attributes(node, canon.shape(weight)))
    return _quantized(build, y, node.input(6), node.optional(7))


@upgrades("ConvInteger", 10)
def conv_integer(node: Reader, build: Builder) -> ir.Value:
    """Conv of the centred numbers, exact in float up to 2^24, cast back."""
    x, weight = (_centred(build, node.input(i), node.optional(i + 2), axis) for i, axis in ((0, 1), (1, 0)))
    y = build.op("Conv", x, weight, **conv_attributes(node))
    return build.cast(y, ir.DataType.INT32)


def _centred(build: Builder, x: ir.Value, zero: ir.Value | None, axis: int) -> ir.Value:
    wide = build.cast(x, ir.DataType.FLOAT)
    if zero is None:
        return wide
    shape = canon.shape(zero)
    if shape and shape[0] > 1:
        zero = build.reshape(zero, [shape[0] if i == axis else 1 for i in range(len(canon.shape(x)))])
    return build.op("Sub", wide, build.cast(zero, ir.DataType.FLOAT))
