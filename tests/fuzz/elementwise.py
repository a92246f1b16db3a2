"""Makers of element-wise nodes: activations, arithmetic with one, two and more operands, comparisons and choices."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.fuzz.graph import Graph, Maker

__all__ = ["MAKERS"]

_ACTIVATIONS = {
    "Relu": 6, "Sigmoid": 6, "Tanh": 6, "Neg": 6, "Abs": 6, "LeakyRelu": 6, "Elu": 6, "Selu": 6, "Softplus": 1,
    "Softsign": 1, "HardSigmoid": 6, "HardSwish": 14, "Mish": 18, "Gelu": 20, "Celu": 12, "Swish": 24, "Erf": 9,
    "Sign": 9, "Shrink": 9, "ThresholdedRelu": 10, "Sinh": 9, "Asinh": 9,
}  # fmt: skip
_ATTRIBUTES = {
    "LeakyRelu": {"alpha": (0.1, 0.01, 1.5)},
    "Elu": {"alpha": (1.0, 0.5)},
    "Celu": {"alpha": (1.0, 2.0)},
    "HardSigmoid": {"alpha": (0.2, 0.25), "beta": (0.5, 0.4)},
    "Gelu": {"approximate": ("none", "tanh")},
    "Swish": {"alpha": (1.0, 1.5)},
    "Shrink": {"lambd": (0.5, 0.2), "bias": (0.0, 0.5)},
    "ThresholdedRelu": {"alpha": (1.0, 0.3)},
}


def activation(g: Graph) -> None:
    op = g.one(*(name for name, since in _ACTIVATIONS.items() if since <= g.opset))
    g.add(op, g.pick(), **{key: g.one(*options) for key, options in _ATTRIBUTES.get(op, {}).items()})


def clip(g: Graph) -> None:
    x = g.pick()
    low = -g.int(-1, 2) * 0.5
    high = low + g.int(1, 6) * 0.5
    if g.opset < 11:
        bounds = g.one({"min": low, "max": high}, {"min": low}, {"max": high})
        g.add("Clip", x, **bounds)
        return
    kind = g.int(0, 3)
    bounds = [g.number(low) if kind != 1 else "", *([g.number(high)] if kind != 2 else [])]
    g.add("Clip", x, *bounds)


def prelu(g: Graph) -> None:
    x = g.pick(2, 3, 4, 5)
    shape = g.shapes[x]
    slopes = g.one((shape[1],) + (1,) * (len(shape) - 2), (1,), shape[1:], (1, *shape[1:]), (shape[-1],))
    g.need(g.opset >= 9 or slopes != shape)
    g.add("PRelu", x, g.weight(*slopes))


def roots(g: Graph) -> None:
    """Functions with a bounded domain, on values inside it."""
    x = g.add("Abs", g.pick())
    kind = g.int(0, 5)
    if kind == 0:
        g.add("Sqrt", x)
    elif kind == 1:
        g.add("Log", g.add("Add", x, g.number(0.5)))
    elif kind == 2:
        g.add("Exp", g.add("Neg", x))
    elif kind == 3:
        g.add("Reciprocal", g.add("Add", x, g.number(1.0)))
    elif kind == 4:
        g.need(g.opset >= 7)
        g.add("Pow", g.add("Add", x, g.number(0.5)), g.number(g.one(0.5, 1.5, -1.0, -0.5)))
    else:
        g.add("Div", g.pick(), g.add("Add", g.fitting(g.shapes[x]), g.number(50.0)))


def power(g: Graph) -> None:
    x = g.pick()
    g.add("Pow", x, g.one(g.number(2.0), g.number(3.0), g.constant(np.array([2.0], np.float32))))


def binary(g: Graph) -> None:
    a = g.pick()
    fitting = [n for n, s in g.shapes.items() if _broadcasts(s, g.shapes[a])]
    b = g.one(*fitting[-4:], *fitting)
    g.add(g.one("Add", "Add", "Sub", "Mul", *(("Max", "Min") if g.opset >= 8 else ())), *g.one((a, b), (b, a)))


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(p == q or 1 in (p, q) for p, q in zip(a[::-1], b[::-1], strict=False))


def many(g: Graph) -> None:
    a = g.pick()
    op = g.one("Sum", "Mean", "Max", "Min")
    fitting = [n for n, s in g.shapes.items() if (_broadcasts(s, g.shapes[a]) if g.opset >= 8 else s == g.shapes[a])]
    g.add(op, a, *(g.one(*fitting) for _ in range(g.int(0, 2))))


def with_constant(g: Graph) -> None:
    x = g.pick()
    shape = g.shapes[x]
    op = g.one("Add", "Sub", "Mul", "Div", *(("Max", "Min") if g.opset >= 8 else ()))
    k = g.weight(*_partial(g, shape), positive=op == "Div")
    g.add(op, *((x, k) if op == "Div" else g.one((x, k), (k, x))))


def _partial(g: Graph, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `shape`, or now and then makes it larger."""
    kept = tuple(d if g.int(0, 1) else 1 for d in shape)
    if g.rarely():
        kept = tuple(g.int(2, 3) if d == 1 and g.rarely() else d for d in kept)
        return (1, *kept) if len(kept) < 5 and g.rarely() else kept
    return g.one(kept, kept[g.int(0, len(shape)) :], shape)


