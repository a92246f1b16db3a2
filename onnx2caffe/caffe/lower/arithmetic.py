"""Sums, products and extremes of blobs and constants with NumPy broadcasting: the steps other lowerings are made of.

An operand is a blob or a constant array. Constants are gathered in float64 and become one Power (uniform), or one
Bias/Scale over the axes along which they vary. Facts: recipes §7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onnx2caffe.caffe.layers import AbsVal, Bias, Clip, Convolution, Eltwise, Power, ReLU, Scale, Threshold
from onnx2caffe.caffe.layers.base import Array, Layer
from onnx2caffe.caffe.lower.blocks import convolution, reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import expand
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape
from onnx2caffe.decompose.broadcast import Broadcast, align, collapse, span

__all__ = [
    "INFINITY",
    "Operand",
    "above",
    "absolute",
    "affine",
    "at_least",
    "difference",
    "extreme",
    "finite",
    "linear",
    "negative",
    "operand",
    "operands",
    "power",
    "product",
    "relu",
]

Operand = Blob | Array

INFINITY = 1e38
"""Stands for infinite constants: 0 · inf would be NaN, and a mask of several of these still adds up to a number."""


def finite(constant: Array | float) -> Array:
    """A constant in float64 without infinities."""
    return np.nan_to_num(np.asarray(constant, np.float64), nan=np.nan, posinf=INFINITY, neginf=-INFINITY)


def operand(op: Op, index: int) -> Operand:
    """Input `index` of a node: its array when constant, else its blob."""
    array = op.const(index)
    return op.blob(index) if array is None else array


def operands(op: Op) -> list[Operand]:
    """All inputs of a node."""
    return [operand(op, i) for i in range(len(op))]


def power(net: Emitter, x: Blob, exponent: float = 1.0, scale: float = 1.0, shift: float = 0.0) -> Blob:
    """(scale · x + shift) ** exponent; `x` itself when that changes nothing."""
    if (exponent, scale, shift) == (1.0, 1.0, 0.0):
        return x
    return net.recipe("power", x, exponent, scale, shift)


@recipe("power", "Power")
def _power_layer(net: Emitter, x: Blob, exponent: float, scale: float, shift: float) -> Blob:
    """One Power (recipes 7.1, 7.16)."""
    return net(Power(power=exponent, scale=scale, shift=shift), x)


@recipe("power", "Scale")
def _power_scaled(net: Emitter, x: Blob, exponent: float, scale: float, shift: float) -> Blob:
    """Scale over the channels, with a bias, then Power without a shift (nnie §1 W13)."""
    held = x.seen_as(x.own)
    if len(held.shape) < 2 or (exponent != 1.0 and shift == 0.0):
        raise Refused(f"shape {list(held.shape)} has no channels, or nothing is added before exponent {exponent}")
    weights, bias = (np.full(held.shape[1:2], number, np.float32) for number in (scale, shift))
    return power(net, net.recipe("affine", held, 1, weights, bias).seen_as(x.shape), exponent)


@recipe("power", "steps")
def _power_by_steps(net: Emitter, x: Blob, exponent: float, scale: float, shift: float) -> Blob:
    """4, 6, 8 as the square of the half, ¼ and ⅛ as the root of the double (nnie §1 E12)."""
    if exponent not in _STEPS:
        raise Refused(f"exponent {exponent} is not made of squares or roots")
    nearer = exponent / 2 if abs(exponent) > 1 else exponent * 2
    return power(net, power(net, x, nearer, scale, shift), exponent / nearer)


def negative(net: Emitter, x: Blob) -> Blob:
    """−x."""
    return power(net, x, scale=-1.0)


def relu(net: Emitter, x: Blob) -> Blob:
    """max(x, 0)."""
    return net(ReLU(), x)


def absolute(net: Emitter, x: Blob) -> Blob:
    """|x|."""
    return net(AbsVal(), x)


def above(net: Emitter, x: Blob, threshold: float = 0.0) -> Blob:
    """1 where x > threshold, else 0."""
    return net(Threshold(threshold=threshold), x)


def at_least(net: Emitter, x: Blob, threshold: float = 0.0) -> Blob:
    """1 where x ≥ threshold, else 0: Threshold at the next smaller float32 (recipes 7.20)."""
    return above(net, x, float(np.nextafter(np.float32(threshold), np.float32(-np.inf))))


def affine(net: Emitter, x: Blob, scale: Array | float = 1.0, shift: Array | float = 0.0) -> Blob:
    """`scale · x + shift` with NumPy broadcasting, in one layer (recipes 7.1-7.4).

    Power when both are uniform; else Scale or Bias over the range of axes along which they vary.
    """
    factors, terms = (collapse(finite(a)) for a in (scale, shift))
    shape = np.broadcast_shapes(x.shape, np.shape(scale), np.shape(shift))
    if factors.size == terms.size == 1:
        return expand(net, power(net, x, 1.0, factors.item(), terms.item()), shape)
    inner = Broadcast.of(x.shape, factors.shape, terms.shape)
    first, stop = span(*inner.aligned[1:])
    x = expand(net, x, inner.shape)
    along = x.shape[first:stop]
    weights, bias = (_fill(a, len(inner.shape), first, along) for a in (factors, terms))
    return expand(net, net.recipe("affine", x, first, weights, bias), shape)


@recipe("affine", "layer")
def _affine_layer(net: Emitter, x: Blob, first: int, weights: Array, bias: Array) -> Blob:
    """Scale or Bias over the axes of the weights, from axis `first` on (recipes 7.2)."""
    axes = weights.ndim
    if (weights == 1).all():
        return net(Bias(axis=first, num_axes=axes, blobs=(bias,)), x)
    if not bias.any():
        return net(Scale(axis=first, num_axes=axes, blobs=(weights,)), x)
    return net(Scale(axis=first, num_axes=axes, bias_term=True, blobs=(weights, bias)), x)


@recipe("affine", "Scale")
def _affine_channels(net: Emitter, x: Blob, first: int, weights: Array, bias: Array) -> Blob:
    """Scale over the channels, never Bias (nnie §14)."""
    if first != 1 or weights.ndim != 1:
        raise Refused(f"the constant varies along {weights.ndim} axes from axis {first} on")
    return net(Scale(bias_term=bool(bias.any()), blobs=(weights, bias) if bias.any() else (weights,)), x)


@recipe("affine", "dw")
def _affine_depthwise(net: Emitter, x: Blob, first: int, weights: Array, bias: Array) -> Blob:
    """A depthwise Convolution 1×1 with a bias over the channels of a map (recipes 7.1)."""
    if first != 1 or weights.ndim != 1 or len(x.shape) != 4:
        raise Refused(f"the constant varies along {weights.ndim} axes from axis {first} of {list(x.shape)} on")
    layer = Convolution(
        num_output=len(weights), kernel_size=(1, 1), group=len(weights), blobs=(weights.reshape(-1, 1, 1, 1), bias)
    )
    return convolution(net, x, layer)


@recipe("affine", "vector")
def _affine_vector(net: Emitter, x: Blob, first: int, weights: Array, bias: Array) -> Blob:
    """A small tensor as a vector of channels, each with its own factor and term (recipes 7.2)."""
    size = math.prod(x.shape)
    if x.own[:1] != (1,) or size > _LONGEST_VECTOR:
        raise Refused(f"a tensor {list(x.shape)} is no vector of up to {_LONGEST_VECTOR} elements")
    ones = (1,) * (len(x.shape) - first - weights.ndim)
    each = (np.broadcast_to(a.reshape(*a.shape, *ones), x.shape).reshape(-1) for a in (weights, bias))
    y = _affine_channels(net, reshape(net, x, (1, size, 1, 1)), 1, *map(np.ascontiguousarray, each))
    return reshape(net, y, x.shape)


@recipe("affine", "map")
def _affine_map(net: Emitter, x: Blob, first: int, weights: Array, bias: Array) -> Blob:
    """Eltwise with a map of the constant (recipes 7.2, 7.4)."""
    ones = (1,) * (len(x.shape) - first - weights.ndim)
    for operation, neutral, constant in (("PROD", 1, weights), ("SUM", 0, bias)):
        if (constant != neutral).any():
            values = np.broadcast_to(constant.reshape(*constant.shape, *ones), x.shape)
            x = net(Eltwise(operation=operation), x, net.recipe("constant_map", x, values).seen_as(x.shape))
    return x


def _fill(array: Array, rank: int, first: int, along: Shape) -> Array:
    """A constant repeated to the axes `along`, which start at `first`."""
    own = align(array.shape, rank)[first : first + len(along)]
    return np.ascontiguousarray(np.broadcast_to(array.reshape(own), along), np.float32)


def linear(net: Emitter, terms: Sequence[tuple[Operand, float]]) -> Blob:
    """The sum of coefficient · operand with NumPy broadcasting (recipes 7.5-7.11, 7.15)."""
    shift: Array = np.zeros((), np.float64)
    weights: dict[Blob, float] = {}
    for x, coefficient in terms:
        if isinstance(x, Blob):
            weights[x] = weights.get(x, 0.0) + coefficient
        else:
            shift = shift + coefficient * finite(x)
    if len(weights) == 1:
        ((only, coefficient),) = weights.items()
        return affine(net, only, coefficient, shift)
    return affine(net, _sum(net, weights), 1.0, shift)


def _sum(net: Emitter, weights: dict[Blob, float]) -> Blob:
    """Computed terms only: those of one shape in one Eltwise, the smaller ones added to the larger by `add`."""
    groups: dict[Shape, dict[Blob, float]] = {}
    for x, coefficient in weights.items():
        groups.setdefault(x.shape, {})[x] = coefficient
    total, *smaller = [_eltwise_sum(net, groups[s]) for s in sorted(groups, key=math.prod, reverse=True)]
    for x in smaller:
        total = net.recipe("add", total, x)
    return total


def _eltwise_sum(net: Emitter, weights: dict[Blob, float]) -> Blob:
    if len(weights) == 1:
        ((x, coefficient),) = weights.items()
        return power(net, x, scale=coefficient)
    return net.recipe("weighted_sum", list(weights), tuple(weights.values()))


@recipe("weighted_sum", "coeff")
def _sum_with_coefficients(net: Emitter, terms: Sequence[Blob], coefficients: Sequence[float]) -> Blob:
    """Eltwise SUM with a coefficient per bottom (recipes 7.11, 7.15)."""
    return net(Eltwise(operation="SUM", coeff=() if set(coefficients) == {1.0} else tuple(coefficients)), *terms)


@recipe("weighted_sum", "scaled")
def _sum_of_scaled(net: Emitter, terms: Sequence[Blob], coefficients: Sequence[float]) -> Blob:
    """Each term scaled, then Eltwise SUM without coefficients, which no compiled net has (recipes 7.11)."""
    scaled = [power(net, x, scale=c) for x, c in zip(terms, coefficients, strict=True)]
    while len(scaled) > _MOST_BOTTOMS:
        scaled = [net(Eltwise(operation="SUM"), *scaled[:_MOST_BOTTOMS]), *scaled[_MOST_BOTTOMS:]]
    return net(Eltwise(operation="SUM"), *scaled)


def difference(net: Emitter, a: Operand, b: Operand) -> Blob:
    """`a − b`."""
    return linear(net, [(a, 1.0), (b, -1.0)])


def product(net: Emitter, factors: Sequence[Operand]) -> Blob:
    """The product with NumPy broadcasting (recipes 7.1-7.10)."""
    scale: Array = np.ones((), np.float64)
    exponents: dict[Blob, int] = {}
    for x in factors:
        if isinstance(x, Blob):
            exponents[x] = exponents.get(x, 0) + 1
        else:
            scale = scale * np.asarray(x, np.float64)
    groups: dict[Shape, list[Blob]] = {}
    for x, count in exponents.items():
        groups.setdefault(x.shape, []).extend([x] * count)
    total, *smaller = [_eltwise_product(net, groups[s]) for s in sorted(groups, key=math.prod, reverse=True)]
    for x in smaller:
        total = net.recipe("multiply", total, x)
    return affine(net, total, scale)


def _eltwise_product(net: Emitter, factors: list[Blob]) -> Blob:
    if len(set(factors)) == 1:
        return power(net, factors[0], float(len(factors)))
    return net(Eltwise(operation="PROD"), *factors)


@recipe("add", "bias")
def _add_bias(net: Emitter, a: Blob, b: Blob) -> Blob:
    """Two-bottom Bias: the second bottom must equal the first one's axes from `axis` on (recipes 7.6, 7.10)."""
    return _second_bottom(net, a, b, lambda axis: Bias(axis=axis), "SUM")


