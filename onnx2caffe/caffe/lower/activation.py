"""Activations. Facts: recipes §8."""

from __future__ import annotations

import math

import numpy as np

from onnx2caffe.caffe.layers import (
    BNLL,
    ELU,
    Clip,
    HardSigmoid,
    HardSwish,
    Mish,
    PReLU,
    ReLU,
    Sigmoid,
    Swish,
    TanH,
)
from onnx2caffe.caffe.lower.arithmetic import (
    above,
    absolute,
    difference,
    extreme,
    linear,
    negative,
    operand,
    power,
    product,
    relu,
)
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.elementwise import exp
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.broadcast import align, collapse, span

__all__: list[str] = []


@lowers("Relu")
def _relu(op: Op, net: Emitter) -> Blob:
    """ReLU (recipes 8.1)."""
    return relu(net, op.blob())


@lowers("LeakyRelu")
def _leaky_relu(op: Op, net: Emitter) -> Blob:
    """ReLU with a negative slope (recipes 8.1)."""
    return net(ReLU(negative_slope=op.attribute("alpha", 0.01)), op.blob())


@lowers("Sigmoid")
def _sigmoid(op: Op, net: Emitter) -> Blob:
    """Sigmoid (recipes 8.1)."""
    return net(Sigmoid(), op.blob())


@lowers("Tanh")
def _tanh(op: Op, net: Emitter) -> Blob:
    """TanH (recipes 8.1)."""
    return net(TanH(), op.blob())


@lowers("Softplus")
def _softplus(op: Op, net: Emitter) -> Blob:
    """BNLL (recipes 8.1)."""
    return net(BNLL(), op.blob())


@lowers("Elu")
def _elu(op: Op, net: Emitter) -> Blob:
    """ELU (recipes 8.1)."""
    return net(ELU(alpha=op.attribute("alpha", 1.0)), op.blob())


@lowers("Celu")
def _celu(op: Op, net: Emitter) -> Blob:
    """α · ELU(x / α) (recipes 8.15).

    Raises:
        Refused: alpha = 0, which ONNX leaves undefined.

    """
    alpha = op.attribute("alpha", 1.0)
    if alpha == 0:
        raise Refused("alpha = 0 divides by zero")
    return power(net, net(ELU(), power(net, op.blob(), scale=1.0 / alpha)), scale=alpha)


@lowers("Selu")
def _selu(op: Op, net: Emitter) -> Blob:
    """γ · ELU(x) (recipes 8.15)."""
    x = net(ELU(alpha=op.attribute("alpha", 1.6732632)), op.blob())
    return power(net, x, scale=op.attribute("gamma", 1.0507010))


@lowers("Softsign")
def _softsign(op: Op, net: Emitter) -> Blob:
    """`x · (1 + |x|)⁻¹` (recipes 8.17)."""
    x = op.blob()
    return product(net, [x, power(net, absolute(net, x), -1.0, shift=1.0)])


@lowers("ThresholdedRelu")
def _thresholded_relu(op: Op, net: Emitter) -> Blob:
    """`x · [x > α]` (recipes 8.17)."""
    x, alpha = op.blob(), op.attribute("alpha", 1.0)
    return product(net, [x, above(net, x, alpha)]) if alpha else relu(net, x)


@lowers("PRelu")
def _prelu(op: Op, net: Emitter) -> Blob:
    """ReLU for one slope; PReLU over channels; a Reshape that makes any other axes channels (recipes 8.2, 8.3)."""
    x, slope = op.blob(), operand(op, 1)
    if isinstance(slope, Blob):
        below = negative(net, relu(net, negative(net, x)))
        return linear(net, [(relu(net, x), 1.0), (product(net, [slope, below]), 1.0)])
    own = collapse(slope)
    if own.size == 1:
        return net(ReLU(negative_slope=own.item()), x)
    aligned = align(own.shape, len(x.shape))
    first, stop = span(aligned)
    along = x.shape[first:stop]
    weights = np.ascontiguousarray(np.broadcast_to(own.reshape(aligned[first:stop]), along), np.float32).reshape(-1)
    direct = (first, stop) == (1, 2) and len(x.shape) <= 4
    view = x.shape if direct else (math.prod(x.shape[:first]), weights.size, math.prod(x.shape[stop:]))
    return reshape(net, net(PReLU(blobs=(weights,)), reshape(net, x, view)), x.shape)


