"""What is known of a canonical value's numbers without running it: bounds, and whether they are whole.

Rounding, casts and computed powers are exact in Caffe only under such bounds. Unknown is always a right answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon

__all__ = ["UNKNOWN", "Range", "limits", "of", "unwrapped"]

Array = np.ndarray[Any, Any]

_DEPTH = 16
"""How many producers the analysis looks back."""

_TINY = math.ulp(0.0)


@dataclass(frozen=True)
class Range:
    """lo ≤ every element ≤ hi; `whole`: every element is an integer."""

    lo: float = -math.inf
    hi: float = math.inf
    whole: bool = False

    @property
    def bounded(self) -> bool:
        """Whether both bounds are finite."""
        return math.isfinite(self.lo) and math.isfinite(self.hi)

    def within(self, dtype: ir.DataType) -> bool:
        """Whether every element is a value of an integer type."""
        low, high = limits(dtype)
        return self.whole and low <= self.lo and self.hi <= high

    def clip(self, low: Range, high: Range) -> Range:
        """The range of min(max(x, low), high)."""
        whole = self.whole and low.whole and high.whole
        return Range(min(max(self.lo, low.lo), high.lo), min(max(self.hi, low.hi), high.hi), whole)


UNKNOWN = Range()


def limits(dtype: ir.DataType) -> tuple[float, float]:
    """The least and the greatest number of an integer type."""
    bits = dtype.bitwidth
    return (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if dtype.is_signed() else (0.0, 2.0**bits - 1)


_NO_LOW = Range(-math.inf, -math.inf, whole=True)
_NO_HIGH = Range(math.inf, math.inf, whole=True)


def of(value: ir.Value | None, depth: int = _DEPTH) -> Range:
    """The range of a value, from its constant, its element type and its producers."""
    if value is None:
        return UNKNOWN
    if (array := canon.const(value)) is not None:
        return _of_array(array)
    declared = _of_dtype(value.dtype)
    node = value.producer()
    if node is None or depth == 0:
        return declared
    found = unwrapped(value, node, depth)
    if math.isnan(found.lo) or math.isnan(found.hi) or _wraps(found, declared):
        return declared
    return Range(max(declared.lo, found.lo), min(declared.hi, found.hi), declared.whole or found.whole)


def unwrapped(value: ir.Value, node: ir.Node, depth: int = _DEPTH) -> Range:
    """The range of what `node` computes for `value`, before an integer type wraps it around."""
    rule = _RULES.get(node.op_type) if value is node.outputs[0] else _SECOND_RULES.get(node.op_type)
    return rule(node, depth - 1) if rule else UNKNOWN


def _wraps(found: Range, declared: Range) -> bool:
    """Whether a bound found lies outside the type, which then wraps around to any of its numbers."""
    return (-math.inf < found.lo < declared.lo) or (declared.hi < found.hi < math.inf)


def _of_array(array: Array) -> Range:
    numbers = array.astype(np.float64)
    if not array.size or np.isnan(numbers).any():
        return UNKNOWN
    return Range(float(numbers.min()), float(numbers.max()), bool((numbers == np.round(numbers)).all()))


def _of_dtype(dtype: ir.DataType | None) -> Range:
    if dtype == ir.DataType.BOOL:
        return Range(0, 1, whole=True)
    if dtype is None or not dtype.is_integer():
        return UNKNOWN
    return Range(*limits(dtype), whole=True)


_Rule = Callable[[ir.Node, int], Range]


def _fixed(lo: float, hi: float, *, whole: bool = False) -> _Rule:
    return lambda node, depth: Range(lo, hi, whole)


def _same(node: ir.Node, depth: int) -> Range:
    return of(node.inputs[0], depth)


def _union(node: ir.Node, depth: int) -> Range:
    parts = [of(v, depth) for v in node.inputs]
    return Range(min(p.lo for p in parts), max(p.hi for p in parts), all(p.whole for p in parts))


def _mean(node: ir.Node, depth: int) -> Range:
    return replace(_same(node, depth), whole=False)


def _rounded(node: ir.Node, depth: int) -> Range:
    x = _same(node, depth)
    return Range(float(np.floor(x.lo)), float(np.ceil(x.hi)), whole=True)


def _cast(node: ir.Node, depth: int) -> Range:
    """Truncated between the rounded bounds; integers that do not fit wrap, and bool is no number."""
    target = node.outputs[0].dtype
    if target is None or not target.is_integer():
        return UNKNOWN if target == ir.DataType.BOOL else _same(node, depth)
    rounded = _rounded(node, depth)
    return rounded if rounded.within(target) else UNKNOWN


def _relu(node: ir.Node, depth: int) -> Range:
    return _same(node, depth).clip(Range(0, 0, whole=True), _NO_HIGH)


def _absolute(node: ir.Node, depth: int) -> Range:
    x = _same(node, depth)
    return Range(max(x.lo, -x.hi, 0.0), max(abs(x.lo), abs(x.hi)), x.whole)


def _negative(node: ir.Node, depth: int) -> Range:
    x = _same(node, depth)
    return Range(-x.hi, -x.lo, x.whole)


def _clip(node: ir.Node, depth: int) -> Range:
    x = _same(node, depth)
    low, high = (*node.inputs[1:], None, None)[:2]
    return x.clip(of(low, depth) if low else _NO_LOW, of(high, depth) if high else _NO_HIGH)


def _add(node: ir.Node, depth: int) -> Range:
    a, b = (of(v, depth) for v in node.inputs)
    return Range(a.lo + b.lo, a.hi + b.hi, a.whole and b.whole)


def _sub(node: ir.Node, depth: int) -> Range:
    a, b = (of(v, depth) for v in node.inputs)
    return Range(a.lo - b.hi, a.hi - b.lo, a.whole and b.whole)


def _mul(node: ir.Node, depth: int) -> Range:
    a, b = (of(v, depth) for v in node.inputs)
    whole = a.whole and b.whole
    if not (a.bounded and b.bounded):
        return replace(Range(0.0) if min(a.lo, b.lo) >= 0 else UNKNOWN, whole=whole)
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return Range(min(corners), max(corners), whole)


def _index(node: ir.Node, depth: int) -> Range:
    x = node.inputs[0]
    if x is None or x.shape is None:
        return UNKNOWN
    return Range(0, canon.shape(x)[canon.attribute(node, "axis", 0)] - 1, whole=True)


_SECOND_RULES: dict[str, _Rule] = {"TopK": _index, "MaxPool": _fixed(0, math.inf, whole=True)}
"""For a node's second output."""

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(
        ("Reshape", "Transpose", "Slice", "Split", "Gather", "Expand", "Tile", "DepthToSpace", "SpaceToDepth"), _same
    ),
    **dict.fromkeys(("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "TopK"), _same),
    **dict.fromkeys(("ArgMax", "ArgMin"), _index),
    **dict.fromkeys(("GlobalAveragePool", "ReduceMean"), _mean),
    "Cast": _cast,
    **dict.fromkeys(("Concat", "Max", "Min"), _union),
    **dict.fromkeys(("Floor", "Ceil", "Round"), _rounded),
    **dict.fromkeys(("Exp", "Softplus"), _fixed(_TINY, math.inf)),
    "Sigmoid": _fixed(_TINY, 1),
    **dict.fromkeys(("Softmax", "HardSigmoid"), _fixed(0, 1)),
    **dict.fromkeys(("Sqrt", "ReduceL1", "ReduceL2", "ReduceSumSquare"), _fixed(0, math.inf)),
    **dict.fromkeys(("Equal", "Greater", "Less", "And", "Or", "Not", "Xor", "Hardmax"), _fixed(0, 1, whole=True)),
    "Tanh": _fixed(-1, 1),
    "Sign": _fixed(-1, 1, whole=True),
    "Relu": _relu,
    "Abs": _absolute,
    "Clip": _clip,
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "Neg": _negative,
}
