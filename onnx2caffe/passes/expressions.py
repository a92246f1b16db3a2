"""Scalar expressions taken apart, so that patterns match whatever the exporter's association and order of operands."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.polynomial import polynomial as poly

from onnx2caffe.passes.editor import Array
from onnx2caffe.passes.match import maker, only_reader, operands, scalar, source

__all__ = ["Product", "close", "linear_form", "polynomial", "product"]

_ROUNDING = 1e-6
"""Relative. Exporters write constants as float32, or with seven decimals; another constant is another function."""

_HIGHEST = 4


def close(a: float, b: float) -> bool:
    """Whether two constants are one number, written with float32's precision."""
    return math.isclose(a, b, rel_tol=_ROUNDING)


def polynomial(value: ir.Value, x: ir.Value) -> Array | None:
    """The coefficients (constant first, degree ≤ 4) of `value` as a polynomial in `x`; None if it is none.

    Follows Add, Sub, Mul, Div, Neg and whole Pow with scalar constants.
    """
    if value is x:
        return np.array([0.0, 1.0])
    number = scalar(value)
    if number is not None:
        return np.array([number])
    node = maker(value, "Add", "Div", "Mul", "Neg", "Pow", "Sub")
    parts = None if node is None else [polynomial(source(node, i), x) for i in range(len(node.inputs))]
    if node is None or parts is None or any(part is None for part in parts):
        return None
    result = _combine(node.op_type, [part for part in parts if part is not None])
    return None if result is None or len(result) > _HIGHEST + 1 else np.asarray(result)


def _combine(op: str, parts: list[Array]) -> Array | None:
    first, last = parts[0], parts[-1]
    if op == "Neg":
        return -first
    if op == "Add":
        return np.asarray(poly.polyadd(first, last))
    if op == "Sub":
        return np.asarray(poly.polysub(first, last))
    if op == "Mul":
        return np.asarray(poly.polymul(first, last))
    if len(last) > 1:
        return None
    if op == "Div":
        return first / last[0] if last[0] else None
    return np.asarray(poly.polypow(first, int(last[0]))) if last[0] in range(1, _HIGHEST + 1) else None


def linear_form(value: ir.Value) -> tuple[ir.Value, float, float]:
    """(x, a, b) with value = a·x + b for scalars a and b, x as far up as such arithmetic goes."""
    a, b = 1.0, 0.0
    while (node := maker(value, "Add", "Div", "Mul", "Neg", "Sub")) is not None:
        step = _linear_step(node)
        if step is None:
            break
        value, factor, shift = step
        a, b = a * factor, a * shift + b
    return value, a, b


def _linear_step(node: ir.Node) -> tuple[ir.Value, float, float] | None:
    for x, other in operands(node) if len(node.inputs) == 2 else [(source(node), None)]:
        number = scalar(other)
        if scalar(x) is not None or (other is not None and number is None):
            continue
        coefficients = polynomial(node.outputs[0], x)
        if coefficients is not None and len(coefficients) == 2:
            return x, float(coefficients[1]), float(coefficients[0])
    return None


@dataclass(frozen=True)
class Product:
    """A product taken apart: its computed factors and its scalar factor."""

    factors: tuple[ir.Value, ...]
    scale: float


def product(value: ir.Value) -> Product:
    """`value` as a product, following Mul and Div whose results nobody else reads."""
    node = maker(value, "Div", "Mul")
    if node is None:
        return Product((value,), 1.0)
    left, right = source(node, 0), source(node, 1)
    if node.op_type == "Div":
        number = scalar(right)
        if not number:
            return Product((value,), 1.0)
        inner = _factor(left, node)
        return Product(inner.factors, inner.scale / number)
    a, b = _factor(left, node), _factor(right, node)
    return Product(a.factors + b.factors, a.scale * b.scale)


def _factor(value: ir.Value, reader: ir.Node) -> Product:
    number = scalar(value)
    if number is not None:
        return Product((), number)
    return product(value) if only_reader(value) is reader and len(value.uses()) == 1 else Product((value,), 1.0)