@lowers("Clip")
def _clip(op: Op, net: Emitter) -> Blob:
    """Constant bounds (ReLU6) by the recipe "clip", computed ones by MAX and negated MAX (recipes 7.14, 8.4)."""
    x, lo, hi = op.blob(), _bound(op, 1), _bound(op, 2)
    if isinstance(lo, Blob) or isinstance(hi, Blob):
        for bound, sign in ((lo, 1.0), (hi, -1.0)):
            x = x if bound is None else extreme(net, [x, bound if isinstance(bound, Blob) else np.array(bound)], sign)
        return x
    if lo is not None and hi is not None:
        lo = min(lo, hi)
    return x if lo is None and hi is None else net.recipe("clip", x, lo, hi)


def _bound(op: Op, index: int) -> Blob | float | None:
    """A bound of Clip; None when absent or infinite."""
    if not op.has(index):
        return None
    value = operand(op, index)
    if isinstance(value, Blob):
        return value
    number = float(value.item())
    outermost = float(np.finfo(np.float32).max)
    return number if abs(number) < outermost else None


@lowers("HardSigmoid", variant="HardSigmoid")
def _hard_sigmoid_layer(op: Op, net: Emitter) -> Blob:
    """The layer of that name (recipes 8.7)."""
    return net(HardSigmoid(alpha=op.attribute("alpha", 0.2), beta=op.attribute("beta", 0.5)), op.blob())


@lowers("HardSigmoid", variant="clip")
def _hard_sigmoid_clip(op: Op, net: Emitter) -> Blob:
    """α · x + β between 0 and 1 (recipes 8.7)."""
    return _hard_gate(net, op.blob(), op.attribute("alpha", 0.2), op.attribute("beta", 0.5))


def _hard_gate(net: Emitter, x: Blob, alpha: float, beta: float) -> Blob:
    return net.recipe("clip", power(net, x, scale=alpha, shift=beta), 0.0, 1.0)


@lowers("HardSwish", variant="HardSwish")
def _hard_swish_layer(op: Op, net: Emitter) -> Blob:
    """The layer of that name (recipes 8.8)."""
    return net(HardSwish(), op.blob())


@lowers("HardSwish", variant="clip")
def _hard_swish_clip(op: Op, net: Emitter) -> Blob:
    """`x · clip(x / 6 + ½, 0, 1)` (recipes 8.8)."""
    x = op.blob()
    return product(net, [x, _hard_gate(net, x, 1 / 6, 0.5)])


@lowers("Swish", variant="Sigmoid")
def _swish(op: Op, net: Emitter) -> Blob:
    """`x · Sigmoid(α · x)` (recipes 8.9)."""
    x = op.blob()
    return product(net, [x, net(Sigmoid(), power(net, x, scale=op.attribute("alpha", 1.0)))])


@lowers("Swish", variant="Swish")
def _swish_layer(op: Op, net: Emitter) -> Blob:
    """Swish, which later versions of BVLC Caffe have (recipes 8.9)."""
    return net(Swish(beta=op.attribute("alpha", 1.0)), op.blob())


@lowers("Mish", variant="Mish")
def _mish_layer(op: Op, net: Emitter) -> Blob:
    """The layer of that name (recipes 8.10)."""
    return net(Mish(), op.blob())


@lowers("Mish", variant="BNLL")
def _mish(op: Op, net: Emitter) -> Blob:
    """`x · tanh(softplus x)` (recipes 8.10)."""
    x = op.blob()
    return product(net, [x, net(TanH(), net(BNLL(), x))])


