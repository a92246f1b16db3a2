"""Makers of the blocks that convolutional networks are built of: stems, stages, necks, heads, decodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz import idioms
from tests.fuzz.graph import Graph, Maker

__all__ = ["MAKERS", "STEMS"]

_PLAIN = {"Relu": 6, "LeakyRelu": 6, "Sigmoid": 6, "Tanh": 6, "Elu": 6, "HardSigmoid": 6, "HardSwish": 14, "Mish": 18}


def _map(g: Graph) -> str:
    """A map of one picture."""
    maps = [n for n, s in g.shapes.items() if len(s) == 4 and s[0] == 1]
    g.need(maps)
    return g.one(*maps[-4:], *maps)


def _activated(g: Graph, x: str) -> str:
    kind = g.int(0, 6)
    if kind == 0:
        return x
    if kind < 3:
        return g.add("Relu", x)
    if kind == 3:
        return g.add("Mul", *g.one((x, (gate := g.add("Sigmoid", x))), (gate, x)))
    if kind == 4:
        return g.clip(x, 0.0, 6.0)
    if kind == 5:
        return g.add("PRelu", x, g.weight(g.shapes[x][1], *[1] * (len(g.shapes[x]) - 2)))
    return g.add(g.one(*(name for name, since in _PLAIN.items() if since <= g.opset)), x)


def _convolved(g: Graph, x: str, outputs: int, kernel: tuple[int, int] = (1, 1), **attributes: Any) -> str:
    """A Conv, with BatchNormalization or a bias behind it."""
    group = attributes.get("group", 1)
    w = g.weight(outputs, g.shapes[x][1] // group, *kernel)
    normed = g.rarely()
    y = g.add("Conv", x, w, *([] if normed else [g.weight(outputs)]), **attributes)
    if normed:
        y = g.add("BatchNormalization", y, *(g.weight(outputs, positive=i == 3) for i in range(4)))
    return y


def conv(g: Graph) -> None:
    x = _map(g)
    kernel = g.one((1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (3, 1), (2, 2), (7, 7))
    dilation = g.one(1, 1, 1, 2)
    pads = [dilation * (k // 2) for k in kernel] * 2
    if g.rarely():
        pads = g.ints(4, 0, 2)
    stride = g.one(1, 1, 2, 3)
    channels = g.shapes[x][1]
    group = g.one(1, 1, 1, *(d for d in (2, 3) if channels % d == 0))
    outputs = group * g.int(1, 8 // group)
    y = _convolved(g, x, outputs, kernel, pads=pads, strides=[stride] * 2, dilations=[dilation] * 2, group=group)
    _activated(g, y)


def separable(g: Graph) -> None:
    """Depthwise, then pointwise, perhaps around the way of a residual."""
    x = _map(g)
    channels = g.shapes[x][1]
    y = x
    if g.int(0, 1):
        y = _activated(g, _convolved(g, y, channels * 2))
    wide = g.shapes[y][1]
    y = _activated(g, _convolved(g, y, wide, (3, 3), pads=[1] * 4, group=wide, strides=[g.one(1, 1, 2)] * 2))
    y = _convolved(g, y, channels)
    if g.shapes[y] == g.shapes[x]:
        g.add("Add", *g.one((x, y), (y, x)))


def pool(g: Graph) -> None:
    """Odd and even kernels and strides, rounding either way, padded on either side."""
    x = _map(g)
    kernel = g.one(2, 3, 3, 1, 5)
    attributes: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [g.one(1, 2, 2, 3)] * 2}
    attributes["pads"] = g.one([0] * 4, [kernel // 2] * 4, [0, 0, kernel // 2, kernel // 2])
    op = g.one("MaxPool", "MaxPool", "AveragePool")
    if g.opset >= 10:
        attributes["ceil_mode"] = g.int(0, 1)
    if op == "AveragePool":
        attributes["count_include_pad"] = g.int(0, 1)
    g.add(op, x, **attributes)


def pyramid(g: Graph) -> None:
    """Several poolings of one map joined with it (SPP)."""
    x = _map(g)
    pooled = [g.add("MaxPool", x, kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4) for k in (3, 5)]
    _activated(g, _convolved(g, g.add("Concat", x, *pooled, axis=1), 4))


def merge(g: Graph) -> None:
    """Maps of one shape added, multiplied or joined; a difference, the larger."""
    x = _map(g)
    y = g.fitting(g.shapes[x])
    op = g.one("Add", "Mul", "Concat", "Sub", *(("Max",) if g.opset >= 8 else ()))
    g.add(op, *g.one((x, y), (y, x)), **({"axis": g.one(1, 1, 2, 3)} if op == "Concat" else {}))


def excitation(g: Graph) -> None:
    """Squeeze-and-excitation, by Conv or by Gemm."""
    x = _map(g)
    channels = g.shapes[x][1]
    y = g.one(
        lambda: g.add("GlobalAveragePool", x),
        lambda: g.over("ReduceMean", x, [2, 3], 18, keepdims=1),
    )()
    if g.rarely():
        y = g.add("Reshape", y, g.indices(g.one(1, -1), channels))
        y = g.add("Relu", g.add("Gemm", y, g.weight(2, channels), g.weight(2), transB=1))
        y = g.add("Sigmoid", g.add("Gemm", y, g.weight(channels, 2), g.weight(channels), transB=1))
        y = g.add("Reshape", y, g.indices(1, channels, 1, 1))
    else:
        y = g.add("Relu", _convolved(g, y, 2))
        y = g.add(g.one("Sigmoid", "HardSigmoid"), _convolved(g, y, channels))
    g.add("Mul", *g.one((x, y), (y, x)))


def spotlight(g: Graph) -> None:
    """A spatial gate: mean and maximum over the channels, convolved."""
    x = _map(g)
    mean, most = (g.over(op, x, [1], 18, keepdims=1) for op in ("ReduceMean", "ReduceMax"))
    gate = g.add("Sigmoid", _convolved(g, g.add("Concat", mean, most, axis=1), 1, (3, 3), pads=[1] * 4))
    g.add("Mul", x, gate)


def neck(g: Graph) -> None:
    """A map brought to another one's size, then added or joined."""
    x, y = _map(g), _map(g)
    size = g.shapes[y][2:]
    g.need(g.opset >= 11, size != g.shapes[x][2:])
    mode, transform = g.one(
        ("nearest", "asymmetric"), ("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"),
        ("linear", "pytorch_half_pixel"), ("linear", "asymmetric"),
    )  # fmt: skip
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        attributes["nearest_mode"] = "floor"
    none = [""] * 2 if g.opset >= 13 else [g.constant(np.zeros(0, np.float32)) for _ in range(2)]
    up = g.add("Resize", x, *none, g.indices(1, g.shapes[x][1], *size), **attributes)
    if g.shapes[up] == g.shapes[y] and g.int(0, 1):
        g.add("Add", y, up)
    else:
        _activated(g, _convolved(g, g.add("Concat", up, y, axis=1), 3))