@recipe("multiply", "scale")
def _multiply_scale(net: Emitter, a: Blob, b: Blob) -> Blob:
    """Two-bottom Scale: the same for products (recipes 7.5, 7.8-7.10)."""
    return _second_bottom(net, a, b, lambda axis: Scale(axis=axis), "PROD")


@recipe("add", "eltwise")
def _add_eltwise(net: Emitter, a: Blob, b: Blob) -> Blob:
    """Both repeated to the result's shape, then Eltwise."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    return net(Eltwise(operation="SUM"), expand(net, a, shape), expand(net, b, shape))


@recipe("multiply", "eltwise")
def _multiply_eltwise(net: Emitter, a: Blob, b: Blob) -> Blob:
    """Both repeated to the result's shape, then Eltwise (spatial gates: recipes 7.7)."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    return net(Eltwise(operation="PROD"), expand(net, a, shape), expand(net, b, shape))


def _second_bottom(net: Emitter, a: Blob, b: Blob, layer: Callable[[int], Layer], operation: str) -> Blob:
    """Repeat the operand that costs fewer Tiles to the full shape; the other one fills its gaps and goes second."""
    plan = Broadcast.of(a.shape, b.shape)
    costs = [len(plan.repeats(first)) + len(plan.gaps(1 - first)) for first in (0, 1)]
    first = int(costs[1] < costs[0])
    big, small = (a, b) if first == 0 else (b, a)
    big = expand(net, big, plan.shape)
    start, stop = span(plan.aligned[1 - first])
    small = reshape(net, small, plan.aligned[1 - first][start:stop])
    small = expand(net, small, plan.shape[start:stop])
    if small.shape == big.shape:
        return net(Eltwise(operation=operation), big, small)
    return net(layer(start), big, small)


