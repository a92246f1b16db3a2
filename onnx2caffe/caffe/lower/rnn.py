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

__all__: list[str] = []

_MOST_STEPS = 256
"""Longest sequence that is written step by step (about 13 layers each)."""

_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}

_UNREAD = Blob("", ())
"""Stands for an output that nobody reads."""

_Activation = Callable[[Emitter, Blob], Blob]


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
    activations: tuple[_Activation, ...]
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
    plain = _names(op, count) == list(_DEFAULTS[op.type]) * count and not op.attribute("clip")
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


_Step = Callable[["_Cell", Blob, Blob | None, Blob | None], tuple[Blob, Blob | None]]
"""One step: the input part of all gates and the previous states (None = zero) -> the new states."""


@dataclass(frozen=True)
class _Cell:
    """What every step of a direction uses."""

    op: Op
    net: Emitter
    d: _Direction

    def inner(self, h: Blob, gates: int, first: int = 0, bias: Array | None = None) -> Blob:
        """R times h, plus a bias, for `gates` gates from `first` on."""
        weights = self.d.r[first * self.d.hidden : (first + gates) * self.d.hidden]
        blobs = (weights,) if bias is None else (weights, bias)
        return self.net(InnerProduct(num_output=len(weights), axis=2, bias_term=bias is not None, blobs=blobs), h)

    def total(self, *parts: Blob | None) -> Blob:
        """The sum of what is there, clipped where the node says so: the input of an activation."""
        y = linear(self.net, [(part, 1.0) for part in parts if part is not None])
        limit = self.op.attribute("clip")
        return self.net.recipe("clip", y, -float(limit), float(limit)) if limit else y

    def cut(self, x: Blob, *gates: int) -> list[Blob]:
        """The last axis in parts of so many gates."""
        points = np.cumsum(gates)[:-1] * self.d.hidden
        return list(self.net.many(Slice(axis=2, slice_point=tuple(int(p) for p in points), tops=len(gates)), x))

    def activate(self, index: int, x: Blob) -> Blob:
        """The direction's activation number `index`."""
        return self.d.activations[index](self.net, x)

    def peephole(self, gate: int, c: Blob | None) -> Blob | None:
        """P times the cell state, for the gate's share of P (order i, o, f)."""
        if self.d.peepholes is None or c is None:
            return None
        values = self.d.peepholes[gate * self.d.hidden : (gate + 1) * self.d.hidden]
        return self.net(Scale(axis=2, num_axes=1, blobs=(values,)), c)


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
    step = _STEPS[op.type]
    cell, h, c = _Cell(op, net, d), d.h, d.c
    states: list[Blob] = []
    for part in reversed(inputs) if d.reverse else inputs:
        h, c = step(cell, part, h, c)
        states.append(h)
    y = _joined(net, states[::-1] if d.reverse else states, 0) if op.wanted(0) else None
    return _Sequence(y, h if op.wanted(1) else None, c if op.wanted(2) else None)


def _resets_late(op: Op) -> bool:
    return op.type == "GRU" and bool(op.attribute("linear_before_reset", 0))


def _rnn_step(cell: _Cell, x: Blob, h: Blob | None, c: Blob | None) -> tuple[Blob, Blob | None]:
    """The new state f(x + R h)."""
    return cell.activate(0, cell.total(x, h and cell.inner(h, 1))), c


def _gru_step(cell: _Cell, x: Blob, h: Blob | None, c: Blob | None) -> tuple[Blob, Blob | None]:
    """z, r = f(x + R h); n = g(x + R (r h)), or g(x + r (R h + b)); the new state n + z (h - n) (ONNX GRU)."""
    net, late = cell.net, _resets_late(cell.op)
    x_zr, x_n = cell.cut(x, 2, 1)
    if not late:
        inner, hidden = h and cell.inner(h, 2), h
    elif h is None:
        inner, hidden = None, net.recipe("constant", np.broadcast_to(cell.d.rb[2 * cell.d.hidden :], x_n.shape))
    else:
        bias = np.concatenate([np.zeros(2 * cell.d.hidden, np.float32), cell.d.rb[2 * cell.d.hidden :]])
        inner, hidden = cell.cut(cell.inner(h, 3, bias=bias), 2, 1)
    z, r = cell.cut(cell.activate(0, cell.total(x_zr, inner)), 1, 1)
    reset = hidden and product(net, [r, hidden])
    n = cell.activate(1, cell.total(x_n, reset if late else reset and cell.inner(reset, 1, first=2)))
    if h is None:
        return difference(net, n, product(net, [z, n])), c
    return linear(net, [(n, 1.0), (product(net, [z, difference(net, h, n)]), 1.0)]), c


