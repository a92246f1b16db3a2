"""LSTM, GRU and RNN: Caffe's LSTM layer where it fits, else one group of layers per time step (recipes 12).

Directions are lowered one by one as sequences x (T, N, I) -> y (T, N, H); states are (1, N, H).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnx2caffe.caffe.layers import BNLL, ELU, LSTM, Concat, DummyData, InnerProduct, ReLU, Scale, Sigmoid, Slice, TanH
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import absolute, at_least, difference, linear, operand, power, product
from onnx2caffe.caffe.lower.blocks import keep, reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import transpose
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.lower.slicing import gather
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.recurrent import DEFAULTS, STEPS, Activation, Cell, Step, activations

__all__: list[str] = []

_MOST_STEPS = 256
"""Longest sequence that is written step by step (about 13 layers each)."""

_UNREAD = Blob("", ())
"""Stands for an output that nobody reads."""


@dataclass(frozen=True)
class _Direction:
    """One direction's weights W (G*H, I), R (G*H, H), biases (G*H), peepholes (3*H) or None, states, activations."""

    w: Array
    r: Array
    wb: Array
    rb: Array
    peepholes: Array | None
    h: Blob | None
    c: Blob | None
    activations: tuple[Activation, ...]
    plain: bool
    reverse: bool

    @property
    def hidden(self) -> int:
        return int(self.r.shape[1])


@dataclass(frozen=True)
class _Sequence:
    """What a direction gives: all hidden states (T, N, H) in input order, the last hidden and the last cell state.

    None: nobody reads it, or the op has none.
    """

    y: Blob | None
    h: Blob | None
    c: Blob | None = None


@lowers("LSTM", variant="layer")
def _lstm_layer(op: Op, net: Emitter) -> list[Blob]:
    """Caffe's LSTM layer (recipes 12.1–12.3)."""
    return _recurrent(op, net, _caffe_lstm)


@lowers("LSTM", "GRU", "RNN", variant="unrolled")
def _unrolled(op: Op, net: Emitter) -> list[Blob]:
    """Layers for every step (recipes 12.4–12.6)."""
    return _recurrent(op, net, _unroll)


def _recurrent(op: Op, net: Emitter, lower: Callable[[Op, Emitter, Blob, _Direction], _Sequence]) -> list[Blob]:
    """All directions by `lower`, their results joined in ONNX's shapes."""
    x, batch_first = op.blob(0), bool(op.attribute("layout", 0))
    if batch_first:
        x = transpose(net, x, (1, 0, 2))
    steps, items = x.shape[:2]
    lengths = op.const(4)
    if op.has(4) and (lengths is None or np.any(lengths != steps)):
        raise Refused(f"sequence_lens (input 4) must be constant and all {steps}, the length of the sequence")
    done = [lower(op, net, x, d) for d in _directions(op, net)]
    parts = [reshape(net, s.y, (steps, 1, items, s.y.shape[2])) for s in done if s.y]
    y, h, c = (
        _joined(net, found, axis) for axis, found in ((1, parts), (0, _known(done, "h")), (0, _known(done, "c")))
    )
    if batch_first:
        y = y and transpose(net, y, (2, 0, 1, 3))
        h, c = (state and transpose(net, state, (1, 0, 2)) for state in (h, c))
    return [result or _UNREAD for result in (y, h, c)[: len(op.outputs)]]


def _known(sequences: Sequence[_Sequence], state: str) -> list[Blob]:
    return [blob for s in sequences if (blob := getattr(s, state)) is not None]


def _joined(net: Emitter, parts: Sequence[Blob], axis: int) -> Blob | None:
    """The directions' results on one axis; None when there are none."""
    return net(Concat(axis=axis), *parts) if len(parts) > 1 else next(iter(parts), None)


def _directions(op: Op, net: Emitter) -> list[_Direction]:
    """The directions' parameters.

    Raises:
        Refused: weights are computed, or an activation is unknown.

    """
    w, r = op.need_const(1, "W"), op.need_const(2, "R")
    count, rows = w.shape[:2]
    biases = op.need_const(3, "B") if op.has(3) else np.zeros((count, 2 * rows), np.float32)
    peepholes = op.need_const(7, "P") if op.has(7) else None
    activations = _activations(op, count)
    plain = _names(op, count) == list(DEFAULTS[op.type]) * count and not op.attribute("clip")
    reverse = op.attribute("direction", "forward") == "reverse"
    return [
        _Direction(
            w[i],
            r[i],
            biases[i, :rows],
            biases[i, rows:],
            None if peepholes is None else peepholes[i],
            _initial(op, net, 5, i),
            _initial(op, net, 6, i),
            activations[i],
            plain and peepholes is None and not op.attribute("input_forget", 0),
            reverse or i == 1,
        )
        for i in range(count)
    ]