def enlarge(g: Graph) -> None:
    """Twice or three times the size, by Resize, Upsample or ConvTranspose."""
    x = _map(g)
    channels = g.shapes[x][1]
    factor = g.one(2, 2, 2, 3, 4)
    if g.int(0, 1):
        kernel = factor * g.one(1, 2)
        group = g.one(1, channels)
        w = g.weight(channels, g.int(1, 3), kernel, kernel)
        pads = [(kernel - factor) // 2] * 4
        g.add("ConvTranspose", x, w, kernel_shape=[kernel] * 2, strides=[factor] * 2, pads=pads, group=group)
        return
    g.scaled(x, [1, 1, factor, factor], g.one("nearest", "nearest", "linear"))


def halves(g: Graph) -> None:
    """Channels split, one half worked on, joined, dealt out anew (ShuffleNet), or one half unread."""
    x = _map(g)
    n, c, h, w = g.shapes[x]
    g.need(c % 2 == 0)
    first, second = g.halved(x, 1, c // 2)
    kept = g.one(first, second)
    worked = _activated(g, _convolved(g, first if kept == second else second, c // 2))
    if g.rarely():
        return
    joined = g.add("Concat", *g.one((kept, worked), (worked, kept)), axis=1)
    if g.int(0, 1):
        split = g.add("Reshape", joined, g.indices(n, 2, c // 2, h, w))
        g.add("Reshape", g.add("Transpose", split, perm=[0, 2, 1, 3, 4]), g.indices(g.one(n, -1), c, h, w))


def crop(g: Graph) -> None:
    """The edges of a map cut off, every second row, a map padded."""
    x = _map(g)
    height, width = g.shapes[x][2:]
    g.need(g.opset >= 10)
    begin = [g.int(0, 1), g.int(0, 1)]
    step = g.one([1, 1], [1, 1], [2, 2], [2, 1])
    end = [height - g.int(0, 1), width - g.int(0, 1)]
    g.add("Slice", x, g.indices(*begin), g.indices(*end), g.indices(2, 3), g.indices(*step))


def border(g: Graph) -> None:
    x = _map(g)
    pads = [0, 0, *g.ints(2, 0, 2), 0, 0, *g.ints(2, 0, 2)]
    mode = g.one("constant", "constant", "reflect", "edge")
    g.need(mode != "reflect" or min(g.shapes[x][2:]) > 2)
    y = g.add("Pad", x, g.indices(*pads), mode=mode) if g.opset >= 11 else g.add("Pad", x, pads=pads, mode=mode)
    if g.int(0, 1):
        g.add("Conv", y, g.weight(2, g.shapes[y][1], 3, 3))


def channels_last(g: Graph) -> None:
    """A map of the other order, as TensorFlow has it, worked on and turned back, or left."""
    x = g.add("Transpose", _map(g), perm=[0, 2, 3, 1])
    y = g.add("Add", x, g.weight(g.shapes[x][3]))
    if g.int(0, 1):
        y = g.add("Transpose", g.add("Relu", y), perm=[0, 3, 1, 2])
        _convolved(g, y, 2)
    else:
        g.add(g.one("Softmax", "Sigmoid"), y)


def standardised(g: Graph) -> None:
    """LayerNormalization over the channels of a map, as ConvNeXt has it, or a normalised vector per place."""
    x = _map(g)
    channels = g.shapes[x][1]
    g.need(channels >= 3)
    if g.int(0, 1):
        norm = g.add("Add", g.over("ReduceL2", x, [1], 18, keepdims=1), g.number(0.1))
        g.add("Div", x, norm)
        return
    centred = g.add("Sub", x, g.over("ReduceMean", x, [1], 18, keepdims=1))
    variance = g.over("ReduceMean", g.add("Mul", centred, centred), [1], 18, keepdims=1)
    normed = g.add("Div", centred, g.add("Sqrt", g.add("Add", variance, g.number(1e-2))))
    g.add("Mul", normed, g.weight(channels, 1, 1))


def classifier(g: Graph) -> None:
    """Pooled or flattened, one dense layer or two, perhaps probabilities."""
    x = _map(g)
    n, c, h, w = g.shapes[x]
    if g.int(0, 1):
        x = g.add("GlobalAveragePool", x)
        h = w = 1
    x = g.add("Flatten", x, axis=1) if g.int(0, 1) else g.add("Reshape", x, g.indices(n, g.one(-1, c * h * w)))
    if g.int(0, 1):
        x = _activated(g, g.add("Gemm", x, g.weight(4, c * h * w), g.weight(4), transB=1))
    x = g.add("Add", g.add("MatMul", x, g.weight(g.shapes[x][1], 3)), g.weight(3))
    if g.int(0, 1):
        g.add(g.one("Softmax", "Sigmoid", "LogSoftmax"), x)


def head(g: Graph) -> None:
    """Maps as lists of places, of one level or two joined: (1, places, channels) or (1, channels, places)."""
    levels = [_map(g) for _ in range(g.int(1, 2))]
    last, channels = g.int(0, 1), g.one(1, 2, 4)
    anchors = g.one(1, 1, 2)
    lists = [_listed(g, _convolved(g, x, anchors * channels), channels, anchors, last) for x in levels]
    joined = g.add("Concat", *lists, axis=2 - last) if len(lists) > 1 else lists[0]
    kind = g.int(0, 3)
    if kind == 0:
        g.add("Sigmoid", joined)
    elif kind == 1:
        g.add("Softmax", joined, axis=g.one(2 if last else 1, 2 if last else 1, 2))
    elif kind == 2 and channels == 4:
        _decoded(g, joined, last)


def _listed(g: Graph, x: str, channels: int, anchors: int, last: int) -> str:
    _, _, h, w = g.shapes[x]
    if anchors > 1:  # as YOLO has it
        split = g.add("Reshape", x, g.indices(1, anchors, channels, h, w))
        if last:
            turned = g.add("Transpose", split, perm=[0, 1, 3, 4, 2])
            return g.add("Reshape", turned, g.indices(1, -1, channels))
        return g.add("Reshape", g.add("Transpose", split, perm=[0, 2, 1, 3, 4]), g.indices(1, channels, -1))
    if not last:
        return g.add("Reshape", x, g.indices(1, channels, -1))
    if g.int(0, 1):
        return g.add("Reshape", g.add("Transpose", x, perm=[0, 2, 3, 1]), g.indices(1, -1, channels))
    return g.add("Transpose", g.add("Reshape", x, g.indices(g.one(0, 1), channels, -1)), perm=[0, 2, 1])


def _decoded(g: Graph, x: str, last: int) -> None:
    """Boxes from a grid and a stride, sizes by Exp."""
    axis = 2 if last else 1
    centre, size = g.halved(x, axis, 2)
    shape = g.shapes[centre]
    grid = g.constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7)
    centre = g.add("Mul", g.add("Add", centre, grid), g.number(g.one(2.0, 8.0)))
    size = g.add("Exp", g.add("Tanh", size)) if g.int(0, 1) else g.add("Mul", size, g.number(4.0))
    if g.int(0, 1):
        half = g.add("Mul", size, g.number(0.5))
        centre, size = g.add("Sub", centre, half), g.add("Add", centre, half)
    g.add("Concat", centre, size, axis=axis)


def integral(g: Graph) -> None:
    """The mean of a distribution over bins per side and place (DFL and GFL heads), four ways."""
    x = _map(g)
    _, _, h, w = g.shapes[x]
    bins = g.one(3, 4)
    x = _convolved(g, x, 4 * bins)
    ramp = np.arange(bins, dtype=np.float32)
    kind = g.int(0, 2)
    if kind == 0:
        g.need(g.opset >= 13)
        y = g.add("Reshape", x, g.indices(1, 4, bins, h * w))
        y = g.add("Softmax", g.add("Transpose", y, perm=[0, 2, 1, 3]), axis=1)
        y = g.add("Conv", y, g.constant(ramp.reshape(1, -1, 1, 1)))
        g.add("Reshape", y, g.indices(1, 4, h * w))
        return
    y = g.add("Reshape", g.add("Transpose", x, perm=[0, 2, 3, 1]), g.indices(*g.one((1, h * w, 4, bins), (-1, bins))))
    y = g.add("Softmax", y, axis=len(g.shapes[y]) - 1)
    if kind == 1:
        y = g.add("MatMul", y, g.constant(ramp.reshape(-1, 1)))
    else:
        y = g.over("ReduceSum", g.add("Mul", y, g.constant(ramp)), [len(g.shapes[y]) - 1], 13, keepdims=0)
    g.add("Reshape", y, g.indices(1, h * w, 4))


def sequence(g: Graph) -> None:
    """A map as a row of vectors, as text recognition reads it, and a dense layer over each."""
    x = g.add("ReduceMean", _map(g), axes=[2], keepdims=0) if g.opset < 18 else g.over("ReduceMean", _map(g), [2], 18)
    if len(g.shapes[x]) == 4:
        x = g.add("Reshape", x, g.indices(1, g.shapes[x][1], -1))
    y = g.add("Transpose", x, perm=g.one([0, 2, 1], [2, 0, 1]))
    y = g.add("Add", g.add("MatMul", y, g.weight(g.shapes[y][2], 3)), g.weight(3))
    g.add("Softmax", y, axis=2)


def pick_best(g: Graph) -> None:
    """The best class per place, the best places."""
    x = g.pick(2, 3, 4)
    if g.int(0, 1) or g.opset < 11:
        g.add("ArgMax", x, axis=1, keepdims=g.int(0, 1))
    else:
        g.many("TopK", x, g.indices(1), outputs=2, axis=len(g.shapes[x]) - 1)


def foreign(g: Graph) -> None:
    """What no Caffe layer does, mostly in the middle of the network."""
    x = _map(g)
    kind = g.int(0, 2)
    if kind == 0:
        y = g.add("Sin", x)
    elif kind == 1:
        g.need(g.opset >= 11)
        y = g.add("CumSum", x, g.constant(np.int64(g.int(1, 3))))
    else:
        g.need(g.opset >= 16)
        grid = g.add("Transpose", g.add("Tanh", _convolved(g, x, 2)), perm=[0, 2, 3, 1])
        y = g.add("GridSample", x, grid, shape=g.shapes[x])
    if g.int(0, 3):
        _activated(g, _convolved(g, y, 4, (3, 3), pads=[1] * 4))


def colour(g: Graph) -> None:
    """Channels of a picture turned round, scaled, less their means."""
    x = g.one(*g.inputs)
    shape = g.shapes[x]
    g.need(len(shape) == 4)
    last = shape[3] in (1, 3) and shape[1] not in (1, 3)
    if last:
        x = g.add("Transpose", x, perm=[0, 3, 1, 2])
    channels = g.shapes[x][1]
    for step in g.one("scale mean scale", "mean scale", "scale", "turn mean", "turn", "mean").split():
        if step == "scale":
            x = g.add("Mul", x, g.number(1 / 58)) if g.int(0, 1) else g.add("Div", x, g.weight(channels, 1, 1))
        elif step == "mean":
            x = g.add(g.one("Sub", "Add"), x, g.weight(channels, 1, 1))
        else:
            x = g.add("Gather", x, g.constant(np.arange(channels)[::-1].copy()), axis=1)
    _activated(g, _convolved(g, x, 4, (3, 3), pads=[1] * 4, strides=[g.one(1, 2)] * 2))


def stem(g: Graph) -> None:
    """The first convolution of an input."""
    x = g.inputs[-1]
    shape = g.shapes[x]
    if len(shape) == 2:
        g.add("Relu", g.add("Gemm", x, g.weight(4, shape[1]), g.weight(4), transB=1))
        return
    if len(shape) == 4 and shape[3] < shape[1]:
        x = g.add("Transpose", x, perm=[0, 3, 1, 2])
    kernel = g.one(3, 3, 5)
    y = _convolved(g, x, g.one(4, 6, 8), (kernel, kernel), pads=[kernel // 2] * 4, strides=[g.one(1, 2)] * 2)
    _activated(g, y)


STEMS: tuple[Maker, ...] = (stem, stem, colour)
MAKERS: tuple[Maker, ...] = (
    conv, conv, conv, conv, separable, separable, pool, pool, pool, pyramid, merge, merge, excitation, spotlight, neck,
    neck, enlarge, enlarge, halves, crop, border, channels_last, standardised, classifier, head, head, head, integral,
    sequence, pick_best, foreign, foreign, idioms.shuffle, idioms.focus, idioms.pixel_shuffle, idioms.self_gate,
)  # fmt: skip
