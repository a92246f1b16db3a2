"""Activations."""

from __future__ import annotations

import math

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__ = ["above", "below", "exponential", "ramp", "softplus_of", "softsign_of"]


@emits(BOTH, "Clip")
def clip(op: Op, net: Net) -> Value:
    """The greater of `x` and the lower bound, then the lesser: where the bounds cross, the upper one wins.

    TVM takes the second operand where the two do not compare: so a NaN stays, and a bound that is one bounds nothing.
    """
    x = op.value()
    for index, fn in ((1, "maximum"), (2, "minimum")):
        bound = op.optional(index)
        x = x if bound is None else net(fn, bound, x)
    return x


@emits(BOTH, "PRelu")
def prelu(op: Op, net: Net) -> Value:
    """A slope of any shape that broadcasts; TVM's own takes one per channel."""
    x = op.value()
    return below(net, x, 0, net("multiply", x, op.value(1)), x)


@emits(BOTH, "Elu")
def elu(op: Op, net: Net) -> Value:
    """`alpha · (exp(x) - 1)` below 0."""
    x = op.value()
    return below(net, x, 0, exponential(net, x, op.attribute("alpha")), x)


@emits(BOTH, "Selu")
def selu(op: Op, net: Net) -> Value:
    """Elu times `gamma`."""
    x = op.value()
    curve = exponential(net, x, op.attribute("alpha"))
    return net("multiply", below(net, x, 0, curve, x), net.like(op.attribute("gamma"), x))


@emits(BOTH, "Celu")
def celu(op: Op, net: Net) -> Value:
    """`max(0, x) + min(0, alpha · (exp(x / alpha) - 1))`."""
    x, alpha = op.value(), op.attribute("alpha")
    if alpha == 0:
        raise Refused("alpha = 0")
    curve = exponential(net, net("divide", x, net.like(alpha, x)), alpha)
    return net("add", net.relu(x), net.lesser(curve, net.like(0, x)))


@emits(BOTH, "Softplus")
def softplus(op: Op, net: Net) -> Value:
    """`log(1 + exp(x))`, without overflow."""
    return softplus_of(net, op.value())


@emits(BOTH, "Mish")
def mish(op: Op, net: Net) -> Value:
    """`x · tanh(softplus(x))`."""
    x = op.value()
    return net("multiply", x, net("tanh", softplus_of(net, x)))


@emits(BOTH, "Softsign")
def softsign(op: Op, net: Net) -> Value:
    """`x / (1 + |x|)`."""
    return softsign_of(net, op.value())


@emits(BOTH, "Swish")
def swish(op: Op, net: Net) -> Value:
    """`x · sigmoid(alpha · x)`."""
    x, alpha = op.value(), op.attribute("alpha")
    return net("multiply", x, net("sigmoid", x if alpha == 1 else net("multiply", x, net.like(alpha, x))))


@emits(BOTH, "HardSigmoid")
def hard_sigmoid(op: Op, net: Net) -> Value:
    """`alpha · x + beta` between 0 and 1."""
    return ramp(net, op.value(), op.attribute("alpha"), op.attribute("beta"))


@emits(BOTH, "HardSwish")
def hard_swish(op: Op, net: Net) -> Value:
    """`x` times a HardSigmoid of slope 1/6."""
    x = op.value()
    return net("multiply", x, ramp(net, x, 1 / 6, 0.5))


@emits(BOTH, "Gelu")
def gelu(op: Op, net: Net) -> Value:
    """`x · Φ(x)`, by erf or by tanh."""
    x = op.value()
    if op.attribute("approximate") == "tanh":
        inner = net("add", x, net("multiply", net.like(0.044715, x), net("multiply", x, net("multiply", x, x))))
        curve = net("tanh", net("multiply", inner, net.like(math.sqrt(2 / math.pi), x)))
    else:
        curve = net("erf", net("multiply", x, net.like(math.sqrt(0.5), x)))
    return net("multiply", net("multiply", x, net.like(0.5, x)), net("add", curve, net.like(1, x)))


@emits(BOTH, "ThresholdedRelu")
def thresholded_relu(op: Op, net: Net) -> Value:
    """0 up to `alpha`."""
    x = op.value()
    return above(net, x, op.attribute("alpha"))


@emits(BOTH, "Shrink")
def shrink(op: Op, net: Net) -> Value:
    """0 between -lambd and lambd, outside nearer to 0 by `bias`."""
    x, bound, bias = op.value(), op.attribute("lambd"), net.like(op.attribute("bias"), op.value())
    beyond = net("greater", x, net.like(bound, x), dtype="bool")
    rest = net("where", beyond, net("subtract", x, bias), net.like(0, x), dtype=x.dtype)
    return below(net, x, -bound, net("add", x, bias), rest)


def below(net: Net, x: Value, bound: float, then: Value, otherwise: Value) -> Value:
    """`then` where x < bound."""
    return net("where", net("less", x, net.like(bound, x), dtype="bool"), then, otherwise, dtype=x.dtype)


def above(net: Net, x: Value, bound: float) -> Value:
    """`x` where x > bound, else 0."""
    return net("where", net("greater", x, net.like(bound, x), dtype="bool"), x, net.like(0, x), dtype=x.dtype)


def exponential(net: Net, x: Value, alpha: float) -> Value:
    """`alpha · (exp(x) - 1)`."""
    return net("multiply", net("subtract", net("exp", x), net.like(1, x)), net.like(alpha, x))


def softplus_of(net: Net, x: Value) -> Value:
    """`max(x, 0) + log(1 + exp(-|x|))`."""
    tail = net("exp", net("negative", net.absolute(x)))
    return net("add", net.relu(x), net("log", net("add", tail, net.like(1, x))))


def softsign_of(net: Net, x: Value) -> Value:
    """`x / (1 + |x|)`."""
    return net("divide", x, net("add", net.absolute(x), net.like(1, x)))


def ramp(net: Net, x: Value, slope: float, offset: float) -> Value:
    """`slope · x + offset` between 0 and 1."""
    line = net("add", net("multiply", x, net.like(slope, x)), net.like(offset, x))
    return net.lesser(net.greater(line, net.like(0, x)), net.like(1, x))
