"""Versions that ended with opset 6: broadcasting said by attributes, training by `is_test`."""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []


def _second(node: Reader, build: Builder) -> ir.Value:
    """Input 1, its axes set against those of input 0 that begin at `axis`; without it against the last ones."""
    other = node.input(1)
    axis = node.axis(0) if node.given("axis") else None
    if not node.integer("broadcast", 0) or axis is None:
        return other
    trailing = len(node.shape()) - axis - len(canon.shape(other))
    if trailing < 0:
        raise Opaque(f"{node.op} with axis {axis} has an operand that reaches beyond the last axis")
    return build.reshape(other, canon.shape(other) + (1,) * trailing)


@upgrades("Add", 1, 6)
@upgrades("Sub", 1, 6)
@upgrades("Mul", 1, 6)
@upgrades("Div", 1, 6)
@upgrades("Pow", 1)
@upgrades("And", 1)
@upgrades("Or", 1)
@upgrades("Xor", 1)
@upgrades("Equal", 1)
@upgrades("Greater", 1)
@upgrades("Less", 1)
def binary(node: Reader, build: Builder) -> ir.Value:
    """Two operands."""
    return build.op(node.op, node.input(), _second(node, build))


@upgrades("Gemm", 6)
def gemm(node: Reader, build: Builder) -> ir.Value:
    """Gemm; `broadcast` only allows what later versions always do."""
    node.integer("broadcast", 0)
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    transposed = {name: node.integer(name, 0) for name in ("transA", "transB")}
    return build.op("Gemm", *node.inputs, alpha=alpha, beta=beta, **transposed)


@upgrades("PRelu", 6)
def prelu(node: Reader, build: Builder) -> ir.Value:
    """PRelu with one slope, or one per channel."""
    slope, rank = node.input(1), len(node.shape())
    size = canon.shape(slope)
    if size not in ((), (1,)) and rank > 1:
        slope = build.reshape(slope, (*size, *[1] * (rank - 1 - len(size))))
    return build.op("PRelu", node.input(), slope)


@upgrades("BatchNormalization", 6)
def batch_normalization(node: Reader, build: Builder) -> list[ir.Value | None]:
    """BatchNormalization with stored statistics per channel."""
    epsilon, _ = node.number("epsilon", 1e-5), node.number("momentum", 0.9)
    if not node.integer("is_test", 0) or not node.integer("spatial", 1):
        raise Opaque("BatchNormalization-6 in training mode, or with statistics per element")
    y = build.op("BatchNormalization", *node.inputs, epsilon=epsilon, momentum=0.9, training_mode=0)
    return [y, *[None] * (len(node.wanted) - 1)]


@upgrades("Dropout", 6)
def dropout(node: Reader, build: Builder) -> list[ir.Value | None]:
    """Nothing in inference."""
    node.number("ratio", 0.5)
    if not node.integer("is_test", 0) or any(node.wanted[1:]):
        raise Opaque("Dropout-6 in training mode draws random numbers")
    return [node.input(), *[None] * (len(node.wanted) - 1)]