def _initial(op: Op, net: Emitter, index: int, direction: int) -> Blob | None:
    """An initial state (1, N, H) of a direction; None when it is zero."""
    if not op.has(index):
        return None
    state, batch_first = operand(op, index), bool(op.attribute("layout", 0))
    if isinstance(state, np.ndarray):
        own = (state.swapaxes(0, 1) if batch_first else state)[direction : direction + 1]
        return net.recipe("constant", own) if own.any() else None
    if batch_first:
        state = transpose(net, state, (1, 0, 2))
    return keep(net, state, 0, direction, direction + 1)


def _caffe_lstm(op: Op, net: Emitter, x: Blob, d: _Direction) -> _Sequence:
    """The layer itself; `cont` 0 at the first step clears the state that the previous forward left."""
    if not d.plain:
        raise Refused("Caffe's LSTM layer has no peepholes, clip, input_forget or other activations")
    steps, items = x.shape[:2]
    order = np.array([0, 2, 1, 3])  # ONNX i, o, f, c; Caffe i, f, o, g
    w, bias, r = (a.reshape(4, d.hidden, -1)[order] for a in (d.w, d.wb + d.rb, d.r))
    blobs = w.reshape(-1, d.w.shape[1]), bias.reshape(-1), r.reshape(-1, d.hidden)
    backwards = range(steps)[::-1]
    x = gather(net, x, 0, backwards) if d.reverse else x
    c = None
    if d.h is None and d.c is None and not op.wanted(2):
        y = net(LSTM(num_output=d.hidden, blobs=blobs), x, _continues(net, steps, items, first=0.0))
        h = keep(net, y, 0, steps - 1, steps) if op.wanted(1) else None
    else:
        cont = _continues(net, steps, items, first=1.0)
        before = (s or net(DummyData(shape=(1, items, d.hidden), value=0.0)) for s in (d.h, d.c))
        y, h, c = net.many(LSTM(num_output=d.hidden, expose_hidden=True, blobs=blobs), x, cont, *before)
    if d.reverse and op.wanted(0):
        y = gather(net, y, 0, backwards)
    return _Sequence(y if op.wanted(0) else None, h if op.wanted(1) else None, c if op.wanted(2) else None)


def _continues(net: Emitter, steps: int, items: int, first: float) -> Blob:
    """The layer's second bottom (T, N): 1 = goes on from the step before, except at the first step."""
    if first == 1 or steps == 1:
        return net(DummyData(shape=(steps, items), value=first))
    start, rest = (net(DummyData(shape=(count, items), value=value)) for count, value in ((1, first), (steps - 1, 1.0)))
    return net(Concat(axis=0), start, rest)


@dataclass(frozen=True)
class _Cell(Cell[Blob]):
    """A direction's layers; states are (1, N, H)."""

    op: Op
    net: Emitter
    d: _Direction
    late: bool
    coupled: bool

    @property
    def has_peepholes(self) -> bool:  # type: ignore[override]
        return self.d.peepholes is not None

    def inner(self, h: Blob, gates: int, first: int = 0) -> Blob:
        return self._product(h, self.d.r[first * self.d.hidden : (first + gates) * self.d.hidden])

    def _product(self, h: Blob, *blobs: Array) -> Blob:
        layer = InnerProduct(num_output=len(blobs[0]), axis=2, bias_term=len(blobs) > 1, blobs=blobs)
        return self.net(layer, h)

    def inner_late(self, h: Blob | None, like: Blob) -> tuple[Blob | None, Blob]:
        own = self.d.rb[2 * self.d.hidden :]
        if h is None:
            return None, self.net.recipe("constant", np.broadcast_to(own, like.shape))
        bias = np.concatenate([np.zeros(2 * self.d.hidden, np.float32), own])
        zr, n = self.cut(self._product(h, self.d.r, bias), 2, 1)
        return zr, n

    def total(self, *parts: Blob | None) -> Blob:
        y = linear(self.net, [(part, 1.0) for part in parts if part is not None])
        limit = self.op.attribute("clip")
        return self.net.recipe("clip", y, -float(limit), float(limit)) if limit else y

    def cut(self, x: Blob, *gates: int) -> list[Blob]:
        points = np.cumsum(gates)[:-1] * self.d.hidden
        return list(self.net.many(Slice(axis=2, slice_point=tuple(int(p) for p in points), tops=len(gates)), x))

    def activate(self, index: int, x: Blob) -> Blob:
        function = self.d.activations[index]
        return _FUNCTIONS[function.name](self.net, x, *function.parameters)

    def peephole(self, gate: int, c: Blob | None) -> Blob | None:
        if self.d.peepholes is None or c is None:
            return None
        values = self.d.peepholes[gate * self.d.hidden : (gate + 1) * self.d.hidden]
        return self.net(Scale(axis=2, num_axes=1, blobs=(values,)), c)

    def add(self, a: Blob, b: Blob) -> Blob:
        return linear(self.net, [(a, 1.0), (b, 1.0)])

    def subtract(self, a: Blob, b: Blob) -> Blob:
        return difference(self.net, a, b)

    def multiply(self, a: Blob, b: Blob) -> Blob:
        return product(self.net, [a, b])

    def complement(self, x: Blob) -> Blob:
        return power(self.net, x, scale=-1.0, shift=1.0)


