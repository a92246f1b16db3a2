"""Comparison, logic, selection. Booleans are 0 and 1, integers float32 (exact below 2^24)."""

from __future__ import annotations

import numpy as np

from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import (
    INFINITY,
    Operand,
    above,
    absolute,
    affine,
    at_least,
    difference,
    extreme,
    finite,
    linear,
    negative,
    operand,
    power,
    product,
)
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import expand
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob

__all__ = ["sign"]

_NEAR_INFINITY = INFINITY / 2
"""What lies beyond is as good as infinite."""


@lowers("Greater")
def _greater(op: Op, net: Emitter) -> Blob:
    """[a > b]: Threshold at a constant, or at 0 of a − b (recipes 7.20)."""
    return _exceeds(op, net, operand(op, 0), operand(op, 1))


@lowers("Less")
def _less(op: Op, net: Emitter) -> Blob:
    """[b > a]: Threshold at a constant, or at 0 of b − a (recipes 7.20)."""
    return _exceeds(op, net, operand(op, 1), operand(op, 0))


@lowers("GreaterOrEqual")
def _greater_or_equal(op: Op, net: Emitter) -> Blob:
    """[a ≥ b]: Threshold at the next smaller float32 (recipes 7.20)."""
    return _reaches(op, net, operand(op, 0), operand(op, 1))


@lowers("LessOrEqual")
def _less_or_equal(op: Op, net: Emitter) -> Blob:
    """[b ≥ a]: Threshold at the next smaller float32 (recipes 7.20)."""
    return _reaches(op, net, operand(op, 1), operand(op, 0))


def _exceeds(op: Op, net: Emitter, a: Operand, b: Operand) -> Blob:
    """[a > b] (recipes 7.20)."""
    x, threshold = _against_threshold(net, a, b)
    return expand(net, above(net, x, threshold), op.outputs[0])


def _reaches(op: Op, net: Emitter, a: Operand, b: Operand) -> Blob:
    """[a ≥ b] (recipes 7.20)."""
    x, threshold = _against_threshold(net, a, b)
    return expand(net, at_least(net, x, threshold), op.outputs[0])


def _against_threshold(net: Emitter, a: Operand, b: Operand) -> tuple[Blob, float]:
    """Numbers x and t such that a − b and x − t have one sign: float32 subtraction never rounds to a wrong sign.

    Raises:
        Refused: a constant is infinite or NaN; Caffe's subtraction would make NaN of it.

    """
    if any(not isinstance(x, Blob) and not np.isfinite(np.asarray(x, np.float64)).all() for x in (a, b)):
        raise Refused("a comparison with infinity or NaN")
    if isinstance(a, Blob) and not isinstance(b, Blob) and b.size == 1:
        return a, float(b.item())
    if isinstance(b, Blob) and not isinstance(a, Blob) and a.size == 1:
        return negative(net, b), -float(a.item())
    return difference(net, a, b), 0.0


@lowers("Equal")
def _equal(op: Op, net: Emitter) -> Blob:
    """[a ≥ b] − [a > b] (recipes 7.20)."""
    x, threshold = _against_threshold(net, operand(op, 0), operand(op, 1))
    return expand(net, difference(net, at_least(net, x, threshold), above(net, x, threshold)), op.outputs[0])


@lowers("Equal", variant="infinity")
def _equals_infinity(op: Op, net: Emitter) -> Blob:
    """[x > 5e37] for x = inf, [−x > 5e37] for x = −inf: infinite constants are kept finite (recipes, rule 1)."""
    index = 0 if op.const(0) is None else 1
    limit = op.need_const(1 - index, "the other operand").astype(np.float64)
    if limit.size != 1 or not np.isinf(limit).all():
        raise Refused("the other operand is not infinity")
    x = op.blob(index) if limit.item() > 0 else negative(net, op.blob(index))
    return expand(net, above(net, x, _NEAR_INFINITY), op.outputs[0])


@lowers("IsInf")
def _is_inf(op: Op, net: Emitter) -> Blob:
    """[x > 5e37], [−x > 5e37] or both, as its attributes say (ONNX IsInf-20)."""
    x, up, down = op.blob(), op.attribute("detect_positive"), op.attribute("detect_negative")
    if up and down:
        x = absolute(net, x)
    elif down:
        x = negative(net, x)
    return power(net, above(net, x, _NEAR_INFINITY), scale=float(up or down))


