"""Arithmetic of one or several tensors with NumPy broadcasting. Facts: recipes §7."""

from __future__ import annotations

import numpy as np

from onnx2caffe import canon, ranges
from onnx2caffe.caffe.layers import Exp, Log
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import (
    Operand,
    above,
    absolute,
    difference,
    extreme,
    linear,
    negative,
    operand,
    operands,
    power,
    product,
)
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.integers import quotient
from onnx2caffe.caffe.lower.layout import expand
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.lower.rounding import floor, wrapped
from onnx2caffe.caffe.net import Blob

__all__ = ["exp", "log", "refuse_integers"]


def refuse_integers(op: Op, why: str) -> None:
    """Refuse an op whose integer form rounds: Caffe's numbers are all float32.

    Raises:
        Refused: input 0 is an integer tensor.

    """
    if op.dtype().is_integer():
        raise Refused(f"{op.type} of {op.dtype().name} {why}; Caffe has float32 only")


def _kept(op: Op, net: Emitter, y: Blob) -> Blob:
    """What the output's element type keeps of whole numbers."""
    value = op.node.outputs[0]
    dtype = canon.dtype(value)
    return wrapped(net, y, ranges.unwrapped(value, op.node), dtype) if dtype.is_integer() else y


def exp(net: Emitter, x: Blob, scale: float = 1.0, shift: float = 0.0) -> Blob:
    """`e ** (scale · x + shift)`."""
    return net(Exp(scale=scale, shift=shift), x)


def log(net: Emitter, x: Blob, scale: float = 1.0, shift: float = 0.0) -> Blob:
    """`ln(scale · x + shift)`."""
    return net(Log(scale=scale, shift=shift), x)


@lowers("Add", "Sum")
def _add(op: Op, net: Emitter) -> Blob:
    """Eltwise SUM of any number, Bias where one is broadcast or constant (recipes 7.1–7.10, 7.15)."""
    return _kept(op, net, linear(net, [(x, 1.0) for x in operands(op)]))


@lowers("Sub")
def _sub(op: Op, net: Emitter) -> Blob:
    """`a + (−b)`: a coefficient of Eltwise, else a negated operand (recipes 7.11)."""
    return _kept(op, net, difference(net, operand(op, 0), operand(op, 1)))


@lowers("Mean")
def _mean(op: Op, net: Emitter) -> Blob:
    """Eltwise SUM with coefficients 1/n (recipes 7.15)."""
    return linear(net, [(x, 1.0 / len(op)) for x in operands(op)])


@lowers("Mul")
def _mul(op: Op, net: Emitter) -> Blob:
    """Eltwise PROD, Scale where one is broadcast or constant (recipes 7.1–7.10)."""
    return _kept(op, net, product(net, operands(op)))


@lowers("Div")
def _div(op: Op, net: Emitter) -> Blob:
    """`a · b⁻¹` (recipes 7.12); c / x by one Power; integers rounded towards zero."""
    if op.dtype().is_integer():
        return quotient(op, net)
    a, b = operand(op, 0), operand(op, 1)
    if not isinstance(b, Blob):
        with np.errstate(divide="ignore"):
            return product(net, [a, 1.0 / np.asarray(b, np.float64)])
    if not isinstance(a, Blob) and a.size == 1 and _has_reciprocal(a.item()):
        return expand(net, power(net, b, -1.0, 1.0 / a.item()), op.outputs[0])
    return product(net, [a, power(net, b, -1.0)])


def _has_reciprocal(number: float) -> bool:
    """Whether 1/number is a normal float32."""
    smallest = float(np.finfo(np.float32).tiny)
    return smallest <= abs(number) <= 1 / smallest


@lowers("Pow")
def _pow(op: Op, net: Emitter) -> Blob:
    """Power for one constant exponent, else `e^(b · ln |a|)`, negative where a is and b is odd (recipes 7.16, 7.17)."""
    base, exponent = operand(op, 0), operand(op, 1)
    if isinstance(exponent, Blob) or not isinstance(base, Blob):
        refuse_integers(op, "to a computed power rounds")
        return _exponential(op, net, base, exponent)
    if op.dtype().is_integer() and not _natural(exponent):
        raise Refused(f"Pow of {op.dtype().name} to a power that is no natural number rounds")
    if exponent.size and (exponent == exponent.flat[0]).all():
        return expand(net, power(net, base, float(exponent.flat[0])), op.outputs[0])
    return _exponential(op, net, base, exponent)


def _natural(exponent: Array) -> bool:
    return bool(((exponent >= 0) & (exponent == np.round(exponent))).all())