def _unroll(op: Op, net: Emitter, x: Blob, d: _Direction) -> _Sequence:
    """Step after step: the input parts of all steps in one InnerProduct, then the recurrent part of each."""
    steps = x.shape[0]
    if steps > _MOST_STEPS:
        raise Refused(f"{steps} steps without a Caffe layer for them (at most {_MOST_STEPS})")
    bias = d.wb + d.rb
    if _resets_late(op):
        bias = np.concatenate([bias[: 2 * d.hidden], d.wb[2 * d.hidden :]])
    parts = net(InnerProduct(num_output=len(d.w), axis=2, blobs=(d.w, bias)), x)
    inputs = net.many(Slice(axis=0, slice_point=tuple(range(1, steps)), tops=steps), parts) if steps > 1 else (parts,)
    step: Step[Blob] = STEPS[op.type]
    cell, h, c = _Cell(op, net, d, _resets_late(op), bool(op.attribute("input_forget", 0))), d.h, d.c
    states: list[Blob] = []
    for part in reversed(inputs) if d.reverse else inputs:
        h, c = step(cell, part, h, c)
        states.append(h)
    y = _joined(net, states[::-1] if d.reverse else states, 0) if op.wanted(0) else None
    return _Sequence(y, h if op.wanted(1) else None, c if op.wanted(2) else None)


def _resets_late(op: Op) -> bool:
    return op.type == "GRU" and bool(op.attribute("linear_before_reset", 0))


def _names(op: Op, directions: int) -> list[str]:
    return list(op.attribute("activations") or DEFAULTS[op.type] * directions)


def _activations(op: Op, directions: int) -> list[tuple[Activation, ...]]:
    """The activations of each direction.

    Raises:
        Refused: an activation is unknown.

    """
    try:
        found = activations(
            _names(op, directions), *(op.attribute(f"activation_{which}") or () for which in ("alpha", "beta"))
        )
    except KeyError as name:
        raise Refused(f"activations: {name} has no Caffe form here") from None
    size = len(found) // directions
    return [tuple(found[i * size : (i + 1) * size]) for i in range(directions)]


_FUNCTIONS: Mapping[str, Callable[..., Blob]] = {
    "Sigmoid": lambda net, x: net(Sigmoid(), x),
    "Tanh": lambda net, x: net(TanH(), x),
    "Relu": lambda net, x: net(ReLU(), x),
    "Softplus": lambda net, x: net(BNLL(), x),
    "Softsign": lambda net, x: product(net, [x, power(net, absolute(net, x), -1.0, 1.0, 1.0)]),
    "LeakyRelu": lambda net, x, alpha: net(ReLU(negative_slope=alpha), x),
    "Elu": lambda net, x, alpha: net(ELU(alpha=alpha), x),
    "ThresholdedRelu": lambda net, x, alpha: product(net, [x, at_least(net, x, alpha)]),
    "Affine": lambda net, x, alpha, beta: power(net, x, scale=alpha, shift=beta),
    "HardSigmoid": lambda net, x, alpha, beta: net.recipe("clip", power(net, x, scale=alpha, shift=beta), 0.0, 1.0),
    "ScaledTanh": lambda net, x, alpha, beta: power(net, net(TanH(), power(net, x, scale=beta)), scale=alpha),
}
