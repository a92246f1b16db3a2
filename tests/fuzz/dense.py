"""Makers of products, reductions, softmaxes, selections by value and recurrent nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from tests.fuzz.graph import Graph, Maker

__all__ = ["MAKERS"]


def matmul(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4)
    shape = g.shapes[x]
    kind = g.int(0, 3)
    if kind == 0:
        g.need(len(shape) >= 2)
        g.add("MatMul", g.weight(g.int(1, 4), shape[-2]), x)
    elif kind == 1:
        mates = [n for n, s in g.shapes.items() if len(s) > 1 and s[-2] == shape[-1]]
        g.need(mates)
        g.add("MatMul", x, g.one(*mates))
    elif kind == 2 and len(shape) > 2:
        g.add("MatMul", x, g.weight(*shape[:-2], shape[-1], g.int(1, 4)))
    else:
        g.add("MatMul", x, g.weight(shape[-1], *g.one((g.int(1, 4),), ())))


def square(g: Graph) -> None:
    """x · xᵀ, as attention and Gram matrices have it."""
    x = g.pick(2, 3, 4)
    rank = len(g.shapes[x])
    turned = g.add("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])
    g.add("MatMul", *g.one((x, turned), (turned, x)))


def gemm(g: Graph) -> None:
    x = g.pick(2)
    trans_a, trans_b, outputs = g.int(0, 1), g.int(0, 1), g.int(1, 4)
    rows, inner = g.shapes[x][::-1] if trans_a else g.shapes[x]
    w = g.weight(outputs, inner) if trans_b else g.weight(inner, outputs)
    attributes = {"alpha": g.one(1.0, 0.5), "beta": g.one(1.0, 2.0), "transA": trans_a, "transB": trans_b}
    bias = g.one((outputs,), (1, outputs), (1,), (rows, 1), (rows, outputs), None)
    g.need(bias is not None or g.opset >= 11)
    g.add("Gemm", x, w, *([] if bias is None else [g.weight(*bias)]), **attributes)


def einsum(g: Graph) -> None:
    g.need(g.opset >= 12)
    rank = g.int(1, 4)
    x = g.pick(rank)
    shape = g.shapes[x]
    letters = "abcd"[:rank]
    if g.int(0, 1):
        kept = "".join(letters[i] for i in g.permutation(rank)[: g.int(1, rank)])
        g.add("Einsum", x, equation=f"{letters}->{kept}")
        return
    if g.rarely():
        fellow = g.fitting(shape)
        g.add("Einsum", x, fellow, equation=f"{letters},{letters}->{letters[: g.int(0, rank)]}")
        return
    shared = g.int(0, rank - 1)
    others = "".join(c for i, c in enumerate(letters) if i != shared)
    w = g.weight(shape[shared], g.int(1, 3))
    g.add("Einsum", x, w, equation=f"{letters},{letters[shared]}z->{g.one(others + 'z', 'z' + others)}")


_REDUCTIONS = (
    "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd",
    "ReduceLogSumExp",
)  # fmt: skip


def reduce(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    rank = len(g.shapes[x])
    op = g.one(*_REDUCTIONS)
    keepdims = g.int(0, 1)
    if g.rarely():
        noop = {"noop_with_empty_axes": 1} if g.opset >= 18 and g.rarely() else {}
        g.add(op, x, keepdims=keepdims, **noop)
        return
    axes = g.some(range(rank))
    if g.opset >= 11 and g.int(0, 1):
        axes = [a - rank for a in axes]
    g.over(op, x, axes, 13 if op == "ReduceSum" else 18, keepdims=keepdims)


def softmax(g: Graph) -> None:
    op = g.one("Softmax", "Softmax", "LogSoftmax", "Hardmax")
    x = g.pick(1, 2, 3, 4, 5)
    g.add(op, x, axis=g.axis(x))


def arg(g: Graph) -> None:
    """The position of an extreme, as an integer output or back as a number."""
    x = g.pick(1, 2, 3, 4)
    attributes: dict[str, Any] = {"axis": g.axis(x), "keepdims": g.int(0, 1)}
    if g.opset >= 12:
        attributes["select_last_index"] = g.int(0, 1)
    found = g.add(g.one("ArgMax", "ArgMax", "ArgMin"), x, **attributes)
    if g.int(0, 1):
        g.add("Cast", found, to=TensorProto.FLOAT)


def top(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4)
    axis = g.axis(x)
    k = g.int(1, min(3, g.shapes[x][axis]))
    if g.opset < 10:
        g.many("TopK", x, outputs=2, axis=axis, k=k)
    else:
        largest = {"largest": g.int(0, 1)} if g.opset >= 11 else {}
        g.many("TopK", x, g.indices(k), outputs=2, axis=axis, **largest)


def cumulate(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4)
    g.need(g.opset >= 11)
    axis = g.constant(np.int64(g.axis(x)))
    g.add("CumSum", x, axis, exclusive=g.int(0, 1), reverse=g.int(0, 1))


def recurrent(g: Graph) -> None:
    x = g.pick(3)
    time, batch, size = g.shapes[x]
    op, gates = g.one(("RNN", 1), ("GRU", 3), ("LSTM", 4))
    direction, count = g.one(("forward", 1), ("reverse", 1), ("bidirectional", 2))
    hidden = g.int(1, 3)
    w, r = g.weight(count, gates * hidden, size), g.weight(count, gates * hidden, hidden)
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = g.int(0, 1)
    g.need(time <= 5)
    bias = g.one("", g.weight(count, 2 * gates * hidden))
    initial = g.one("", "", g.weight(count, batch, hidden))
    g.many(op, x, w, r, bias, "", initial, outputs=g.int(1, 2), **attributes)


MAKERS: tuple[Maker, ...] = (
    matmul, matmul, matmul, square, gemm, einsum, reduce, reduce, reduce, softmax, softmax, arg, top, cumulate,
    recurrent,
)  # fmt: skip