def choose(g: Graph) -> None:
    """Where over a comparison with a constant, or over a constant mask."""
    x = g.pick()
    shape = g.shapes[x]
    g.need(g.opset >= 9)
    condition = g.constant(g.noise(*_partial(g, shape)) > 0) if g.int(0, 1) else _comparison(g, x)
    other = g.one(g.number(g.one(0.0, -1e4, 2.0)), g.fitting(shape), g.weight(*shape))
    g.add("Where", condition, *g.one((x, other), (other, x)))


def _comparison(g: Graph, x: str) -> str:
    """With a constant: how tensors of one source compare depends on how they were rounded."""
    op = g.one("Greater", "Less", *(("GreaterOrEqual", "LessOrEqual") if g.opset >= 12 else ()))
    y = g.one(g.number(g.one(0.0, 0.3)), g.number(0.0), g.weight(*_partial(g, g.shapes[x])))
    return g.add(op, *g.one((x, y), (y, x)))


def mask(g: Graph) -> None:
    """A comparison, logic on it, and back to numbers."""
    condition = _comparison(g, g.pick())
    if g.int(0, 1):
        condition = g.add("Not", condition)
    if g.rarely():
        fellow = _comparison(g, g.pick())
        condition = g.add(g.one("And", "Or", "Xor"), condition, fellow)
    g.add("Cast", condition, to=TensorProto.FLOAT)


def scalar(g: Graph) -> None:
    """A rank-0 tensor."""
    x = g.pick(1, 2, 3, 4)
    rank = len(g.shapes[x])
    g.over(g.one("ReduceMean", "ReduceMax"), x, list(range(rank)), 18, keepdims=0)


def whole(g: Graph) -> None:
    """Integer arithmetic on a position, and back to numbers."""
    x = g.pick(2, 3, 4)
    axis = g.axis(x)
    found = g.add("ArgMax", x, axis=axis, keepdims=1)
    if g.int(0, 1):
        found = g.add(g.one("Add", "Mul", "Sub"), found, g.indices(g.int(1, 3)))
    elif g.opset >= 10:
        found = g.add("Mod", found, g.indices(g.int(2, 3)))
    if g.opset >= 11 and g.int(0, 1):
        g.add("Where", g.add("Equal", found, g.indices(1)), x, g.number(0.0))
    g.add("Cast", found, to=TensorProto.FLOAT)


def rounding(g: Graph) -> None:
    """Steps of bounded values."""
    x = g.add("Sigmoid", g.pick())
    scaled = g.add("Mul", x, g.number(g.one(3.0, 4.5)))
    g.add(g.one("Floor", "Ceil", *(("Round",) if g.opset >= 11 else ())), scaled)


def microsoft(g: Graph) -> None:
    """Ops that onnxruntime's own optimiser leaves."""
    x = g.pick(2, 3)
    op = g.one("QuickGelu", "BiasGelu", "FastGelu", "FusedMatMul", "FusedGemm", "Gelu")
    shape = g.shapes[x]
    domain = {"domain": "com.microsoft"}
    if op == "FusedMatMul":
        w = g.weight(shape[-1], 3)
        g.add(op, x, w, shape=(*shape[:-1], 3), alpha=0.5, **domain)
    elif op == "FusedGemm":
        g.need(len(shape) == 2)
        g.add(op, x, g.weight(shape[-1], 3), g.weight(3), shape=(shape[0], 3), activation="Relu", **domain)
    elif op in ("BiasGelu", "FastGelu"):
        g.add(op, x, g.weight(shape[-1]), shape=shape, **domain)
    else:
        g.add(op, x, shape=shape, **domain)


MAKERS: tuple[Maker, ...] = (
    activation, activation, activation, clip, prelu, roots, roots, power, binary, binary, binary, many, with_constant,
    with_constant, with_constant, choose, mask, scalar, whole,
    rounding, microsoft,
)  # fmt: skip
