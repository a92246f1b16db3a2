"""Reductions, ArgMax, ArgMin, TopK."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []

_AXES_INPUT = {"ReduceSum": 13}
"""The version in which `axes` became an input; 18 for all others."""


@upgrades("ReduceL1", 1, 11, 13, 18)
@upgrades("ReduceL2", 1, 11, 13, 18)
@upgrades("ReduceLogSum", 1, 11, 13, 18, 28)
@upgrades("ReduceLogSumExp", 1, 11, 13, 18, 28)
@upgrades("ReduceMax", 1, 11, 12, 13, 18, 20)
@upgrades("ReduceMean", 1, 11, 13, 18)
@upgrades("ReduceMin", 1, 11, 12, 13, 18, 20)
@upgrades("ReduceProd", 1, 11, 13, 18)
@upgrades("ReduceSum", 1, 11, 13)
@upgrades("ReduceSumSquare", 1, 11, 13, 18)
def reduction(node: Reader, build: Builder) -> ir.Value:
    """A reduction over constant axes; no axes means all, or none with `noop_with_empty_axes`.

    Over no axes the element-wise part stays: |x|, x², log x.
    """
    x, rank = node.input(), len(node.shape())
    if node.version >= _AXES_INPUT.get(node.op, 18):
        axes = node.int_list(1, "axes") or []
    else:
        axes = list(node.integers("axes", ()))
    keep = bool(node.integer("keepdims", 1))
    noop = node.integer("noop_with_empty_axes", 0)
    if not axes and noop:
        return _over_nothing(node.op, build, x)
    positive = sorted({node.positive(a, rank) for a in axes}) if axes else list(range(rank))
    return build.reduce(node.op, x, positive, keep) if rank else _over_nothing(node.op, build, x)


def _over_nothing(op_type: str, build: Builder, x: ir.Value) -> ir.Value:
    if op_type in {"ReduceL1", "ReduceL2"}:
        return build.op("Abs", x)
    if op_type == "ReduceSumSquare":
        return build.op("Mul", x, x)
    return build.op("Log", x) if op_type == "ReduceLogSum" else x


@upgrades("ArgMax", 1, 11, 12, 13)
@upgrades("ArgMin", 1, 11, 12, 13)
def arg(node: Reader, build: Builder) -> ir.Value:
    """The index of the extreme element along an axis."""
    return build.op(
        node.op,
        node.input(),
        axis=node.axis(0),
        keepdims=node.integer("keepdims", 1),
        select_last_index=node.integer("select_last_index", 0),
    )


@upgrades("TopK", 1, 10, 11, 24)
def top_k(node: Reader, build: Builder) -> list[ir.Value]:
    """TopK with constant k, as an attribute up to opset 9."""
    k = node.integer("k") if node.version == 1 else (node.int_list(1, "number k") or [0])[0]
    axis = node.axis(-1)
    return build.many(
        "TopK",
        [node.input(), build.ints([k], "k")],
        2,
        axis=axis,
        largest=node.integer("largest", 1),
        sorted=node.integer("sorted", 1),
    )


@upgrades("CumSum", 11, 14)
def cumsum(node: Reader, build: Builder) -> ir.Value:
    """CumSum along a constant axis."""
    axis = node.positive((node.int_list(1, "axis") or [0])[0], len(canon.shape(node.input())))
    return build.op(
        "CumSum",
        node.input(),
        build.const(np.asarray(axis, np.int64), "axis"),
        exclusive=node.integer("exclusive", 0),
        reverse=node.integer("reverse", 0),
    )
