"""Makers of what exporters and networks write in several nodes, which passes rewrite as one."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.fuzz.graph import Graph, Maker

__all__ = ["MAKERS"]


def shuffle(g: Graph) -> None:
    """Channels dealt out anew: Reshape, Transpose, Reshape."""
    x = g.pick(3, 4)
    n, c, *rest = g.shapes[x]
    group = g.one(2, 3)
    g.need(c % group == 0)
    split = g.add("Reshape", x, g.indices(n, group, c // group, *rest))
    turned = g.add("Transpose", split, perm=[0, 2, 1, *range(3, 3 + len(rest))])
    g.add("Reshape", turned, g.indices(n, c, *rest))


def focus(g: Graph) -> None:
    """Every second pixel of both axes, four times, joined."""
    x = g.pick(4)
    height, width = g.shapes[x][2:]
    g.need(height % 2 == 0, width % 2 == 0, g.opset >= 10)
    starts = g.one([(0, 0), (1, 0), (0, 1), (1, 1)], [(0, 0), (0, 1), (1, 0), (1, 1)])
    last = g.indices(height, width)
    axes, steps = g.indices(2, 3), g.indices(2, 2)
    parts = [g.add("Slice", x, g.indices(*start), last, axes, steps) for start in starts]
    joined = g.add("Concat", *parts, axis=1)
    if g.int(0, 1):
        g.add("Conv", joined, g.weight(2, g.shapes[joined][1], 3, 3), pads=[1, 1, 1, 1])


def pixel_shuffle(g: Graph) -> None:
    """Depth to space as Reshape, six-axis Transpose, Reshape, in either order of channels."""
    x = g.pick(4)
    n, c, h, w = g.shapes[x]
    g.need(c % 4 == 0)
    crd = g.int(0, 1)
    split = g.add("Reshape", x, g.indices(n, c // 4, 2, 2, h, w) if crd else g.indices(n, 2, 2, c // 4, h, w))
    turned = g.add("Transpose", split, perm=[0, 1, 4, 2, 5, 3] if crd else [0, 3, 4, 1, 5, 2])
    g.add("Reshape", turned, g.indices(n, c // 4, h * 2, w * 2))


def windows(g: Graph) -> None:
    """A map cut into windows of 2 × 2, as window attention has it."""
    x = g.pick(4)
    n, c, h, w = g.shapes[x]
    g.need(h % 2 == 0, w % 2 == 0)
    split = g.add("Reshape", x, g.indices(n, c, h // 2, 2, w // 2, 2))
    turned = g.add("Transpose", split, perm=[0, 2, 4, 3, 5, 1])
    g.add("Reshape", turned, g.indices(-1, 4, c))


def hard_swish(g: Graph) -> None:
    x = g.pick()
    shifted = g.add("Add", x, g.number(3.0))
    bounded = g.clip(shifted, 0.0, 6.0)
    if g.int(0, 1):
        g.add("Mul", x, g.add("Div", bounded, g.number(6.0)))
    else:
        g.add("Div", g.add("Mul", x, bounded), g.number(6.0))


def gelu(g: Graph) -> None:
    x = g.pick()
    if g.int(0, 1) and g.opset >= 9:
        erf = g.add("Erf", g.add("Div", x, g.number(2**0.5)))
        half = g.add("Mul", x, g.add("Add", erf, g.number(1.0)))
        g.add("Mul", half, g.number(0.5))
        return
    cube = g.add("Mul", g.add("Pow", x, g.number(3.0)), g.number(0.044715))
    inner = g.add("Mul", g.add("Add", x, cube), g.number((2 / np.pi) ** 0.5))
    half = g.add("Mul", x, g.number(0.5))
    g.add("Mul", half, g.add("Add", g.add("Tanh", inner), g.number(1.0)))


def self_gate(g: Graph) -> None:
    """SiLU, Mish and their like: x times a function of x."""
    x = g.pick()
    inner = g.one(("Sigmoid",), ("Softplus", "Tanh"), ("HardSigmoid",), ("Tanh",), ("Relu",))
    gate = x
    for op in inner:
        gate = g.add(op, gate)
    g.add("Mul", *g.one((x, gate), (gate, x)))


def layer_norm(g: Graph) -> None:
    """LayerNormalization over the tail or the channels, by means."""
    x = g.pick(2, 3, 4)
    rank = len(g.shapes[x])
    axes = g.one([-1], [1], list(range(1, rank)))
    axes = axes if g.opset >= 11 else [a % rank for a in axes]
    g.need(int(np.prod([g.shapes[x][a] for a in axes])) >= 3)
    centred = g.add("Sub", x, g.over("ReduceMean", x, axes, 18, keepdims=1))
    squares = g.add("Pow", centred, g.number(2.0)) if g.int(0, 1) else g.add("Mul", centred, centred)
    variance = g.add("Add", g.over("ReduceMean", squares, axes, 18, keepdims=1), g.number(1e-2))
    normed = g.add("Div", centred, g.add("Sqrt", variance))
    if axes in ([-1], [rank - 1]):
        scaled = g.add("Mul", normed, g.weight(g.shapes[x][-1]))
        g.add("Add", scaled, g.weight(g.shapes[x][-1]))


def group_norm(g: Graph) -> None:
    """GroupNormalization as torch writes it: InstanceNormalization of a Reshape."""
    x = g.pick(4)
    n, c, h, w = g.shapes[x]
    group = g.one(*(d for d in range(1, c + 1) if c % d == 0))
    g.need(c // group * h * w >= 3)
    merged = g.add("Reshape", x, g.indices(0, group, -1))
    ones, zeros = np.ones(group, np.float32), np.zeros(group, np.float32)
    normed = g.add("InstanceNormalization", merged, g.constant(ones), g.constant(zeros), epsilon=1e-2)
    back = g.add("Reshape", normed, g.indices(n, c, h, w))
    g.add("Add", g.add("Mul", back, g.weight(c, 1, 1)), g.weight(c, 1, 1))


def l2_norm(g: Graph) -> None:
    x = g.pick(2, 3, 4)
    axis = g.axis(x)
    g.need(g.shapes[x][axis] > 1)
    norm = g.over("ReduceL2", x, [axis], 18, keepdims=1)
    norm = g.clip(norm, 0.1, 1e9) if g.int(0, 1) else g.add("Add", norm, g.number(0.1))
    if g.opset >= 8 and g.int(0, 1):
        norm = g.add("Expand", norm, g.indices(*g.shapes[x]))
    g.add("Div", x, norm)


def conv_chain(g: Graph) -> None:
    """Convolution, BatchNormalization, affine constants and activation, with or without what stands in front."""
    x = g.pick(4)
    channels = g.shapes[x][1]
    if g.int(0, 1):
        g.need(g.opset >= 11)
        x = g.add("Pad", x, g.indices(0, 0, *g.ints(2, 0, 2), 0, 0, *g.ints(2, 0, 2)))
    if g.rarely():
        x = g.add("Mul", x, g.weight(channels, 1, 1))
    outputs = g.int(1, 4)
    kernel = g.int(1, 3)
    y = g.add("Conv", x, g.weight(outputs, channels, kernel, kernel), pads=g.ints(4, 0, 1))
    chains = ("norm mul add", "norm", "add norm", "mul norm add", "norm mul mul")
    for step in g.one(*chains).split():
        if step == "norm":
            y = g.add("BatchNormalization", y, *(g.weight(outputs, positive=i == 3) for i in range(4)))
        else:
            shape = g.one((outputs, 1, 1), (1, outputs, 1, 1), (1,), ())
            y = g.add(step.capitalize(), y, g.weight(*shape))
    g.add(g.one("Relu", "LeakyRelu", "Sigmoid"), y)


def dense_chain(g: Graph) -> None:
    """Gemm or MatMul with BatchNormalization or affine constants around it."""
    x = g.pick(2)
    inner, outputs = g.shapes[x][1], g.int(1, 4)
    if g.rarely():
        x = g.add("Mul", x, g.weight(inner))
    if g.int(0, 1):
        y = g.add("Gemm", x, g.weight(outputs, inner), g.weight(outputs), transB=1)
    else:
        y = g.add("Add", g.add("MatMul", x, g.weight(inner, outputs)), g.weight(outputs))
    if g.int(0, 1):
        g.add("BatchNormalization", y, *(g.weight(outputs, positive=i == 3) for i in range(4)))
    else:
        g.add("Mul", y, g.weight(*g.one((outputs,), ())))


def shared_weights(g: Graph) -> None:
    """Two Convs of one kernel, one of them followed by what a pass would fold into it."""
    x = g.pick(4)
    channels, outputs = g.shapes[x][1], g.int(1, 3)
    w = g.weight(outputs, channels, 1, 1)
    first = g.add("Conv", x, w)
    g.add("Mul", first, g.weight(outputs, 1, 1))
    g.add("Conv", g.fitting(g.shapes[x]), w, strides=[2, 2])


def branches(g: Graph) -> None:
    """Parallel Convs summed (RepVGG), one of them perhaps read elsewhere."""
    x = g.pick(4)
    channels = g.shapes[x][1]
    wide = g.add("Conv", x, g.weight(channels, channels, 3, 3), pads=[1, 1, 1, 1])
    thin = g.add("Conv", x, g.weight(channels, channels, 1, 1))
    total = g.add("Add", wide, thin)
    if g.int(0, 1):
        total = g.add("Add", total, g.one(x, thin))
    g.add("Relu", total)


def islands(g: Graph) -> None:
    """Element-wise work between a transposition and its inverse."""
    x = g.pick(3, 4)
    rank = len(g.shapes[x])
    perm = g.permutation(rank)
    y = g.add("Transpose", x, perm=perm)
    for _ in range(g.int(1, 3)):
        kind = g.int(0, 3)
        if kind == 0:
            y = g.add("Relu", y)
        elif kind == 1:
            y = g.add("Mul", y, g.weight(g.shapes[y][-1]))
        elif kind == 2:
            y = g.add("Add", y, g.fitting(g.shapes[y]))
        else:
            y = g.add("Concat", y, y, axis=g.int(0, rank - 1))
    g.add("Transpose", y, perm=[perm.index(i) for i in range(rank)])


def channels_last(g: Graph) -> None:
    """A product over the channels of a map as channels-last networks have it."""
    x = g.pick(4)
    y = g.add("Transpose", x, perm=[0, 2, 3, 1])
    channels = g.shapes[x][1]
    y = g.add("Add", g.add("MatMul", y, g.weight(channels, channels)), g.weight(channels))
    y = g.add(g.one("Relu", "Sigmoid"), y)
    g.add("Transpose", y, perm=[0, 3, 1, 2])


def gate(g: Graph) -> None:
    """Squeeze-and-excitation or a spatial gate."""
    x = g.pick(4)
    axes = g.one([2, 3], [1], [1, 2, 3], [2], [0, 2, 3])
    pooled = g.over("ReduceMean", x, axes, 18, keepdims=1)
    if axes == [2, 3] and g.int(0, 1):
        pooled = g.add("Conv", pooled, g.weight(g.shapes[x][1], g.shapes[x][1], 1, 1))
    gate = g.add(g.one("Sigmoid", "HardSigmoid"), pooled)
    g.add("Mul", *g.one((x, gate), (gate, x)))


def attention(g: Graph) -> None:
    """Softmax(Q Kᵀ / √d) V over the last two axes."""
    x = g.pick(3)
    _, tokens, size = g.shapes[x]
    g.need(tokens <= 8)
    q, k, v = (g.add("MatMul", x, g.weight(size, 2)) for _ in range(3))
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 2, 1]))
    if g.int(0, 1):
        scores = g.add("Div", scores, g.number(2**0.5))
    if g.rarely():
        scores = g.add("Add", scores, g.weight(tokens, tokens))
    g.add("MatMul", g.add("Softmax", scores, axis=2), v)


def distribution(g: Graph) -> None:
    """The expectation over a softmax (DFL heads)."""
    x = g.pick(3)
    n, c, anchors = g.shapes[x]
    g.need(c % 2 == 0)
    split = g.add("Reshape", x, g.indices(n, 2, c // 2, anchors))
    probabilities = g.add("Softmax", g.add("Transpose", split, perm=[0, 2, 1, 3]), axis=1)
    weights = np.arange(c // 2, dtype=np.float32).reshape(1, -1, 1, 1)
    g.need(g.opset >= 13)
    g.add("Conv", probabilities, g.constant(weights))


def one_hot(g: Graph) -> None:
    """The largest channel as ones and zeros."""
    x = g.pick(2, 3, 4)
    found = g.add("ArgMax", x, axis=1, keepdims=0)
    g.need(g.opset >= 9)
    values = g.constant(np.array([0.0, 1.0], np.float32))
    g.add("OneHot", found, g.constant(np.int64(g.shapes[x][1])), values, axis=1)


def lookup(g: Graph) -> None:
    """A constant table read at computed indices."""
    x = g.pick(2, 3, 4)
    axis = g.axis(x)
    found = g.add("ArgMax", x, axis=axis, keepdims=0)
    g.add("Gather", g.weight(g.shapes[x][axis], 2), found, axis=0)


def half_way(g: Graph) -> None:
    """A trip through float64, or a cast to what it is."""
    x = g.pick()
    wide = g.add("Cast", x, to=g.one(TensorProto.DOUBLE, TensorProto.FLOAT))
    g.add("Cast", wide, to=TensorProto.FLOAT)


MAKERS: tuple[Maker, ...] = (
    shuffle, focus, pixel_shuffle, windows, hard_swish, gelu, self_gate, layer_norm, group_norm, l2_norm, conv_chain,
    conv_chain, dense_chain, shared_weights, branches, islands, islands, channels_last, gate, attention, distribution,
    one_hot, lookup, half_way,
)  # fmt: skip
