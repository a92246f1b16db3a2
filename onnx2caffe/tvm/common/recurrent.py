"""LSTM, GRU and RNN, step by step (neither dialect has them): the input part of all steps is one product."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnx2caffe.decompose.recurrent import DEFAULTS, STEPS, Activation, Cell, activations
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.common.activation import above, below, exponential, ramp, softplus_of, softsign_of
from onnx2caffe.tvm.common.indices import computed
from onnx2caffe.tvm.common.layout import sliced
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []

_MOST_STEPS = 256
"""Longest sequence that is written step by step (about 15 calls each)."""


@emits(BOTH, "LSTM", "GRU", "RNN")
def recurrent(op: Op, net: Net) -> list[Value]:
    """All directions, their results joined in ONNX's shapes."""
    x, batch_first = op.value(0), bool(op.attribute("layout", 0))
    if batch_first:
        x = net.transpose(x, (1, 0, 2))
    steps = x.shape[0]
    if steps > _MOST_STEPS:
        raise Refused(f"{steps} steps, each of which becomes calls of its own (at most {_MOST_STEPS})")
    count = op.shape(1)[0]
    done = [_direction(op, net, x, i, turned) for i, turned in enumerate(_turned(op, count))]
    y = net.concat([parts[0] for parts in done], 1) if count > 1 else done[0][0]
    states = [net.concat([parts[k] for parts in done], 0) if count > 1 else done[0][k] for k in (1, 2)]
    if batch_first:
        y = net.transpose(y, (2, 0, 1, 3))
        states = [net.transpose(state, (1, 0, 2)) for state in states]
    return [y, *states][: len(op.node.outputs)]


def _turned(op: Op, count: int) -> list[bool]:
    """Which directions run backwards."""
    return [False, True] if count == 2 else [op.attribute("direction", "forward") == "reverse"]


