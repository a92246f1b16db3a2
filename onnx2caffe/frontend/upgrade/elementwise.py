"""Element-wise arithmetic, comparison and casts (all broadcast as numpy does since opset 7)."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque, widened
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import unchanged, upgrades

__all__: list[str] = []

for _op in ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"):
    unchanged(_op, 7, 22)
for _op in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh"):
    unchanged(_op, 9, 22)
for _op in ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Sqrt"):
    unchanged(_op, 6, 13)
for _op in ("Add", "Sub", "Mul", "Div"):
    unchanged(_op, 7, 13, 14)
for _op in ("And", "Or", "Xor"):
    unchanged(_op, 7)
for _op in ("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"):
    unchanged(_op, 18)
unchanged("Not", 1)
unchanged("Equal", 7, 11, 13, 19)
unchanged("Greater", 7, 9, 13)
unchanged("Less", 7, 9, 13)
unchanged("GreaterOrEqual", 12, 16)
unchanged("LessOrEqual", 12, 16)
unchanged("Pow", 7, 12, 13, 15)
unchanged("Erf", 9, 13)
unchanged("Sign", 9, 13)
unchanged("Round", 11, 22)
unchanged("IsNaN", 9, 13, 20)
unchanged("IsInf", 10, 20)
unchanged("Where", 9, 16)
unchanged("Det", 11, 22)


@upgrades("Max", 6, 8, 12, 13)
@upgrades("Min", 6, 8, 12, 13)
@upgrades("Sum", 6, 8, 13)
@upgrades("Mean", 6, 8, 13)
def variadic(node: Reader, build: Builder) -> ir.Value:
    """Any number of inputs; with one, nothing happens."""
    inputs = node.present
    return inputs[0] if len(inputs) == 1 else build.op(node.op, *inputs)


_FAR = 3e38
"""As good as infinite."""


@upgrades("Mod", 10, 13, 28)
def mod(node: Reader, build: Builder) -> ir.Value:
    """Mod; the floored form for floats (only since 28) is written out.

    By constants it is A - floor(A / B) * B; by computed numbers the truncated rest, moved by B where their signs are
    opposed. A computed B that is infinite is taken as nearly so, since nothing times infinity would be no number.
    """
    a, b = node.input(0), node.input(1)
    fmod = node.integer("fmod", 0)
    if fmod or not canon.dtype(a).is_floating_point():
        return build.op("Mod", a, b, fmod=fmod)
    divisor = canon.const(b)
    if divisor is not None and np.isfinite(divisor).all():
        return build.op("Sub", a, build.op("Mul", build.op("Floor", build.op("Div", a, b)), b))
    if divisor is None:
        b = build.op("Clip", b, build.like(-_FAR, b, "min"), build.like(_FAR, b, "max"))
    rest = build.op("Mod", a, b, fmod=1)
    signs = build.op("Mul", build.op("Sign", rest), build.op("Sign", b))
    return build.op("Where", build.op("Less", signs, build.like(0, b, "zero")), build.op("Add", rest, b), rest)


@upgrades("BitShift", 11, 28)
def bit_shift(node: Reader, build: Builder) -> ir.Value:
    """BitShift of unsigned integers; of signed ones (only since 28) as the unsigned ones of the same bits.

    To the right a negative number is shifted as its complement, which fills up with its sign.
    """
    direction = node.text("direction")
    x, count = node.input(0), node.input(1)
    signed = canon.dtype(x)
    if not signed.is_signed():
        return build.op("BitShift", x, count, direction=direction)
    bits = ir.DataType[f"U{signed.name}"]

    def shifted(value: ir.Value) -> ir.Value:
        unsigned = build.op("BitShift", build.cast(value, bits), build.cast(count, bits), direction=direction)
        return build.cast(unsigned, signed)

    if direction == "LEFT":
        return shifted(x)
    zero, ones = build.like(0, x, "zero"), build.like(-1, x, "ones")
    sign = build.op("Where", build.op("Less", x, zero), ones, zero)
    return build.op("BitwiseXor", shifted(build.op("BitwiseXor", x, sign)), sign)


@upgrades("Clip", 6)
def clip_attributes(node: Reader, build: Builder) -> ir.Value:
    """Clip with its bounds as attributes."""
    x = node.input()
    low, high = node.number("min", -np.inf), node.number("max", np.inf)
    return _clip(build, x, np.asarray(low), np.asarray(high))


@upgrades("Clip", 11, 12, 13)
def clip(node: Reader, build: Builder) -> ir.Value:
    """Clip with its bounds as optional inputs; computed bounds become Max and Min."""
    x, low, high = node.input(0), node.optional(1), node.optional(2)
    bounds = [canon.const(v) for v in (low, high)]
    if all(a is not None or v is None for a, v in zip(bounds, (low, high), strict=True)):
        return _clip(build, x, *(np.asarray(np.nan) if a is None else a for a in bounds))
    if low is not None:
        x = build.op("Max", x, build.reshape(low, ()))
    return x if high is None else build.op("Min", x, build.reshape(high, ()))


def _clip(build: Builder, x: ir.Value, low: np.ndarray, high: np.ndarray) -> ir.Value:
    """A bound that is not finite, or the end of float32's range, bounds nothing and is left out."""
    dtype = canon.dtype(x).numpy()
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    if low.size != 1 or high.size != 1:
        raise Opaque("the bounds of Clip are no scalars")
    bottom, top = low.reshape(())[()], high.reshape(())[()]
    minimum = build.const(np.asarray(bottom, dtype), "min") if bottom > limits.min else None
    maximum = build.const(np.asarray(top, dtype), "max") if top < limits.max else None
    return x if minimum is None and maximum is None else build.op("Clip", x, minimum, maximum)


@upgrades("Cast", 6, 9, 13, 19, 21, 23, 24, 25, 28)
def cast(node: Reader, build: Builder) -> ir.Value:
    """Cast; between float types nothing is left to do."""
    to = widened(ir.DataType(node.integer("to")))
    node.integer("saturate", 1)
    node.text("round_mode", "up")
    return build.cast(node.input(), to)


@upgrades("CastLike", 15, 19, 21, 23, 24, 25)
def cast_like(node: Reader, build: Builder) -> ir.Value:
    """Cast to the type of the second input."""
    node.integer("saturate", 1)
    node.text("round_mode", "up")
    return build.cast(node.input(0), canon.dtype(node.input(1)))


@upgrades("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def identity(node: Reader, build: Builder) -> list[ir.Value | tuple[ir.Value, ...] | None]:
    """Nothing; for tensors and sequences."""
    return [node.entries[0]]


@upgrades("Dropout", 7, 10, 12, 13, 22)
def dropout(node: Reader, build: Builder) -> list[ir.Value | None]:
    """Nothing in inference, or where nothing is dropped; the mask keeps everything."""
    ratio = node.number("ratio", 0.5) if node.version < 12 else node.constant(1, "ratio")
    node.integer("seed", 0)
    training = node.constant(2, "training mode")
    if training is not None and training.any() and (ratio is None or np.any(ratio)):
        raise Opaque("Dropout in training mode draws random numbers")
    x = node.input()
    if len(node.wanted) < 2 or not node.wanted[1]:
        return [x, None][: len(node.wanted)]
    mask = build.const(np.ones((), bool if node.version >= 10 else np.float32), "mask")
    return [x, build.expand(mask, node.shape())]
