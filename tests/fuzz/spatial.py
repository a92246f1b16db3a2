"""Makers of nodes over maps: convolutions, pools, resizes, pads, blocks, normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.graph import Graph, Maker

__all__ = ["MAKERS"]


def conv(g: Graph) -> None:
    x = g.pick(3, 4, 4, 5)
    channels, axes = g.shapes[x][1], len(g.shapes[x]) - 2
    group = g.one(1, 1, channels, *(d for d in (2, 3) if channels % d == 0))
    outputs = group * g.int(1, 3)
    kernel = g.ints(axes, 1, g.one(3, 3, 5))
    attributes: dict[str, Any] = {"kernel_shape": kernel, "group": group, "strides": g.ints(axes, 1, 2)}
    if g.rarely():
        attributes["auto_pad"] = g.one("SAME_UPPER", "SAME_LOWER", "VALID")
    else:
        attributes["pads"] = g.ints(2 * axes, 0, 2)
        attributes["dilations"] = g.ints(axes, 1, 2)
    bias = [g.weight(outputs)] if g.int(0, 1) else []
    w = g.weight(outputs, channels // group, *kernel)
    if g.rarely():
        w = g.add("Mul", w, g.weight(outputs, *[1] * (axes + 1)))
    g.add("Conv", x, w, *bias, **attributes)


def deconv(g: Graph) -> None:
    x = g.pick(3, 4, 4, 5)
    channels, axes = g.shapes[x][1], len(g.shapes[x]) - 2
    group = g.one(1, 1, channels)
    kernel, strides = g.ints(axes, 1, 4), g.ints(axes, 1, 3)
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "group": group}
    if g.rarely():
        attributes["auto_pad"] = g.one("SAME_UPPER", "SAME_LOWER", "VALID")
    else:
        attributes["pads"] = [g.int(0, min(kernel) - 1) for _ in range(2 * axes)]
        attributes["output_padding"] = [g.int(0, s - 1) for s in strides]
        attributes["dilations"] = g.ints(axes, 1, 2)
    outputs = g.int(1, 3)
    bias = [g.weight(outputs * group)] if g.int(0, 1) else []
    g.add("ConvTranspose", x, g.weight(channels, outputs, *kernel), *bias, **attributes)


def pool(g: Graph) -> None:
    x = g.pick(3, 4, 4, 4, 5)
    axes = len(g.shapes[x]) - 2
    op = g.one("MaxPool", "AveragePool", "LpPool") if g.rarely() else g.one("MaxPool", "AveragePool")
    kernel = g.ints(axes, 1, 4)
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": g.ints(axes, 1, 3)}
    if g.rarely():
        attributes["auto_pad"] = g.one("SAME_UPPER", "SAME_LOWER", "VALID")
    else:
        attributes["pads"] = [g.int(0, k - 1) for k in kernel * 2]
        if g.opset >= {"LpPool": 18}.get(op, 10):
            attributes["ceil_mode"] = g.int(0, 1)
        if g.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op] and g.rarely():
            attributes["dilations"] = g.ints(axes, 1, 2)
    if op == "AveragePool":
        attributes["count_include_pad"] = g.int(0, 1)
    if op == "LpPool":
        attributes["p"] = g.int(1, 3)
    g.add(op, x, **attributes)


def pool_indices(g: Graph) -> None:
    x = g.pick(4)
    outputs = g.many("MaxPool", x, outputs=2, kernel_shape=[2, 2], strides=g.one([2, 2], [1, 1]))
    if g.int(0, 1) and g.opset >= 9:
        g.add("MaxUnpool", *outputs, kernel_shape=[2, 2], strides=[2, 2])


def global_pool(g: Graph) -> None:
    op = g.one("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    attributes = {"p": g.int(1, 3)} if op == "GlobalLpPool" else {}
    g.add(op, g.pick(3, 4, 5), **attributes)


def pad(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    shape = g.shapes[x]
    mode = g.one("constant", "constant", "edge", "reflect", *(("wrap",) if g.opset >= 19 else ()))
    pads = [g.int(-1 if mode == "constant" else 0, 2) if g.int(0, 1) else 0 for _ in range(2 * len(shape))]
    reach = {"reflect": 1, "wrap": 0}.get(mode, -9)
    g.need(*(p + reach <= d - 0 and (mode != "reflect" or p < d) for p, d in zip(pads, shape * 2, strict=True)))
    value = g.one(0.0, 1.5)
    if g.opset < 11:
        g.add("Pad", x, pads=pads, mode=mode, value=value)
        return
    if g.opset >= 18 and g.rarely():
        axis, rank = g.axis(x), len(shape)
        pads = [pads[axis % rank], pads[axis % rank + rank]]
        g.add("Pad", x, g.indices(*pads), g.number(value), g.indices(axis), mode=mode)
        return
    g.add("Pad", x, g.indices(*pads), *((g.number(value),) if g.int(0, 1) else ()), mode=mode)


def resize(g: Graph) -> None:
    x = g.pick(4, 4, 3, 5)
    factors = (1.0, 2.0, 3.0, 1.5) if g.opset < 10 else (1.0, 2.0, 3.0, 1.5, 0.5, 0.7, 7 / 6)
    scales = np.array([1, 1, *(g.one(*factors) for _ in g.shapes[x][2:])], np.float32)
    if g.opset >= 13 and g.rarely():
        scales = np.roll(scales, g.int(1, 2))
    mode = g.one("nearest", "linear")
    if g.opset < 9:
        g.add("Upsample", x, mode=mode, scales=scales.tolist())
    elif g.opset < 11:
        g.add("Upsample" if g.opset < 10 else "Resize", x, g.constant(scales), mode=mode)
    else:
        _resize11(g, x, scales, mode)


def _resize11(g: Graph, x: str, scales: np.ndarray, mode: str) -> None:
    transform = g.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes: dict[str, Any] = {"mode": g.one(mode, "cubic"), "coordinate_transformation_mode": transform}
    if attributes["mode"] == "nearest":
        attributes["nearest_mode"] = g.one("floor", "round_prefer_floor", "ceil", "round_prefer_ceil")
    elif g.opset >= 18 and g.rarely():
        attributes["antialias"] = 1
    if attributes["mode"] == "cubic":
        attributes["exclude_outside"] = g.int(0, 1)
        attributes["cubic_coeff_a"] = g.one(-0.75, -0.5)
    roi = g.constant(np.zeros(0, np.float32)) if g.opset < 13 else ""
    if g.opset >= 18 and g.rarely():
        axes = g.some(range(2, len(scales)))
        if g.int(0, 1):
            attributes["keep_aspect_ratio_policy"] = g.one("stretch", "not_larger", "not_smaller")
            g.add("Resize", x, "", "", g.indices(*g.ints(len(axes), 1, 9)), axes=axes, **attributes)
            return
        g.add("Resize", x, "", g.constant(scales[axes]), axes=axes, **attributes)
        return
    if g.int(0, 2):
        g.add("Resize", x, roi, g.constant(scales), **attributes)
        return
    sizes = (scales * g.shapes[x]).astype(np.int64)
    empty = g.constant(np.zeros(0, np.float32)) if g.opset < 13 else ""
    g.add("Resize", x, roi, empty, g.indices(*sizes), **attributes)


def blocks(g: Graph) -> None:
    x = g.pick(4)
    block = g.int(2, 3)
    if g.int(0, 1):
        g.add("SpaceToDepth", x, blocksize=block)
    else:
        mode = {"mode": g.one("DCR", "CRD")} if g.opset >= 11 else {}
        g.add("DepthToSpace", x, blocksize=block, **mode)


def batch_norm(g: Graph) -> None:
    x = g.pick(2, 3, 4, 4, 5)
    channels = g.shapes[x][1]
    stats = [g.weight(channels, positive=i == 3) for i in range(4)]
    g.add("BatchNormalization", x, *stats, epsilon=g.one(1e-5, 1e-3))


def map_norm(g: Graph) -> None:
    """Statistics per item and channels: of few or equal elements they are all noise, so those are left out."""
    x = g.pick(3, 4, 5)
    shape = g.shapes[x]
    channels = shape[1]
    group = g.one(*(d for d in range(1, channels + 1) if channels % d == 0))
    g.need(int(np.prod(shape[2:])) * (channels // group) >= 3)
    op = g.one("InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization")
    if op == "MeanVarianceNormalization":
        g.need(g.opset >= 9)
        axes = g.one([0, 2, 3], [2, 3], [1, 2, 3], [-1, -2])
        g.need(len(shape) == 4)
        g.need(int(np.prod([shape[a] for a in axes])) >= 3)
        g.add(op, x, axes=axes, shape=shape)
    elif op == "InstanceNormalization":
        g.need(int(np.prod(shape[2:])) >= 3)
        g.add(op, x, g.weight(channels), g.weight(channels), epsilon=1e-2)
    else:
        g.need(g.opset >= 18)
        sides = channels if g.opset >= 21 else group
        g.add(op, x, g.weight(sides), g.weight(sides), epsilon=1e-2, num_groups=group, shape=shape)


def tail_norm(g: Graph) -> None:
    x = g.pick(2, 3, 4, 5)
    axis = g.axis(x)
    tail = g.shapes[x][axis % len(g.shapes[x]) :]
    g.need(int(np.prod(tail)) >= 3, g.opset >= 17)
    if g.opset >= 23 and g.int(0, 1):
        g.add("RMSNormalization", x, g.weight(*tail), axis=axis, epsilon=1e-2)
        return
    bias = [g.weight(*tail)] if g.int(0, 1) else []
    g.add("LayerNormalization", x, g.weight(*tail), *bias, axis=axis, epsilon=1e-2)


def other_norm(g: Graph) -> None:
    if g.int(0, 1):
        g.add("LRN", g.pick(4), size=g.int(1, 5), alpha=0.1, beta=0.75, bias=g.one(1.0, 2.0))
        return
    x = g.pick(1, 2, 3, 4)
    axis = g.axis(x, 7)
    g.need(g.shapes[x][axis] > 1)  # the rest is ±1, and what an ArgMax makes of that is up to rounding
    g.add("LpNormalization", x, axis=axis, p=g.int(1, 2), shape=g.shapes[x])


def center(g: Graph) -> None:
    x = g.pick(2, 3, 4)
    axes = g.some(range(len(g.shapes[x])), most=2)
    g.add("CenterCropPad", x, g.indices(*g.ints(len(axes), 1, 8)), axes=axes)


def grid_sample(g: Graph) -> None:
    x = g.pick(4)
    g.need(g.opset >= 16)
    rng = np.random.default_rng(g.int(0, 999))
    grid = rng.uniform(-1.2, 1.2, (g.shapes[x][0], g.int(1, 4), g.int(1, 4), 2)).astype(np.float32)
    mode = g.one("bilinear", "nearest") if g.opset < 20 else g.one("linear", "nearest")
    padding = g.one("zeros", "border", "reflection")
    g.add("GridSample", x, g.constant(grid), mode=mode, padding_mode=padding, align_corners=g.int(0, 1))


MAKERS: tuple[Maker, ...] = (
    conv, conv, conv, deconv, pool, pool, pool, pool_indices, global_pool, pad, pad, resize, resize, blocks,
    batch_norm, batch_norm, map_norm, tail_norm, other_norm, center, grid_sample,
)  # fmt: skip
