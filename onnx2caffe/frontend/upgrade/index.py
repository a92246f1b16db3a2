"""Reading and writing by index; constant indices become non-negative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import unchanged, upgrades

__all__: list[str] = []

unchanged("NonZero", 9, 13)
unchanged("Unique", 11, 28)
unchanged("NonMaxSuppression", 10, 11)
unchanged("ReverseSequence", 10, 28)


@upgrades("Gather", 1, 11, 13)
def gather(node: Reader, build: Builder) -> ir.Value:
    """Gather."""
    axis = node.axis(0)
    indices = _wrapped(build, node.input(1), node.shape()[axis])
    return build.op("Gather", node.input(), indices, axis=axis)


@upgrades("GatherElements", 11, 13)
def gather_elements(node: Reader, build: Builder) -> ir.Value:
    """GatherElements."""
    axis = node.axis(0)
    indices = _wrapped(build, node.input(1), node.shape()[axis])
    return build.op("GatherElements", node.input(), indices, axis=axis)


@upgrades("GatherND", 11, 12, 13)
def gather_nd(node: Reader, build: Builder) -> ir.Value:
    """GatherND."""
    batch = node.integer("batch_dims", 0)
    depth = node.shape(1)[-1]
    indices = _wrapped(build, node.input(1), node.shape()[batch : batch + depth])
    return build.op("GatherND", node.input(), indices, batch_dims=batch)


@upgrades("Scatter", 9)
@upgrades("ScatterElements", 11, 13, 16, 18)
def scatter_elements(node: Reader, build: Builder) -> ir.Value:
    """ScatterElements."""
    axis = node.axis(0)
    indices = _wrapped(build, node.input(1), node.shape()[axis])
    reduction = node.text("reduction", "none")
    return build.op("ScatterElements", node.input(), indices, node.input(2), axis=axis, reduction=reduction)


@upgrades("ScatterND", 11, 13, 16, 18)
def scatter_nd(node: Reader, build: Builder) -> ir.Value:
    """ScatterND."""
    indices = _wrapped(build, node.input(1), node.shape()[: node.shape(1)[-1]])
    reduction = node.text("reduction", "none")
    return build.op("ScatterND", node.input(), indices, node.input(2), reduction=reduction)


def _wrapped(build: Builder, indices: ir.Value, size: int | Sequence[int]) -> ir.Value:
    """Constant indices counted from the front; `size` is one per last-axis component for the ND forms."""
    array = canon.const(indices)
    if array is None or not (array < 0).any():
        return indices
    return build.const(np.where(array < 0, array + np.asarray(size), array).astype(array.dtype), "indices")


@upgrades("Compress", 9, 11, 28)
def compress(node: Reader, build: Builder) -> ir.Value:
    """Compress by a constant condition → Gather."""
    condition = node.constant(1, "condition")
    assert condition is not None
    x = node.input()
    if node.given("axis"):
        axis = node.axis()
    else:
        axis, x = 0, build.reshape(x, (int(np.prod(node.shape())),))
    return build.op("Gather", x, build.ints(np.flatnonzero(condition).tolist(), "indices"), axis=axis)


@upgrades("OneHot", 9, 11, 28)
def one_hot(node: Reader, build: Builder) -> ir.Value:
    """OneHot of a constant depth."""
    depth = (node.int_list(1, "depth") or [0])[0]
    axis = node.axis(-1, rank=len(node.shape()) + 1)
    size = build.const(np.asarray(depth, np.int64), "depth")
    return build.op("OneHot", node.input(), size, node.input(2), axis=axis)


@upgrades("Trilu", 14)
def trilu(node: Reader, build: Builder) -> ir.Value:
    """Trilu with its diagonal written out."""
    diagonal = (node.int_list(1, "diagonal") or [0])[0]
    k = build.const(np.asarray(diagonal, np.int64), "k")
    return build.op("Trilu", node.input(), k, upper=node.integer("upper", 1))
