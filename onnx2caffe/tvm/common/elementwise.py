"""Arithmetic and activations that are one operator of the same name in both dialects."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_SAME = {
    "Add": "add",
    "Ceil": "ceil",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Mul": "multiply",
    "Neg": "negative",
    "Sigmoid": "sigmoid",
    "Sqrt": "sqrt",
    "Sub": "subtract",
    "Tanh": "tanh",
}


@emits(BOTH, *_SAME)
def _same(op: Op, net: Net) -> Value:
    """The operator with ONNX's meaning."""
    return net(_SAME[op.type], *op.values)


@emits(BOTH, "Div")
def divide(op: Op, net: Net) -> Value:
    """Integers are divided towards zero in both worlds, by a constant 0 in neither; TVM refuses floats by it too."""
    divisor = op.const(1)
    if divisor is not None and not divisor.all():
        if divisor.dtype.kind != "f":
            raise Refused("integer division by zero")
        if divisor.size == 1:
            return net("multiply", op.value(0), net.const(np.copysign(np.inf, divisor)))
    return net("divide", *op.values)


@emits(BOTH, "Sum", "Mean")
def total(op: Op, net: Net) -> Value:
    """Any number of operands, two by two."""
    found = reduce(partial(net, "add"), op.values)
    return net("divide", found, net.like(len(op), found)) if op.type == "Mean" else found


@emits(BOTH, "Max", "Min")
def extreme(op: Op, net: Net) -> Value:
    """Any number of operands, two by two."""
    return reduce(net.greater if op.type == "Max" else net.lesser, op.values)


@emits(BOTH, "Relu")
def relu(op: Op, net: Net) -> Value:
    """`maximum`, which keeps a NaN."""
    return net.relu(op.value())


@emits(BOTH, "Sign")
def sign(op: Op, net: Net) -> Value:
    """-1, 0 or 1; TVM says 0 of a NaN."""
    x = op.value()
    found = net("sign", x)
    return found if np.dtype(x.dtype).kind != "f" else net.unless_nan(x, found)


@emits(BOTH, "Abs")
def absolute(op: Op, net: Net) -> Value:
    """The greater of x and -x."""
    return net.absolute(op.value())


@emits(BOTH, "Reciprocal")
def reciprocal(op: Op, net: Net) -> Value:
    """1 / x."""
    x = op.value()
    return net("divide", net.like(1, x), x)


@emits(BOTH, "Round")
def rounded(op: Op, net: Net) -> Value:
    """Halves to the even neighbour."""
    return net.round_half_even(op.value())


@emits(BOTH, "Pow")
def power(op: Op, net: Net) -> Value:
    """Squares are products; integers are raised in float64, as onnxruntime does."""
    x, exponent = op.value(0), op.value(1)
    if exponent.array is not None and exponent.array.size == 1 and exponent.array == 2:
        square = net("multiply", x, x)
        return net.broadcast(square, op.outputs[0])
    kind = x.dtype if np.dtype(x.dtype).kind == "f" else "float64"
    return net.cast(net("power", net.cast(x, kind), net.cast(exponent, kind)), x.dtype)


@emits(BOTH, "Where")
def where(op: Op, net: Net) -> Value:
    """A choice, element by element."""
    return net("where", *op.values, dtype=op.value(1).dtype)


@emits(BOTH, "Cast")
def cast(op: Op, net: Net) -> Value:
    """TVM casts as C does: towards zero, integers wrap."""
    return net.cast(op.value(), op.types[0].dtype)