def _lstm_step(cell: _Cell, x: Blob, h: Blob | None, c: Blob | None) -> tuple[Blob, Blob | None]:
    """i, f = f(x + R h + P c); c' = f c + i g(x + R h); o = f(x + R h + P c'); h' = o h(c') (ONNX LSTM)."""
    net, inner = cell.net, h and cell.inner(h, 4)
    o: Blob | None = None
    if cell.d.peepholes is None:
        iof, g = cell.cut(cell.total(x, inner), 3, 1)
        i, o, f = cell.cut(cell.activate(0, iof), 1, 1, 1)
    else:
        x_i, x_o, x_f, x_g = cell.cut(x if inner is None else linear(net, [(x, 1.0), (inner, 1.0)]), 1, 1, 1, 1)
        i, f = (cell.activate(0, cell.total(part, cell.peephole(k, c))) for part, k in ((x_i, 0), (x_f, 2)))
        g = cell.total(x_g)
    new = product(net, [i, cell.activate(1, g)])
    if c is not None:
        f = power(net, i, scale=-1.0, shift=1.0) if cell.op.attribute("input_forget", 0) else f
        new = linear(net, [(product(net, [f, c]), 1.0), (new, 1.0)])
    if o is None:
        o = cell.activate(0, cell.total(x_o, cell.peephole(1, new)))
    return product(net, [o, cell.activate(2, new)]), new


_STEPS: Mapping[str, _Step] = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}


def _names(op: Op, directions: int) -> list[str]:
    return list(op.attribute("activations") or _DEFAULTS[op.type] * directions)


def _activations(op: Op, directions: int) -> list[tuple[_Activation, ...]]:
    """The activations of each direction; alpha and beta are handed to those that take them, in order (ONNX LSTM)."""
    names = _names(op, directions)
    alphas, betas = (list(op.attribute(f"activation_{which}") or ()) for which in ("alpha", "beta"))
    made = []
    for name in names:
        found = next((key for key in _MAKERS if key.lower() == name.lower()), None)
        if found is None:
            raise Refused(f"activations: {name!r} has no Caffe form here")
        defaults, make = _MAKERS[found]
        own = [(v.pop(0) if v else d) for v, d in zip((alphas, betas), defaults, strict=False)]
        made.append(make(*own))
    size = len(names) // directions
    return [tuple(made[i * size : (i + 1) * size]) for i in range(directions)]


def _hard_sigmoid(alpha: float, beta: float) -> _Activation:
    return lambda net, x: net.recipe("clip", power(net, x, scale=alpha, shift=beta), 0.0, 1.0)


def _scaled_tanh(alpha: float, beta: float) -> _Activation:
    return lambda net, x: power(net, net(TanH(), power(net, x, scale=beta)), scale=alpha)


def _softsign() -> _Activation:
    return lambda net, x: product(net, [x, power(net, absolute(net, x), -1.0, 1.0, 1.0)])


_MAKERS: Mapping[str, tuple[tuple[float, ...], Callable[..., _Activation]]] = {
    "Sigmoid": ((), lambda: lambda net, x: net(Sigmoid(), x)),
    "Tanh": ((), lambda: lambda net, x: net(TanH(), x)),
    "Relu": ((), lambda: lambda net, x: net(ReLU(), x)),
    "Softplus": ((), lambda: lambda net, x: net(BNLL(), x)),
    "Softsign": ((), _softsign),
    "LeakyRelu": ((0.01,), lambda alpha: lambda net, x: net(ReLU(negative_slope=alpha), x)),
    "Elu": ((1.0,), lambda alpha: lambda net, x: net(ELU(alpha=alpha), x)),
    "ThresholdedRelu": ((1.0,), lambda alpha: lambda net, x: product(net, [x, at_least(net, x, alpha)])),
    "Affine": ((1.0, 0.0), lambda alpha, beta: lambda net, x: power(net, x, scale=alpha, shift=beta)),
    "HardSigmoid": ((0.2, 0.5), _hard_sigmoid),
    "ScaledTanh": ((1.0, 1.0), _scaled_tanh),
}
