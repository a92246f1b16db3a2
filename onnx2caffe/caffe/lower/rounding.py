"""Rounding, casts and wrapping. Booleans are 0 and 1, integers float32 (exact below 2^24).

float32 has no fractions between 2^23 and 2^24, and every layer stores its result as float32: x + 3·2^22 is rounded
half to even, and taking 3·2^22 away again is exact. Right to the last bit for |x| ≤ 2^22; beyond, as near as float32.
"""

from __future__ import annotations

import onnx_ir as ir

from onnx2caffe import canon, ranges
from onnx2caffe.caffe.layers import Power
from onnx2caffe.caffe.lower.arithmetic import above, absolute, difference, linear, power, product
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob

__all__ = ["floor", "wrapped"]

_NO_FRACTIONS = 3.0 * 2**22

_EXACT = 2.0**24
"""float32 holds every integer up to here."""


def _nearest(net: Emitter, x: Blob) -> Blob:
    """`x` rounded half to even, by two layers that no other can stand for: it takes float32."""
    return net(Power(shift=-_NO_FRACTIONS), net(Power(shift=_NO_FRACTIONS), x))


def floor(net: Emitter, x: Blob) -> Blob:
    """The largest whole number ≤ x: the nearest one, less 1 where that is larger."""
    whole = _nearest(net, x)
    return difference(net, whole, above(net, difference(net, whole, x)))


def _ceil(net: Emitter, x: Blob) -> Blob:
    whole = _nearest(net, x)
    return linear(net, [(whole, 1.0), (above(net, difference(net, x, whole)), 1.0)])


def _truncated(net: Emitter, x: Blob) -> Blob:
    """`x` rounded towards zero: ⌊|x|⌋ with the sign of x."""
    signs = power(net, above(net, x), scale=2.0, shift=-1.0)
    return product(net, [floor(net, absolute(net, x)), signs])


_ROUNDED = {"Round": _nearest, "Floor": floor, "Ceil": _ceil}


@lowers(*_ROUNDED)
def _round(op: Op, net: Emitter) -> Blob:
    """`(x + 3·2²²) − 3·2²²`, for Floor and Ceil corrected by 1 (module text); nothing for whole numbers."""
    known = ranges.of(op.node.inputs[0])
    return op.blob() if known.whole else _ROUNDED[op.type](net, op.blob())


@lowers("Cast")
def _cast(op: Op, net: Emitter) -> Blob:
    """Nothing where the numbers stay; [x ≠ 0] for bool; truncated for integers (ONNX Cast-23).

    Integers outside the type wrap around; what floats outside it become, ONNX leaves undefined.
    """
    x, source, target = op.blob(), op.dtype(), canon.dtype(op.node.outputs[0])
    known = ranges.of(op.node.inputs[0])
    if target in (source, ir.DataType.FLOAT):
        return x
    if target == ir.DataType.BOOL:
        return above(net, x if known.lo >= 0 else absolute(net, x))
    if not target.is_integer():
        raise Refused(f"Cast to {target.name} keeps {target.bitwidth} bits of a number; Caffe has float32 only")
    if known.whole:
        return wrapped(net, x, known, target)
    if target.bitwidth < 8:
        raise Refused(f"Cast from {source.name} to {target.name}: ONNX truncates fractions, onnxruntime rounds them")
    return floor(net, x) if known.lo >= 0 else _truncated(net, x)


def wrapped(net: Emitter, x: Blob, known: ranges.Range, dtype: ir.DataType) -> Blob:
    """Whole numbers between `known` bounds as an integer type of 2, 4, 8 or 16 bits keeps them: modulo 2^bits.

    Wider types keep what float32 holds.

    Raises:
        Refused: numbers below 0 become 2^32 or more, or float32 does not hold them before they are wrapped.

    """
    if known.within(dtype):
        return x
    low, _ = ranges.limits(dtype)
    if dtype.bitwidth >= 32:
        if known.lo < 0 and not dtype.is_signed():
            raise Refused(f"{dtype.name} below 0 wraps around to more than float32 holds")
        return x
    if max(-known.lo, known.hi) > _EXACT:
        raise Refused(f"{dtype.name} wraps numbers around that float32 does not hold: {known.lo:g} … {known.hi:g}")
    span = 2.0**dtype.bitwidth
    turns = floor(net, power(net, x, scale=1 / span, shift=-low / span))
    return linear(net, [(x, 1.0), (turns, -span)])
