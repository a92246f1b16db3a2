"""Normalisations, in their inference form."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import unchanged, upgrades

__all__: list[str] = []

unchanged("InstanceNormalization", 6, 22)
unchanged("LRN", 1, 13)


@upgrades("BatchNormalization", 7, 9, 14, 15)
def batch_normalization(node: Reader, build: Builder) -> list[ir.Value | None]:
    """BatchNormalization with stored statistics; statistics per element (`spatial` 0, opset 7) as arithmetic."""
    if node.integer("training_mode", 0) or any(node.wanted[1:]):
        raise Opaque("BatchNormalization in training mode")
    epsilon, _ = node.number("epsilon", 1e-5), node.number("momentum", 0.9)
    x, scale, bias, mean, variance = (node.input(i) for i in range(5))
    if not node.integer("spatial", 1):
        deviation = build.op("Sqrt", build.op("Add", variance, build.like(epsilon, x, "epsilon")))
        normal = build.op("Div", build.op("Sub", x, mean), deviation)
        y = build.op("Add", build.op("Mul", normal, scale), bias)
    else:
        y = build.op(
            "BatchNormalization", x, scale, bias, mean, variance, epsilon=epsilon, momentum=0.9, training_mode=0
        )
    return [y, *[None] * (len(node.wanted) - 1)]


@upgrades("LayerNormalization", 17)
def layer_normalization(node: Reader, build: Builder) -> list[ir.Value | None]:
    """LayerNormalization; the mean and the inverse deviation, where wanted, from their definitions."""
    x, axis, epsilon = node.input(), node.axis(-1), node.number("epsilon", 1e-5)
    settings = {"axis": axis, "epsilon": epsilon, "stash_type": node.integer("stash_type", 1)}
    y = build.op("LayerNormalization", *node.inputs, **settings)
    wanted = (*node.wanted[1:], False, False)
    if not any(wanted):
        return [y, None, None][: len(node.wanted)]
    axes = range(axis, len(node.shape()))
    mean = build.reduce("ReduceMean", x, axes, keepdims=True)
    if not wanted[1]:
        return [y, mean, None][: len(node.wanted)]
    centred = build.op("Sub", x, mean)
    variance = build.reduce("ReduceMean", build.op("Mul", centred, centred), axes, keepdims=True)
    deviation = build.op("Sqrt", build.op("Add", variance, build.like(epsilon, x, "epsilon")))
    return [y, mean, build.op("Reciprocal", deviation)]


@upgrades("RMSNormalization", 23)
def rms_normalization(node: Reader, build: Builder) -> ir.Value:
    """RMSNormalization."""
    return build.op(
        "RMSNormalization",
        *node.inputs,
        axis=node.axis(-1),
        epsilon=node.number("epsilon", 1e-5),
        stash_type=node.integer("stash_type", 1),
    )


@upgrades("GroupNormalization", 18, 21)
def group_normalization(node: Reader, build: Builder) -> ir.Value:
    """GroupNormalization with scale and bias per channel; opset 18 has them per group (and calls that deprecated)."""
    x, scale, bias = node.present
    groups, channels = node.integer("num_groups"), node.shape()[1]
    if canon.shape(scale) != (channels,):
        own = build.ints((np.arange(channels) * groups // channels).tolist(), "groups")
        scale, bias = (build.op("Gather", v, own, axis=0) for v in (scale, bias))
    return build.op(
        "GroupNormalization",
        x,
        scale,
        bias,
        num_groups=groups,
        epsilon=node.number("epsilon", 1e-5),
        stash_type=node.integer("stash_type", 1),
    )


@upgrades("LpNormalization", 1, 22)
def lp_normalization(node: Reader, build: Builder) -> ir.Value:
    """LpNormalization."""
    return build.op("LpNormalization", node.input(), axis=node.axis(-1), p=node.integer("p", 2))


@upgrades("MeanVarianceNormalization", 9, 13)
def mean_variance_normalization(node: Reader, build: Builder) -> ir.Value:
    """MeanVarianceNormalization with its axes positive."""
    rank = len(canon.shape(node.input()))
    axes = sorted(node.positive(a, rank) for a in node.integers("axes", (0, 2, 3)))
    return build.op("MeanVarianceNormalization", node.input(), axes=tuple(axes))
