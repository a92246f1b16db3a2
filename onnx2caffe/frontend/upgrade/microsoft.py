"""Fused ops of onnxruntime's own domain that exporters leave in files, taken apart.

Source: onnxruntime's operator documentation (ContribOperators).
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import MICROSOFT, upgrades
from onnx2caffe.frontend.upgrade.window import conv_attributes

__all__: list[str] = []


def _activated(node: Reader, build: Builder, y: ir.Value, kind: str, parameters: tuple[float, ...]) -> ir.Value:
    if kind == "":
        return y
    if kind in {"Relu", "Sigmoid", "Tanh"}:
        return build.op(kind, y)
    if kind == "LeakyRelu":
        return build.op(kind, y, alpha=parameters[0] if parameters else 0.01)
    if kind == "HardSigmoid":
        alpha, beta = parameters or (0.2, 0.5)
        return build.op(kind, y, alpha=alpha, beta=beta)
    if kind == "Clip" and len(parameters) == 2:
        return build.op("Clip", y, build.like(parameters[0], y, "min"), build.like(parameters[1], y, "max"))
    raise Opaque(f"activation {kind!r} of {node.op} is not known")


@upgrades("FusedConv", domain=MICROSOFT)
def fused_conv(node: Reader, build: Builder) -> ir.Value:
    """Conv, then the sum with a fourth input, then an activation."""
    y = build.op("Conv", *node.inputs[:3], **conv_attributes(node))
    if node.has(3):
        y = build.op("Add", y, node.input(3))
    return _activated(node, build, y, node.text("activation", ""), node.numbers("activation_params", ()))


@upgrades("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: Reader, build: Builder) -> ir.Value:
    """Gemm and an activation."""
    y = build.op(
        "Gemm",
        *node.inputs,
        alpha=node.number("alpha", 1.0),
        beta=node.number("beta", 1.0),
        transA=node.integer("transA", 0),
        transB=node.integer("transB", 0),
    )
    kind = node.text("activation", "")
    chosen = [node.number(name) for name in ("activation_alpha", "activation_beta") if node.given(name)]
    return _activated(node, build, y, kind, tuple(chosen))


@upgrades("FusedMatMul", domain=MICROSOFT)
def fused_matmul(node: Reader, build: Builder) -> ir.Value:
    """Alpha * A' B', each transposed in its last two axes on demand."""
    if node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        raise Opaque("FusedMatMul with transposed batches")
    a, b = (_transposed(build, node.input(i), node.integer(name, 0)) for i, name in ((0, "transA"), (1, "transB")))
    y = build.op("MatMul", a, b)
    alpha = node.number("alpha", 1.0)
    return y if alpha == 1.0 else build.op("Mul", y, build.like(alpha, y, "alpha"))


def _transposed(build: Builder, x: ir.Value, wanted: int) -> ir.Value:
    rank = len(canon.shape(x))
    perm = [*range(rank - 2), rank - 1, rank - 2] if wanted and rank > 1 else list(range(rank))
    return build.transpose(x, perm)


@upgrades("Gelu", domain=MICROSOFT)
def gelu(node: Reader, build: Builder) -> ir.Value:
    """Gelu by the error function."""
    return build.op("Gelu", node.input(), approximate="none")


@upgrades("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: Reader, build: Builder) -> ir.Value:
    """Add, Gelu by the error function."""
    return build.op("Gelu", build.op("Add", node.input(0), node.input(1)), approximate="none")


@upgrades("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Reader, build: Builder) -> ir.Value:
    """Add (optional), Gelu by tanh."""
    x = build.op("Add", node.input(0), node.input(1)) if node.has(1) else node.input()
    return build.op("Gelu", x, approximate="tanh")


@upgrades("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Reader, build: Builder) -> ir.Value:
    """X * sigmoid(alpha * x)."""
    x, alpha = node.input(), node.number("alpha", 1.702)
    inner = x if alpha == 1.0 else build.op("Mul", x, build.like(alpha, x, "alpha"))
    return build.op("Mul", x, build.op("Sigmoid", inner))


@upgrades("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(node: Reader, build: Builder) -> list[ir.Value | None]:
    """LayerNormalization of a sum; the sum itself is the fourth output."""
    x = build.op("Add", node.input(0), node.input(1))
    if node.has(4):
        x = build.op("Add", x, node.input(4))
    if any(node.wanted[1:3]):
        raise Opaque("SkipLayerNormalization with its statistics as outputs")
    settings: dict[str, Any] = {
        "axis": len(canon.shape(x)) - 1,
        "epsilon": node.number("epsilon", 1e-12),
        "stash_type": 1,
    }
    y = build.op("LayerNormalization", x, node.input(2), node.optional(3), **settings)
    return [y, None, None, x][: len(node.wanted)]


@upgrades("NhwcConv", domain=MICROSOFT)
def nhwc_conv(node: Reader, build: Builder) -> ir.Value:
    """Conv over data with the channels last; the weights are (M, kH, kW, C)."""
    rank = len(node.shape())
    front = [0, rank - 1, *range(1, rank - 1)]
    x, weight = build.transpose(node.input(0), front), build.transpose(node.input(1), front)
    attributes = conv_attributes(node, canon.shape(weight), canon.shape(x))
    y = build.op("Conv", x, weight, node.optional(2), **attributes)
    return build.transpose(y, [0, *range(2, rank), 1])