def extreme(net: Emitter, items: Sequence[Operand], sign: float) -> Blob:
    """The largest (sign 1) or smallest (sign −1) of the operands, element by element (recipes 7.13, 7.14)."""
    fold = np.maximum if sign > 0 else np.minimum
    constants = [np.asarray(x) for x in items if not isinstance(x, Blob)]
    blobs = list(dict.fromkeys(x for x in items if isinstance(x, Blob)))
    shape = np.broadcast_shapes(*(x.shape for x in items))
    bound = None
    if constants:
        bound = collapse(np.asarray(fold.reduce(np.broadcast_arrays(*constants)), np.float32))
    if len(blobs) == 1 and bound is not None and bound.size == 1:
        limit = bound.item()
        lo, hi = (limit, None) if sign > 0 else (None, limit)
        return expand(net, net.recipe("clip", blobs[0], lo, hi), shape)
    bottoms = [expand(net, power(net, x, scale=sign), shape) for x in blobs]
    if bound is not None:
        bottoms.append(net.recipe("constant", np.broadcast_to(sign * bound, shape)))
    if len(bottoms) == 1:
        return power(net, bottoms[0], scale=sign)
    return power(net, net(Eltwise(operation="MAX"), *bottoms), scale=sign)


_LONGEST_VECTOR = 8192
"""Vectors of 9585 channels were compiled (nnie §4.3)."""