_LEAST_LOG = -1e30
"""For ln 0: times a power of 0 it is 0, times any other it is beyond what e to the power of it can be."""


def _exponential(op: Op, net: Emitter, base: Operand, exponent: Operand) -> Blob:
    """`e^(b · ln |a|)` with a sign; for a < 0 and a b that is not whole, ONNX says NaN, and this some number."""
    if not isinstance(base, Blob):
        if not (base > 0).all():
            raise Refused("Pow of a constant base that is not positive, to a computed power")
        return exp(net, product(net, [exponent, np.log(base.astype(np.float64))]))
    known = ranges.of(op.node.inputs[0])
    if known.lo > 0:
        return exp(net, product(net, [exponent, log(net, base)]))
    size = net.recipe("clip", log(net, base if known.lo >= 0 else absolute(net, base)), _LEAST_LOG, None)
    result = exp(net, product(net, [exponent, size]))
    if known.lo >= 0:
        return result
    flips = product(net, [above(net, negative(net, base)), _odd(net, exponent)])
    return product(net, [result, power(net, flips, scale=-2.0, shift=1.0)])


def _odd(net: Emitter, exponent: Operand) -> Operand:
    """1 for odd numbers, 0 for even ones."""
    if not isinstance(exponent, Blob):
        return np.abs(np.mod(exponent.astype(np.float64), 2.0))
    pairs = floor(net, power(net, exponent, scale=0.5))
    return linear(net, [(exponent, 1.0), (pairs, -2.0)])


@lowers("Max")
def _max(op: Op, net: Emitter) -> Blob:
    """Eltwise MAX (recipes 7.13, 7.14)."""
    return extreme(net, operands(op), 1.0)


@lowers("Min")
def _min(op: Op, net: Emitter) -> Blob:
    """`−max(−a, −b)` (recipes 7.13, 7.14)."""
    return extreme(net, operands(op), -1.0)


@lowers("Neg")
def _neg(op: Op, net: Emitter) -> Blob:
    """Power with scale −1 (recipes 7.16)."""
    return _kept(op, net, negative(net, op.blob()))


@lowers("Abs")
def _abs(op: Op, net: Emitter) -> Blob:
    """AbsVal (recipes 7.18)."""
    return _kept(op, net, absolute(net, op.blob()))


@lowers("Reciprocal")
def _reciprocal(op: Op, net: Emitter) -> Blob:
    """Power −1 (recipes 7.16)."""
    return power(net, op.blob(), -1.0)


@lowers("Sqrt")
def _sqrt(op: Op, net: Emitter) -> Blob:
    """Power ½ (recipes 7.16)."""
    return power(net, op.blob(), 0.5)


@lowers("Exp")
def _exp(op: Op, net: Emitter) -> Blob:
    """Exp (recipes 7.18)."""
    return exp(net, op.blob())


@lowers("Log")
def _log(op: Op, net: Emitter) -> Blob:
    """Log (recipes 7.18)."""
    return log(net, op.blob())


@lowers("Sinh", "Cosh")
def _hyperbolic(op: Op, net: Emitter) -> Blob:
    """(e^x ∓ e^−x) / 2 (ONNX Sinh-22, Cosh-22)."""
    x = op.blob()
    return linear(net, [(exp(net, x), 0.5), (exp(net, x, scale=-1.0), -0.5 if op.type == "Sinh" else 0.5)])


@lowers("Atanh")
def _atanh(op: Op, net: Emitter) -> Blob:
    """½ (ln(1 + x) − ln(1 − x)) (ONNX Atanh-22)."""
    x = op.blob()
    return linear(net, [(log(net, x, shift=1.0), 0.5), (log(net, x, scale=-1.0, shift=1.0), -0.5)])


@lowers("Acosh")
def _acosh(op: Op, net: Emitter) -> Blob:
    """ln(x + √(x² − 1)) (ONNX Acosh-22)."""
    x = op.blob()
    root = power(net, power(net, x, 2.0), 0.5, shift=-1.0)
    return log(net, linear(net, [(x, 1.0), (root, 1.0)]))


@lowers("Asinh")
def _asinh(op: Op, net: Emitter) -> Blob:
    """sign(x) · ln(|x| + √(x² + 1)); without the sign outside, negative x cancel (ONNX Asinh-22)."""
    x = op.blob()
    root = power(net, power(net, x, 2.0), 0.5, shift=1.0)
    length = log(net, linear(net, [(absolute(net, x), 1.0), (root, 1.0)]))
    return product(net, [power(net, above(net, x), scale=2.0, shift=-1.0), length])
