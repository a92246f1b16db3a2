"""Products: MatMul, Gemm, Einsum."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import inlined, refused, unchanged, upgrades

__all__: list[str] = []

unchanged("MatMul", 1, 9, 13)
unchanged("Gemm", 7, 9, 11, 13)
inlined("Attention", 23, 24, 25)
inlined("RotaryEmbedding", 23)
inlined("CausalConvWithState", 27)
inlined("LinearAttention", 27)
inlined("NegativeLogLikelihoodLoss", 12, 13, 22)
inlined("SoftmaxCrossEntropyLoss", 12, 13)

refused(
    "it is newer than the opset that models are brought to, 23",
    "BitCast",
    "CumProd",
    "TensorScatter",
)


@upgrades("AffineGrid", 20)
def affine_grid(node: Reader, build: Builder) -> ir.Value:
    """Theta (N, d, d + 1) times the constant homogeneous coordinates of all points → (N, *size, d), x first."""
    sizes = (node.int_list(1, "size") or [])[2:]
    aligned = node.integer("align_corners", 0)
    ends = [1.0 if aligned else 1 - 1 / n for n in sizes]
    lines = [np.linspace(-end, end, n) for end, n in zip(ends, sizes, strict=True)]
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(sizes)], axis=-1)
    theta = build.transpose(node.input(), (0, 2, 1))
    base = build.const(points.reshape(1, -1, len(sizes) + 1).astype(np.float32), "points")
    return build.reshape(build.op("MatMul", base, theta), (node.shape()[0], *sizes, len(sizes)))


@upgrades("Einsum", 12, 28)
def einsum(node: Reader, build: Builder) -> ir.Value:
    """Einsum, its equation without blanks."""
    return build.op("Einsum", *node.present, equation=node.text("equation").replace(" ", ""))