@lowers("IsNaN")
def _is_nan(op: Op, net: Emitter) -> Blob:
    """1 − [x ≥ 0] − [−x > 0]: no comparison holds for NaN (threshold_layer.cpp, ONNX IsNaN-20)."""
    x = op.blob()
    return linear(net, [(at_least(net, x), -1.0), (above(net, negative(net, x)), -1.0), (np.ones(()), 1.0)])


@lowers("Not")
def _not(op: Op, net: Emitter) -> Blob:
    """`1 − x` (recipes 7.21)."""
    return _invert(net, op.blob())


def _invert(net: Emitter, x: Blob) -> Blob:
    return power(net, x, scale=-1.0, shift=1.0)


@lowers("And")
def _and(op: Op, net: Emitter) -> Blob:
    """`a · b` (recipes 7.21)."""
    return product(net, [operand(op, 0), operand(op, 1)])


@lowers("Or")
def _or(op: Op, net: Emitter) -> Blob:
    """`max(a, b)`, with a constant c `x + c − x · c` (recipes 7.21)."""
    a, b = operand(op, 0), operand(op, 1)
    if isinstance(a, Blob) and isinstance(b, Blob):
        return extreme(net, [a, b], 1.0)
    x, c = _blob_and_constant(a, b)
    return affine(net, x, 1.0 - c, c)


@lowers("Xor")
def _xor(op: Op, net: Emitter) -> Blob:
    """`|a − b|`, with a constant c `x + c − 2 · x · c` (ONNX Xor-7)."""
    a, b = operand(op, 0), operand(op, 1)
    if isinstance(a, Blob) and isinstance(b, Blob):
        return absolute(net, difference(net, a, b))
    x, c = _blob_and_constant(a, b)
    return affine(net, x, 1.0 - 2.0 * c, c)


def _blob_and_constant(a: Operand, b: Operand) -> tuple[Blob, Array]:
    if isinstance(a, Blob):
        return a, np.asarray(b, np.float64)
    if isinstance(b, Blob):
        return b, np.asarray(a, np.float64)
    raise Refused("both inputs are constant")


@lowers("Where")
def _where(op: Op, net: Emitter) -> Blob:
    """`mask · a + (1 − mask) · b` (recipes 7.21), infinite constants as ±1e38."""
    mask, a, b = operand(op, 0), _finite(operand(op, 1)), _finite(operand(op, 2))
    if not isinstance(mask, Blob):
        result = _by_constant_mask(net, mask.astype(np.float64), a, b)
    elif isinstance(a, Blob) or isinstance(b, Blob):
        result = _either(net, mask, a, b)
    else:
        result = _between_constants(net, mask, a, b)
    return expand(net, result, op.outputs[0])


def _finite(x: Operand) -> Operand:
    return x if isinstance(x, Blob) else finite(x)


def _either(net: Emitter, mask: Blob, a: Operand, b: Operand) -> Blob:
    """Both branches masked and added: exact, unlike b + mask · (a − b)."""
    chosen = product(net, [mask, a])
    if not isinstance(b, Blob):
        return linear(net, [(chosen, 1.0), (affine(net, mask, -b, b) if b.any() else b, 1.0)])
    return linear(net, [(chosen, 1.0), (product(net, [_invert(net, mask), b]), 1.0)])


def _by_constant_mask(net: Emitter, mask: Array, a: Operand, b: Operand) -> Blob:
    """One Scale when one branch is constant, else one for each branch and their sum."""
    if isinstance(a, Blob):
        if isinstance(b, Blob):
            return linear(net, [(product(net, [a, mask]), 1.0), (product(net, [b, 1.0 - mask]), 1.0)])
        return affine(net, a, mask, (1.0 - mask) * b)
    if isinstance(b, Blob):
        return affine(net, b, 1.0 - mask, mask * a)
    raise Refused("all inputs are constant")


def _between_constants(net: Emitter, mask: Blob, a: Array, b: Array) -> Blob:
    """`b + mask · (a − b)` where float32 gives a back exactly, else both branches."""
    step = np.asarray(a - b, np.float32)
    if np.array_equal(step + np.float32(b), np.broadcast_to(np.float32(a), step.shape)):
        return affine(net, mask, step, b)
    return _either(net, mask, a, b)


def sign(net: Emitter, x: Blob) -> Blob:
    """[x > 0] − [x < 0] (recipes 7.19)."""
    return difference(net, above(net, x), above(net, negative(net, x)))


@lowers("Sign")
def _sign(op: Op, net: Emitter) -> Blob:
    """[x > 0] − [x < 0] (recipes 7.19)."""
    return sign(net, op.blob())
