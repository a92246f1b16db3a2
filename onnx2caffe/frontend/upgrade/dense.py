"""Products: MatMul, Gemm, Einsum."""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import inlined, unchanged, upgrades

__all__: list[str] = []

unchanged("MatMul", 1, 9, 13)
unchanged("Gemm", 7, 9, 11, 13)
unchanged("MatMulInteger", 10)
inlined("Attention", 23, 24, 25)
inlined("RotaryEmbedding", 23)
inlined("AffineGrid", 20)


@upgrades("Einsum", 12, 28)
def einsum(node: Reader, build: Builder) -> ir.Value:
    """Einsum, its equation without blanks."""
    return build.op("Einsum", *node.present, equation=node.text("equation").replace(" ", ""))
