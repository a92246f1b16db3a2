"""Comparison, logic, selection, rounding and casts. Booleans are 0 and 1, integers float32 (exact below 2^24)."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon, ranges
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import (
    Operand,
    above,
    absolute,
    affine,
    at_least,
    difference,
    extreme,
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
from onnx2caffe.ranges import Range

__all__ = ["sign"]

_STEPS = 32
"""A staircase with more steps than this is no sensible net."""

_HUGE = 1e38
"""Stands for infinite constants: 0 · inf would be NaN, and a mask of several of these still adds up to a number."""


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
    """`mask · a + (1 − mask) · b` (recipes 7.21), infinite constants as 1e38."""
    mask, a, b = operand(op, 0), _finite(operand(op, 1)), _finite(operand(op, 2))
    if not isinstance(mask, Blob):
        result = _by_constant_mask(net, mask.astype(np.float64), a, b)
    elif isinstance(a, Blob) or isinstance(b, Blob):
        result = _either(net, mask, a, b)
    else:
        result = _between_constants(net, mask, a, b)
    return expand(net, result, op.outputs[0])


def _finite(x: Operand) -> Operand:
    """Infinite constants as 1e38: 0 · inf would be NaN."""
    if isinstance(x, Blob):
        return x
    array = np.asarray(x, np.float64)
    return np.where(np.isinf(array), np.copysign(_HUGE, array), array)


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


@lowers("Floor", "Ceil", "Round")
def _round(op: Op, net: Emitter) -> Blob:
    """One Threshold per step between known bounds; nothing for whole numbers (recipes 7.19)."""
    known = ranges.of(op.node.inputs[0])
    return op.blob() if known.whole else _staircase(net, op.blob(), known, op.type)


def _staircase(net: Emitter, x: Blob, known: Range, kind: str) -> Blob:
    """Floor, Ceil or Round (half to even) between known bounds: one Threshold per step (recipes 7.19).

    Raises:
        Refused: the bounds are unknown or far apart.

    """
    if not known.bounded or known.hi - known.lo > _STEPS:
        raise Refused(f"{kind} needs bounds at most {_STEPS} apart, known are {known.lo} … {known.hi}")
    first, last = math.floor(known.lo), math.ceil(known.hi)
    steps = [_step(net, x, i, kind) for i in range(first, last)]
    return linear(net, [*((s, 1.0) for s in steps), (np.array(first), 1.0)])


def _step(net: Emitter, x: Blob, below: int, kind: str) -> Blob:
    """1 where rounding gives more than `below`."""
    if kind == "Floor":
        return at_least(net, x, below + 1)
    if kind == "Ceil":
        return above(net, x, below)
    return at_least(net, x, below + 0.5) if below % 2 else above(net, x, below + 0.5)


@lowers("Cast", "CastLike")
def _cast(op: Op, net: Emitter) -> Blob:
    """Nothing where the numbers stay; [x ≠ 0] for bool; truncation only between known bounds (ONNX Cast-23)."""
    x, source, target = op.blob(), op.dtype(), canon.dtype(op.node.outputs[0])
    known = ranges.of(op.node.inputs[0])
    if target in (source, ir.DataType.FLOAT):
        return x
    if target == ir.DataType.BOOL:
        return above(net, x if known.lo >= 0 else absolute(net, x))
    if not target.is_integer():
        raise Refused(f"Cast to {target.name} keeps {target.bitwidth} bits of a number; Caffe has float32 only")
    if source.is_integer() and target.bitwidth >= 32:
        return x
    if known.whole:
        if not known.within(target):
            raise Refused(f"Cast from {source.name} to {target.name} wraps around outside its range")
        return x
    if known.lo < 0:
        raise Refused(f"Cast from {source.name} to {target.name} truncates; Caffe has float32 only")
    return _staircase(net, x, known, "Floor")
