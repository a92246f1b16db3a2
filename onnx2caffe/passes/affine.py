"""Arithmetic with constants: one spelling, short chains, and into the weights of the linear op behind or before.

Behind a linear op y = W·x + b, per output channel o (recipes 13.1–13.3):      a·y + c  =  (a·W)·x + (a·b + c)
Before it, per input channel i (13.4, 13.5):                      W·(a·x + c) + b  =  (W·a)·x + (b + Σ_i W_i·c_i)
A shift before a padded convolution stays where it is (padding adds zeros after the shift), and so does one before a
transposed convolution (border outputs see fewer taps); a factor may always go in, for it keeps zeros.
Factors are made in float64 and applied to the float32 weights once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.linear import Linear, linear
from onnx2caffe.passes.match import (
    channel_vector,
    constant_operand,
    is_float,
    maker,
    narrow,
    only_reader,
    source,
    trailing,
)

__all__ = ["ComposeAffine", "FoldAffineBefore", "FoldAffineBehind", "NormalizeArithmetic", "arithmetic"]


@dataclass(frozen=True)
class Affine:
    """y = factor·value + shift, with float64 constants that broadcast against `value` without widening it."""

    value: ir.Value
    factor: Array
    shift: Array

    def after(self, inner: Affine) -> Affine:
        """This one applied to the result of `inner`."""
        return Affine(inner.value, self.factor * inner.factor, self.factor * inner.shift + self.shift)

    def per_channel(self, axis: int) -> tuple[Array, Array] | None:
        """Factor and shift as one number per index of `axis`; None if they vary along another axis."""
        shape = canon.shape(self.value)
        factor, shift = (channel_vector(array, shape, axis) for array in (self.factor, self.shift))
        return None if factor is None or shift is None else (factor, shift)


_ONE: Array = np.ones(())
_ZERO: Array = np.zeros(())


def arithmetic(node: ir.Node) -> Affine | None:
    """Mul or Add by a constant, Neg, or constant minus value; Sub and Div by a constant are Add and Mul by then."""
    if node.op_type not in _ARITHMETIC or not is_float(node.outputs[0]):
        return None
    if node.op_type == "Neg":
        return Affine(source(node), -_ONE, _ZERO)
    found = constant_operand(node)
    if found is None or (node.op_type == "Sub" and found[0] is not source(node, 1)):
        return None
    value, array = found
    constant = np.asarray(array, dtype=np.float64)
    if node.op_type == "Mul":
        return Affine(value, constant, _ZERO)
    return Affine(value, _ONE if node.op_type == "Add" else -_ONE, constant)


def batch_norm(node: ir.Node) -> Affine | None:
    """BatchNormalization with constant statistics: factor γ/√(var+ε), shift β − mean·factor (recipes 9.1)."""
    if node.op_type != "BatchNormalization":
        return None
    constants = [canon.const(value) for value in node.inputs[1:5]]
    if any(array is None for array in constants):
        return None
    gamma, beta, mean, variance = (np.asarray(array, dtype=np.float64) for array in constants)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = gamma / np.sqrt(variance + float(canon.attribute(node, "epsilon")))
    shift = beta - mean * factor
    behind = (-1,) + (1,) * (len(canon.shape(node.outputs[0])) - 2)
    return Affine(source(node), factor.reshape(behind), shift.reshape(behind))


_ARITHMETIC = frozenset({"Add", "Mul", "Neg", "Sub"})


def _fits(array: Array, shape: Shape) -> bool:
    return np.broadcast_shapes(array.shape, shape) == shape and bool(np.all(np.isfinite(narrow(array))))


class NormalizeArithmetic(NodePass):
    """Sub and Div by constants become Add and Mul, the forms the other passes look for."""

    claim = "x−c = x+(−c), x/c = x·(1/c)"
    ops = frozenset({"Div", "Sub"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Respell float arithmetic with a constant on the right; 1/c must be finite."""
        value, constant = source(node), canon.const(source(node, 1))
        if constant is None or not is_float(value):
            return False
        if node.op_type == "Div":
            return _divide(node, value, constant, edit)
        edit.replace(node, "Add", [value, edit.constant(-constant, node.outputs[0], "shift")])
        return True


def _divide(node: ir.Node, value: ir.Value, divisor: Array, edit: Editor) -> bool:
    with np.errstate(divide="ignore"):
        factor = narrow(1.0 / divisor.astype(np.float64))
    if not np.all(np.isfinite(factor)):
        return False
    edit.replace(node, "Mul", [value, edit.constant(factor, node.outputs[0], "factor")])
    return True