_MOST_BOTTOMS = 32
"""More bottoms than this no source says the NNIE takes."""

_STEPS = frozenset(sign * number for number in (4.0, 6.0, 8.0, 0.25, 0.125) for sign in (1, -1))
"""Exponents that halving or doubling brings to ±3, ±2 or ±½."""

_FINE = 8.0
"""Bounds up to this lose at most 1e-6 in bound − (bound − x)."""

_COARSE = 2.0**16
"""Bounds beyond this lose more than 1/256 of x."""


@recipe("clip", "ReLU")
def _clip_relu(net: Emitter, x: Blob, lo: float | None, hi: float | None) -> Blob:
    """One ReLU for lo = 0 alone; x − max(x, 0) for hi = 0 alone."""
    if (lo, hi) == (0.0, None):
        return relu(net, x)
    if (lo, hi) == (None, 0.0):
        return difference(net, x, relu(net, x))
    raise Refused(f"bounds {lo}, {hi} are not 0 alone")


@recipe("clip", "Clip")
def _clip_layer(net: Emitter, x: Blob, lo: float | None, hi: float | None) -> Blob:
    """Caffe's own layer, which wants both bounds."""
    return net(Clip(min=-math.inf if lo is None else lo, max=math.inf if hi is None else hi), x)


@recipe("clip", "difference")
def _clip_difference(net: Emitter, x: Blob, lo: float | None, hi: float | None) -> Blob:
    """`hi − relu((hi − lo) − relu(x − lo))`: right for any x, to a rounding of the bounds (recipes 8.5)."""
    if lo is None or hi is None or max(abs(lo), abs(hi)) > _FINE:
        raise Refused(f"bounds {lo}, {hi} would cost accuracy in differences")
    y = relu(net, power(net, x, shift=-lo))
    return power(net, relu(net, power(net, y, scale=-1.0, shift=hi - lo)), scale=-1.0, shift=hi)


