"""Quantised ops: QuantizeLinear and DequantizeLinear stay, the fused ones become DQ, op, Q."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import inlined, upgrades
from onnx2caffe.frontend.upgrade.window import conv_attributes

__all__ = ["dequantized", "quantized"]

_VERSIONS = (10, 13, 19, 21, 23, 24, 25, 28)

inlined("DynamicQuantizeLinear", 11)


@upgrades("DequantizeLinear", *_VERSIONS)
def dequantize(node: Reader, build: Builder) -> ir.Value:
    """DequantizeLinear; of constants, a constant."""
    node.integer("output_dtype", 0)
    return dequantized(build, node.inputs, axis=node.integer("axis", 1), block_size=node.integer("block_size", 0))


@upgrades("QuantizeLinear", *_VERSIONS)
def quantize(node: Reader, build: Builder) -> ir.Value:
    """QuantizeLinear."""
    node.integer("precision", 0)
    return quantized(
        build,
        node.inputs,
        axis=node.integer("axis", 1),
        block_size=node.integer("block_size", 0),
        output_dtype=node.integer("output_dtype", 0) or None,
        saturate=node.integer("saturate", 1),
    )


def _axis(axis: int, rank: int) -> int:
    """A positive axis; for a parameter of one number any value is allowed, and 0 is as good."""
    return axis % rank if rank and -rank <= axis < rank else 0


def dequantized(build: Builder, inputs: Sequence[ir.Value | None], axis: int = 1, block_size: int = 0) -> ir.Value:
    """DequantizeLinear of numbers, scale, zero point."""
    return build.op("DequantizeLinear", *inputs, axis=_axis(axis, _rank(inputs)), block_size=block_size)


def quantized(build: Builder, inputs: Sequence[ir.Value | None], axis: int = 1, **settings: Any) -> ir.Value:
    """QuantizeLinear of numbers, scale, zero point."""
    settings = {"block_size": 0, "saturate": 1, **settings}
    return build.op("QuantizeLinear", *inputs, axis=_axis(axis, _rank(inputs)), **settings)


def _rank(inputs: Sequence[ir.Value | None]) -> int:
    if inputs[0] is None:
        raise Opaque("input 0 is missing")
    return len(canon.shape(inputs[0]))


@upgrades("QLinearMatMul", 10, 21)
def qlinear_matmul(node: Reader, build: Builder) -> ir.Value:
    """DQ, MatMul, Q."""
    a, b = (dequantized(build, node.inputs[i : i + 3], axis=-1) for i in (0, 3))
    return quantized(build, [build.op("MatMul", a, b), *node.inputs[6:8]], axis=-1)


@upgrades("QLinearConv", 10)
def qlinear_conv(node: Reader, build: Builder) -> ir.Value:
    """DQ, Conv, Q; the int32 bias is in units of (input scale x weight scale)."""
    x = dequantized(build, node.inputs[:3])
    weight = dequantized(build, node.inputs[3:6], axis=0)
    bias = node.optional(8)
    if bias is not None:
        unit = build.op("Mul", node.input(1), node.input(4))
        bias = build.op("Mul", build.cast(bias, ir.DataType.FLOAT), unit)
    y = build.op("Conv", x, weight, bias, **conv_attributes(node, canon.shape(weight)))
    return quantized(build, [y, *node.inputs[6:8]])


@upgrades("ConvInteger", 10)
def conv_integer(node: Reader, build: Builder) -> ir.Value:
    """Conv of the centred numbers, exact in float up to 2^24, cast back."""
    rank = len(node.shape())
    x = _centred(build, node.input(0), node.optional(2), [1] * rank)
    weight = _centred(build, node.input(1), node.optional(3), [-1] + [1] * (rank - 1))
    y = build.op("Conv", x, weight, **conv_attributes(node))
    return build.cast(y, ir.DataType.INT32)


@upgrades("MatMulInteger", 10)
def matmul_integer(node: Reader, build: Builder) -> ir.Value:
    """MatMul of the centred numbers, exact in float up to 2^24, cast back; zeros per row of a and column of b."""
    a = _centred(build, node.input(0), node.optional(2), [-1, 1])
    b = _centred(build, node.input(1), node.optional(3), [-1])
    return build.cast(build.op("MatMul", a, b), ir.DataType.INT32)


def _centred(build: Builder, x: ir.Value, zero: ir.Value | None, layout: Sequence[int]) -> ir.Value:
    """`x` less its zero point as floats; `layout` gives a list of zero points its place (-1)."""
    wide = build.cast(x, ir.DataType.FLOAT)
    if zero is None:
        return wide
    size = math.prod(canon.shape(zero))
    if len(canon.shape(zero)) == 1:
        zero = build.reshape(zero, [size if n == -1 else n for n in layout] if size > 1 else [])
    return build.op("Sub", wide, build.cast(zero, ir.DataType.FLOAT))