class ComposeAffine(NodePass):
    """A chain of arithmetic with constants becomes at most one Mul and one Add, composed in float64 (13.13)."""

    claim = "a₂·(a₁·x + c₁) + c₂ = (a₂·a₁)·x + (a₂·c₁ + c₂)"
    ops = _ARITHMETIC

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Compose the chain that ends here, if that saves a node and the constants do not grow."""
        total = arithmetic(node)
        if total is None:
            return False
        nodes = [node]
        largest = max(total.factor.size, total.shift.size)
        while True:
            inner = maker(total.value, *_ARITHMETIC)
            step = arithmetic(inner) if inner is not None else None
            if inner is None or step is None or only_reader(total.value) is None:
                break
            nodes.append(inner)
            largest = max(largest, step.factor.size, step.shift.size)
            total = total.after(step)
        steps = _steps(total)
        shape = canon.shape(node.outputs[0])
        if len(steps) >= len(nodes) or not all(_fits(array, shape) and array.size <= largest for _, array in steps):
            return False
        _emit(node, total.value, steps, nodes[1:], edit)
        return True


def _steps(total: Affine) -> list[tuple[str, Array]]:
    """The fewest nodes that do this: Sub from a constant is one."""
    if np.all(total.factor == -1) and np.any(total.shift):
        return [("Sub", total.shift)]
    named = (("Mul", total.factor, 1), ("Add", total.shift, 0))
    return [(op, array) for op, array, neutral in named if not np.all(array == neutral)]


def _emit(node: ir.Node, value: ir.Value, steps: list[tuple[str, Array]], merged: list[ir.Node], edit: Editor) -> None:
    if not steps:
        edit.forward(node.outputs[0], value)
        return
    output = node.outputs[0]
    constants = [edit.constant(narrow(array), output, op.lower()) for op, array in steps]
    if len(steps) == 2:
        inputs = [value, constants[0]]
        value = edit.add(node, steps[0][0], inputs, {}, shape=canon.shape(output), what="scaled", merged=merged)
    op = steps[-1][0]
    edit.replace(node, op, [constants[-1], value] if op == "Sub" else [value, constants[-1]], merged=merged)


class FoldAffineBehind(NodePass):
    """BatchNormalization, Mul and Add by per-channel constants go into the linear op they follow (13.1–13.3)."""

    claim = "a·(W·x + b) + c = (a·W)·x + (a·b + c), per output channel"
    ops: ClassVar[frozenset[str]] = _ARITHMETIC | {"BatchNormalization"}

    def __init__(self, *, keep_bn: bool = False) -> None:
        super().__init__()
        self.keep_bn = keep_bn

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Fold when this node alone reads the linear op's output."""
        affine = arithmetic(node) or (None if self.keep_bn else batch_norm(node))
        if affine is None or only_reader(affine.value) is None:
            return False
        producer = affine.value.producer()
        before = linear(producer) if producer is not None else None
        if before is None:
            return False
        vectors = affine.per_channel(before.axis)
        if vectors is None:
            return False
        factor, shift = vectors
        weight = None if np.all(factor == 1) else _times(before.weight, before.per_output(factor))
        bias = shift if before.bias is None else before.bias.astype(np.float64) * factor + shift
        return before.rebuild(node, edit, weight=weight, bias=bias, merged=[before.node])


class FoldAffineBefore(NodePass):
    """BatchNormalization, Mul and Add by per-channel constants go into the only linear op behind (13.4, 13.5)."""

    claim = "W·(a·x + c) + b = (W·a)·x + (b + W·c), per input channel; c ≠ 0 only where no padding is read"
    ops = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})

    def __init__(self, *, keep_bn: bool = False, stays: Callable[[ir.Value], bool] = lambda _: False) -> None:
        """`stays`: a shift of this value is not folded."""
        super().__init__()
        self.keep_bn = keep_bn
        self._stays = stays

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Fold the affine node in front."""
        after = linear(node)
        if after is None or only_reader(after.value) is None:
            return False
        reshape = maker(after.value, "Reshape") if after.inputs_first or node.op_type == "Gemm" else None
        value = after.value if reshape is None else source(reshape)
        inner = maker(value, "BatchNormalization", *_ARITHMETIC)
        if inner is None or only_reader(value) is None:
            return False
        affine = arithmetic(inner) or (None if self.keep_bn else batch_norm(inner))
        vectors = None if affine is None else _input_vectors(affine, after)
        if affine is None or vectors is None:
            return False
        factor, shift = vectors
        if np.any(shift) and (not after.uniform or self._stays(affine.value)):
            return False
        bias = after.response(shift) if np.any(shift) else None
        if bias is not None and after.bias is not None:
            bias = bias + after.bias
        weight = None if np.all(factor == 1) else _times(after.weight, after.per_input(factor))
        root = affine.value if reshape is None else edit.reshape(node, affine.value, canon.shape(after.value), "rows")
        merged = [inner] if reshape is None else [inner, reshape]
        return after.rebuild(node, edit, value=root, weight=weight, bias=bias, merged=merged)


def _input_vectors(affine: Affine, after: Linear) -> tuple[Array, Array] | None:
    """Factor and shift per input channel of `after`, which may read the affine value reshaped to rows (13.12)."""
    shape, read = canon.shape(affine.value), canon.shape(after.value)
    if shape == read:
        return affine.per_channel(after.axis)
    rows = math.prod(read[:-1])
    lead = next((i for i in range(len(shape)) if math.prod(shape[:i]) == rows), None)
    parts = [] if lead is None else [trailing(array, shape[lead:]) for array in (affine.factor, affine.shift)]
    vectors = [part.ravel() for part in parts if part is not None]
    return (vectors[0], vectors[1]) if len(vectors) == 2 else None


def _times(weight: Array, factor: Array) -> Array:
    """float32 weights times a float64 factor, without a float64 copy of the weights."""
    with np.errstate(over="ignore"):
        return np.multiply(weight, narrow(factor), dtype=np.float32)