@recipe("clip", "maximum")
def _clip_maximum(net: Emitter, x: Blob, lo: float | None, hi: float | None) -> Blob:
    """Bit-exact: Eltwise MAX with constant blobs, the upper bound negated (recipes 7.14)."""
    if lo is not None:
        x = relu(net, x) if lo == 0 else net(Eltwise(operation="MAX"), x, _filled(net, x, lo))
    if hi is not None:
        y = negative(net, x)
        x = negative(net, net(Eltwise(operation="MAX"), y, _filled(net, y, -hi)))
    return x


@recipe("clip", "rectified")
def _clip_rectified(net: Emitter, x: Blob, lo: float | None, hi: float | None) -> Blob:
    """`relu(x − lo) − relu(x − hi) + lo`: the least loss at 8 bits (recipes 8.4); an upper bound of 0 stays exact."""
    if max(abs(lo or 0.0), abs(hi or 0.0)) > _COARSE:
        raise Refused(f"bounds {lo}, {hi} are so far away that x − bound loses x")
    if hi == 0.0:
        return _clip_rectified(net, difference(net, x, relu(net, x)), lo, None)
    y = x if lo is None else power(net, relu(net, power(net, x, shift=-lo)), shift=lo if hi is None else 0.0)
    if hi is None:
        return y
    return linear(net, [(y, 1.0), (relu(net, power(net, x, shift=-hi)), -1.0), (np.array(lo or 0.0), 1.0)])


def _filled(net: Emitter, like: Blob, value: float) -> Blob:
    blob: Blob = net.recipe("constant", np.broadcast_to(np.float32(value), like.shape))
    return blob