@lowers("Shrink", variant="Clip")
def _soft_shrink(op: Op, net: Emitter) -> Blob:
    """`x − clip(x, −λ, λ)` when bias = lambd (recipes 8.17)."""
    x, lambd = op.blob(), op.attribute("lambd", 0.5)
    if op.attribute("bias", 0.0) != lambd or lambd < 0:
        raise Refused(f"lambd = {lambd}, bias = {op.attribute('bias', 0.0)} is no soft shrink")
    return difference(net, x, net(Clip(min=-lambd, max=lambd), x))


@lowers("Shrink", variant="Threshold")
def _shrink(op: Op, net: Emitter) -> Blob:
    """[|x| > λ] · (x − bias · sign x) (recipes 8.17).

    Raises:
        Refused: lambd < 0, whose two branches overlap.

    """
    x, lambd, bias = op.blob(), op.attribute("lambd", 0.5), op.attribute("bias", 0.0)
    if lambd < 0:
        raise Refused(f"lambd = {lambd} is negative")
    outside = above(net, absolute(net, x), lambd)
    if bias == 0:
        return product(net, [x, outside])
    shifted = linear(net, [(x, 1.0), (above(net, x), -2.0 * bias), (np.array(bias), 1.0)])
    return product(net, [shifted, outside])


@lowers("Gelu")
def _gelu(op: Op, net: Emitter) -> Blob:
    """Relu(x) − ½|x| · erfc(|x| / √2), or x · Sigmoid(2√(2/π) · (x + 0.044715 x³)) (recipes 8.11, 8.13).

    Raises:
        Refused: approximate is neither "none" nor "tanh".

    """
    x, approximate = op.blob(), op.attribute("approximate", "none")
    if approximate == "tanh":
        k = 2.0 * math.sqrt(2.0 / math.pi)
        inner = linear(net, [(x, k), (power(net, x, 3.0), k * 0.044715)])
        return product(net, [x, net(Sigmoid(), inner)])
    if approximate != "none":
        raise Refused(f"approximate = {approximate!r}")
    size = absolute(net, x)
    tail = product(net, [size, *_erfc(net, x, size, 1.0 / math.sqrt(2.0))])
    return linear(net, [(relu(net, x), 1.0), (tail, -0.5)])


@lowers("Erf")
def _erf(op: Op, net: Emitter) -> Blob:
    """`tanh(x · q(x²))`, which is right to 1e-7 of its own size, however small (recipes 8.14: of 1)."""
    x = op.blob()
    square = power(net, x, 2.0)
    share = _ERF[0] ** (1 / 3)
    factors = [_quadratic(net, square, root, share) for root in np.roots(_ERF) if root.imag > 0]
    return net(TanH(), product(net, [x, *factors]))


_ERF = (1.41852488e-07, -5.66848083e-06, 8.76373636e-05, -6.19784768e-04, -1.91830659e-04, 0.102769056, 1.12837927)
"""q of `atanh(erf x) = x · q(x²)`, highest power first: fitted here for the least of largest relative errors of erf.
Three pairs of complex roots, hence three factors that never cancel; beyond 4.2, where erf is 1, q only grows."""

_ERFC_P = 0.3275911
_ERFC = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""erfc(u) = t · (a₅t⁴ + … + a₁) · e^(−u²), t = 1 / (1 + p·u), to 1.5e-7: formula 7.1.26 of the NBS Handbook of
Mathematical Functions (1964)."""


def _erfc(net: Emitter, x: Blob, size: Blob, scale: float) -> list[Blob]:
    """Factors whose product is erfc(scale · |x|).

    The quartic has two pairs of complex roots, hence two factors (t − re)² + im² that never cancel.
    """
    t = power(net, size, -1.0, scale=_ERFC_P * scale, shift=1.0)
    bell = exp(net, power(net, x, 2.0), scale=-scale * scale)
    first, second = (root for root in np.roots(_ERFC) if root.imag > 0)
    return [_quadratic(net, t, first, 1.0), _quadratic(net, t, second, _ERFC[0]), t, bell]


def _quadratic(net: Emitter, t: Blob, root: complex, factor: float) -> Blob:
    """`factor · ((t − re)² + im²)`."""
    return power(net, power(net, t, 2.0, shift=-root.real), scale=factor, shift=factor * root.imag**2)
