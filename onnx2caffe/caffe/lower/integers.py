"""Integer arithmetic in float32: exact as long as the numbers stay below about 2^21.

Bitwise logic with a constant is a table (Embed): between known bounds every function of one number is one.
"""

from __future__ import annotations

import numpy as np

from onnx2caffe import ranges
from onnx2caffe.caffe.layers import Embed
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import (
    Operand,
    above,
    absolute,
    at_least,
    difference,
    linear,
    negative,
    operand,
    power,
    product,
)
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.compare import sign
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import expand
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.lower.rounding import floor, wrapped
from onnx2caffe.caffe.net import Blob
from onnx2caffe.frontend.evaluate import NotEvaluable, run
from onnx2caffe.ranges import Range

__all__ = ["quotient"]

_LARGEST = 4096
"""Entries of the largest table. More are indices into a whole map: post-processing, which the host does."""


def quotient(op: Op, net: Emitter) -> Blob:
    """Input 0 / input 1, whole numbers, rounded towards zero.

    The half keeps a rounding of the reciprocal from falling below a whole quotient.
    """
    signs = [_sign(net, operand(op, i)) for i in (0, 1) if _signed(op, i)]
    size = _magnitude(op, net, 0)
    half = power(net, size, shift=0.5) if isinstance(size, Blob) else size + 0.5
    whole = floor(net, product(net, [half, _reciprocal(net, _magnitude(op, net, 1))]))
    return product(net, [whole, *signs])


def _signed(op: Op, index: int) -> bool:
    return ranges.of(op.node.inputs[index]).lo < 0


def _magnitude(op: Op, net: Emitter, index: int) -> Operand:
    x = operand(op, index)
    if not _signed(op, index):
        return x
    return absolute(net, x) if isinstance(x, Blob) else np.abs(x.astype(np.float64))


def _sign(net: Emitter, x: Operand) -> Operand:
    return sign(net, x) if isinstance(x, Blob) else np.sign(x.astype(np.float64))


def _reciprocal(net: Emitter, x: Operand) -> Operand:
    if isinstance(x, Blob):
        return power(net, x, -1.0)
    if not x.all():
        raise Refused("a division by zero")
    return 1.0 / x.astype(np.float64)


@lowers("Mod")
def _mod(op: Op, net: Emitter) -> Blob:
    """`a − b · ⌊a / b⌋` for integers, towards zero with fmod; floats corrected by one b (ONNX Mod-13)."""
    if not op.dtype().is_integer():
        return _float_mod(op, net)
    a, b = operand(op, 0), operand(op, 1)
    if op.attribute("fmod"):
        turns = quotient(op, net)
    else:
        turned = product(net, [a, _sign(net, b)]) if _signed(op, 1) else a
        half = power(net, turned, shift=0.5) if isinstance(turned, Blob) else turned + 0.5
        turns = floor(net, product(net, [half, _reciprocal(net, _magnitude(op, net, 1))]))
    return difference(net, a, product(net, [turns, b]))


def _float_mod(op: Op, net: Emitter) -> Blob:
    """C's fmod: the quotient's rounding may be off by one, which leaves a remainder below 0 or of b or more."""
    size, step = _magnitude(op, net, 0), _magnitude(op, net, 1)
    turns = floor(net, product(net, [size, _reciprocal(net, step)]))
    rest = difference(net, size, product(net, [turns, step]))
    low, high = above(net, negative(net, rest)), at_least(net, difference(net, rest, step))
    corrected = linear(net, [(rest, 1.0), (product(net, [difference(net, low, high), step]), 1.0)])
    return product(net, [corrected, _sign(net, operand(op, 0))]) if _signed(op, 0) else corrected


@lowers("BitShift")
def _bit_shift(op: Op, net: Emitter) -> Blob:
    """`x · 2ⁿ`, or `⌊x / 2ⁿ⌋`, by a constant n (ONNX BitShift-11)."""
    x, bits = op.blob(0), op.need_const(1, "the number of bits").astype(np.float64)
    if op.attribute("direction") == "RIGHT":
        return floor(net, product(net, [x, np.exp2(-bits)]))
    known, factor = ranges.of(op.node.inputs[0]), float(np.exp2(bits.max()))
    shifted = Range(known.lo * factor, known.hi * factor, whole=True)
    return wrapped(net, product(net, [x, np.exp2(bits)]), shifted, op.dtype())


@lowers("BitwiseNot")
def _bitwise_not(op: Op, net: Emitter) -> Blob:
    """`−1 − x`, for unsigned types `max − x` (ONNX BitwiseNot-18)."""
    low, high = ranges.limits(op.dtype())
    return power(net, op.blob(), scale=-1.0, shift=low + high)


@lowers("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _by_table(op: Op, net: Emitter) -> Blob:
    """Embed: the node itself, evaluated on every number its computed input can be (recipes 11.7)."""
    index = 0 if op.const(0) is None else 1
    x = op.blob(index)
    numbers = _numbers(op, index)
    entries = _evaluated(op, index, numbers).astype(np.float32).reshape(-1, 1)
    layer = Embed(num_output=1, input_dim=len(numbers), bias_term=False, blobs=(entries,))
    found = net(layer, power(net, x, shift=-float(numbers[0])))
    return expand(net, reshape(net, found, x.shape), op.outputs[0])


def _numbers(op: Op, index: int) -> Array:
    """All values of the computed input.

    Raises:
        Refused: it is no integer tensor, or nothing bounds it well enough.

    """
    value = op.node.inputs[index]
    known, dtype = ranges.of(value), op.dtype(index)
    if not dtype.is_integer() or known.hi - known.lo >= _LARGEST:
        raise Refused(
            f"{op.type} of {dtype.name} is integer arithmetic, which Caffe has only as a table of at most {_LARGEST} "
            f"entries; known of its input is {known.lo:g} … {known.hi:g}"
        )
    return np.arange(int(known.lo), int(known.hi) + 1).astype(dtype.numpy())


def _evaluated(op: Op, index: int, numbers: Array) -> Array:
    other = op.need_const(1 - index, "the other operand")
    if (other != other.flat[0]).any():
        raise Refused("the constant operand must be one number")
    inputs: list[Array | None] = [numbers]
    inputs.insert(1 - index, other.reshape(-1)[:1])
    try:
        (result,) = run(op.type, {}, inputs)
    except NotEvaluable as problem:
        raise Refused(f"{op.type}: {problem}") from problem
    return result