@dataclass(frozen=True)
class _Direction(Cell[Value]):
    """One direction: R turned (H, G*H), the bias of the late reset (H) or None, peepholes (3*H) or None."""

    net: Net
    recurrence: Value
    late_bias: Value | None
    peepholes: Value | None
    functions: Sequence[Activation]
    clip: float
    late: bool
    coupled: bool

    @property
    def hidden(self) -> int:
        return self.recurrence.shape[0]

    @property
    def has_peepholes(self) -> bool:  # type: ignore[override]
        return self.peepholes is not None

    def inner(self, h: Value, gates: int, first: int = 0) -> Value:
        weights = _part(self.net, self.recurrence, 1, first * self.hidden, (first + gates) * self.hidden)
        return self.net.matmul(h, weights)

    def inner_late(self, h: Value | None, like: Value) -> tuple[Value | None, Value]:
        assert self.late_bias is not None
        if h is None:
            return None, self.net.broadcast(self.net.reshape(self.late_bias, (1, self.hidden)), like.shape)
        zr, n = self.cut(self.inner(h, 3), 2, 1)
        return zr, self.add(n, self.late_bias)

    def peephole(self, gate: int, c: Value | None) -> Value | None:
        if self.peepholes is None or c is None:
            return None
        return self.multiply(c, _part(self.net, self.peepholes, 0, gate * self.hidden, (gate + 1) * self.hidden))

    def total(self, *parts: Value | None) -> Value:
        first, *others = (part for part in parts if part is not None)
        for other in others:
            first = self.add(first, other)
        return self.net("clip", first, -self.clip, self.clip) if self.clip else first

    def activate(self, index: int, x: Value) -> Value:
        function = self.functions[index]
        return _FUNCTIONS[function.name](self.net, x, *function.parameters)

    def cut(self, x: Value, *gates: int) -> list[Value]:
        ends = (np.cumsum(gates) * self.hidden).tolist()
        return [_part(self.net, x, 1, end - count * self.hidden, end) for end, count in zip(ends, gates, strict=True)]

    def add(self, a: Value, b: Value) -> Value:
        return self.net("add", a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        return self.net("subtract", a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        return self.net("multiply", a, b)

    def complement(self, x: Value) -> Value:
        return self.net("subtract", self.net.like(1, x), x)


def _direction(op: Op, net: Net, x: Value, index: int, turned: bool) -> tuple[Value, Value, Value]:
    """All hidden states (T, 1, N, H); the last hidden and the last cell state (1, N, H), which only an LSTM has."""
    w, r = (net.transpose(_of(net, op.value(i), index), (1, 0)) for i in (1, 2))
    late = op.type == "GRU" and bool(op.attribute("linear_before_reset", 0))
    bias, late_bias = _biases(op, net, index, late)
    cell = _Direction(
        net,
        r,
        late_bias,
        _of(net, op.value(7), index) if op.has(7) else None,
        _functions(op, index),
        float(op.attribute("clip", 0.0)),
        late,
        bool(op.attribute("input_forget", 0)),
    )
    steps, items, size = x.shape
    parts = net.matmul(net.reshape(x, (steps * items, size)), w)
    parts = net.reshape(net("add", parts, bias) if bias else parts, (steps, items, w.shape[1]))
    h, c = (_initial(op, net, i, index, (items, cell.hidden)) for i in (5, 6))
    zero = net.broadcast(net.like(0, x), (items, cell.hidden)) if op.has(4) else None
    ys: dict[int, Value] = {}
    for time in reversed(range(steps)) if turned else range(steps):
        part = net.reshape(_part(net, parts, 0, time, time + 1), (items, w.shape[1]))
        new_h, new_c = STEPS[op.type](cell, part, h, c)
        ys[time] = new_h
        if zero is not None:
            inside = net.reshape(_runs(op, net, time), (items, 1))
            ys[time], new_h = (net("where", inside, new_h, old or zero, dtype=x.dtype) for old in (zero, h))
            new_c = new_c and net("where", inside, new_c, c or zero, dtype=x.dtype)
        h, c = new_h, new_c
    assert h is not None
    rows = [net.reshape(ys[time], (1, 1, items, cell.hidden)) for time in range(steps)]
    state = (1, items, cell.hidden)
    return net.concat(rows, 0) if steps > 1 else rows[0], net.reshape(h, state), net.reshape(c or h, state)


def _runs(op: Op, net: Net, time: int) -> Value:
    """Which items' sequences are longer than `time`: behind its end a state stays, and there is no output."""
    lengths = op.value(4)
    return net("greater", lengths, net.like(time, lengths), dtype="bool")


def _of(net: Net, x: Value, index: int) -> Value:
    """One direction's share of an input."""
    return net.reshape(_part(net, x, 0, index, index + 1), x.shape[1:])


def _biases(op: Op, net: Net, index: int, late: bool) -> tuple[Value | None, Value | None]:
    """The sum of both biases, without the recurrent one that a late reset gate has in front of it; and that."""
    if not op.has(3):
        return None, net.const(np.zeros(op.shape(2)[2], np.float32)) if late else None
    both = _of(net, op.value(3), index)
    rows, hidden = both.shape[0] // 2, op.shape(2)[2]
    own, recurrent = _part(net, both, 0, 0, rows), _part(net, both, 0, rows, 2 * rows)
    if not late:
        return computed(net, "add", own, recurrent), None
    gates = computed(net, "add", _part(net, own, 0, 0, 2 * hidden), _part(net, recurrent, 0, 0, 2 * hidden))
    behind = _part(net, recurrent, 0, 2 * hidden, 3 * hidden)
    return net.concat([gates, _part(net, own, 0, 2 * hidden, 3 * hidden)], 0), behind


def _initial(op: Op, net: Net, index: int, direction: int, shape: tuple[int, int]) -> Value | None:
    """An initial state (N, H) of a direction; None when it is zero."""
    if not op.has(index):
        return None
    state = op.value(index)
    if op.attribute("layout", 0):
        state = net.transpose(state, (1, 0, 2))
    return net.reshape(_part(net, state, 0, direction, direction + 1), shape)


def _functions(op: Op, direction: int) -> list[Activation]:
    names = list(op.attribute("activations") or DEFAULTS[op.type] * op.shape(1)[0])
    try:
        found = activations(names, *(op.attribute(f"activation_{which}") or () for which in ("alpha", "beta")))
    except KeyError as name:
        raise Refused(f"activations: {name} is unknown") from None
    each = len(DEFAULTS[op.type])
    return found[direction * each : (direction + 1) * each]


def _part(net: Net, x: Value, axis: int, first: int, stop: int) -> Value:
    return sliced(net, x, axis, range(first, stop))


def _affine(net: Net, x: Value, alpha: float, beta: float) -> Value:
    return net("add", net("multiply", x, net.like(alpha, x)), net.like(beta, x))


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "Sigmoid": lambda net, x: net("sigmoid", x),
    "Tanh": lambda net, x: net("tanh", x),
    "Relu": lambda net, x: net.relu(x),
    "Softplus": softplus_of,
    "Softsign": softsign_of,
    "LeakyRelu": lambda net, x, alpha: below(net, x, 0, net("multiply", x, net.like(alpha, x)), x),
    "Elu": lambda net, x, alpha: below(net, x, 0, exponential(net, x, alpha), x),
    "ThresholdedRelu": above,
    "Affine": _affine,
    "HardSigmoid": ramp,
    "ScaledTanh": lambda net, x, alpha, beta: _affine(net, net("tanh", _affine(net, x, beta, 0.0)), alpha, 0.0),
}
