"""Quantised ops: QuantizeLinear and DequantizeLinear stay, the fused ones become DQ, op, Q."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import inlined, upgrades
from onnx2caffe.frontend.upgrade.window import conv_attributes

__all__: list[str] = []

_VERSIONS = (10, 13, 19, 21, 23, 24, 25, 28)

inlined("DynamicQuantizeLinear", 11)


@upgrades("DequantizeLinear", *_VERSIONS)
def dequantize(node: Reader, build: Builder) -> ir.Value:
    """DequantizeLinear; of constants, a constant."""
    node.integer("output_dtype", 0)
    return _dequantized(build, node.inputs, axis=node.integer("axis", 1), block_size=node.integer("block_size", 0))


@upgrades("QuantizeLinear", *_VERSIONS)
def quantize(node: Reader, build: Builder) -> ir.Value:
    """QuantizeLinear."""
    node.integer("precision", 0)
    return _quantized(
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


def _dequantized(build: Builder, inputs: Sequence[ir.Value | None], axis: int = 1, block_size: int = 0) -> ir.Value:
    """`inputs`: numbers, scale, zero point."""
    return build.op("DequantizeLinear", *inputs, axis=_axis(axis, _rank(inputs)), block_size=block_size)


def _quantized(build: Builder, inputs: Sequence[ir.Value | None], axis: int = 1, **settings: Any) -> ir.Value:
    """`inputs`: numbers, scale, zero point."""
    settings = {"block_size": 0, "saturate": 1, **settings}
    return build.op("QuantizeLinear", *inputs, axis=_axis(axis, _rank(inputs)), **settings)


def _rank(inputs: Sequence[ir.Value | None]) -> int:
    if inputs[0] is None:
        raise Opaque("input 0 is missing")
    return len(canon.shape(inputs[0]))


@upgrades("QLinearMatMul", 10, 21)
def qlinear_matmul(node: Reader, build: Builder) -> ir.Value:
    """DQ, MatMul, Q."""
    a, b = (_dequantized(build, node.inputs[i : i + 3], axis=-1) for i in (0, 3))
    return _quantized(build, [build.op("MatMul", a, b), *node.inputs[6:8]], axis=-1)


@upgrades("QLinearConv", 10)
def qlinear_conv(node: Reader, build: Builder) -> ir.Value:
    """DQ, Conv, Q; the int32 bias is in units of (input scale x weight scale)."""
    x = _dequantized(build, node.inputs[:3])
    weight = _dequantized(build, node.inputs[3:6], axis=0)
    bias = node.optional(8)
    if bias is not None:
        unit = build.op("Mul", node.input(1), node.input(4))
        bias = build.op("Mul", build.cast(bias, ir.DataType.FLOAT), unit)
    y = build.op("Conv", x, weight, bias, **conv_attributes(node, canon.shape(weight)))
    return _quantized(build, [y, *node.inputs[6:8]])


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
