"""One step of RNN, GRU and LSTM (ONNX 22), in whatever arithmetic an exit has.

`T` is an exit's handle of a tensor. A state of None is zero, and whatever is made of it is left out.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["DEFAULTS", "STEPS", "Activation", "Cell", "Step", "activations"]

T = TypeVar("T")

DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
"""The activations of one direction where the node names none."""

_PARAMETERS: Mapping[str, tuple[float, ...]] = {
    "Sigmoid": (),
    "Tanh": (),
    "Relu": (),
    "Softplus": (),
    "Softsign": (),
    "LeakyRelu": (0.01,),
    "Elu": (1.0,),
    "ThresholdedRelu": (1.0,),
    "Affine": (1.0, 0.0),
    "HardSigmoid": (0.2, 0.5),
    "ScaledTanh": (1.0, 1.0),
}
"""Activations and the defaults of their alpha and beta."""


@dataclass(frozen=True)
class Activation:
    """A function of the gates, by ONNX's name; `parameters`: alpha and beta where it has them."""

    name: str
    parameters: tuple[float, ...]


def activations(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> list[Activation]:
    """The named functions; alpha and beta are handed to those that take them, in order (ONNX LSTM).

    Raises:
        KeyError: there is no such function.

    """
    known = {name.lower(): name for name in _PARAMETERS}
    left = list(alphas), list(betas)
    found = []
    for name in names:
        own = known[name.lower()]
        pairs = zip(left, _PARAMETERS[own], strict=False)
        found.append(Activation(own, tuple(values.pop(0) if values else default for values, default in pairs)))
    return found


class Cell(abc.ABC, Generic[T]):
    """What every step of a direction uses: weights, biases, and arithmetic. Gates are in ONNX's order."""

    late: bool
    """GRU: the reset gate comes behind the product (linear_before_reset)."""
    coupled: bool
    """LSTM: the forget gate is 1 - i (input_forget)."""
    has_peepholes: bool

    @abc.abstractmethod
    def inner(self, h: T, gates: int, first: int = 0) -> T:
        """R times h for `gates` gates from `first` on."""

    @abc.abstractmethod
    def inner_late(self, h: T | None, like: T) -> tuple[T | None, T]:
        """GRU, late: R times h for z and r, and for n with its own bias, which alone is left of an h of zero."""

    @abc.abstractmethod
    def peephole(self, gate: int, c: T | None) -> T | None:
        """P times the cell state, for the gate's share of P (order i, o, f)."""

    @abc.abstractmethod
    def total(self, *parts: T | None) -> T:
        """The sum of what is there, clipped where the node says so: the input of an activation."""

    @abc.abstractmethod
    def activate(self, index: int, x: T) -> T:
        """The direction's activation number `index`."""

    @abc.abstractmethod
    def cut(self, x: T, *gates: int) -> list[T]:
        """The last axis in parts of so many gates."""

    @abc.abstractmethod
    def add(self, a: T, b: T) -> T:
        """The sum."""

    @abc.abstractmethod
    def subtract(self, a: T, b: T) -> T:
        """The difference."""

    @abc.abstractmethod
    def multiply(self, a: T, b: T) -> T:
        """The product, element by element."""

    @abc.abstractmethod
    def complement(self, x: T) -> T:
        """What is left of 1."""


Step = Callable[[Cell[T], T, T | None, T | None], tuple[T, T | None]]
"""One step: the input part of all gates and the previous states (None = zero) -> the new states."""


def _rnn_step(cell: Cell[T], x: T, h: T | None, c: T | None) -> tuple[T, T | None]:
    """The new state f(x + R h)."""
    return cell.activate(0, cell.total(x, None if h is None else cell.inner(h, 1))), c


def _gru_step(cell: Cell[T], x: T, h: T | None, c: T | None) -> tuple[T, T | None]:
    """z, r = f(x + R h); n = g(x + R (r h)), or g(x + r (R h + b)); the new state n + z (h - n) (ONNX GRU)."""
    x_zr, x_n = cell.cut(x, 2, 1)
    hidden: T | None = h
    if cell.late:
        inner, hidden = cell.inner_late(h, x_n)
    else:
        inner = None if h is None else cell.inner(h, 2)
    z, r = cell.cut(cell.activate(0, cell.total(x_zr, inner)), 1, 1)
    reset = None if hidden is None else cell.multiply(r, hidden)
    if reset is not None and not cell.late:
        reset = cell.inner(reset, 1, first=2)
    n = cell.activate(1, cell.total(x_n, reset))
    if h is None:
        return cell.subtract(n, cell.multiply(z, n)), c
    return cell.add(n, cell.multiply(z, cell.subtract(h, n))), c


def _lstm_step(cell: Cell[T], x: T, h: T | None, c: T | None) -> tuple[T, T | None]:
    """i, f = f(x + R h + P c); c' = f c + i g(x + R h); o = f(x + R h + P c'); h' = o h(c') (ONNX LSTM)."""
    inner = None if h is None else cell.inner(h, 4)
    if cell.has_peepholes:
        x_i, x_o, x_f, x_g = cell.cut(x if inner is None else cell.add(x, inner), 1, 1, 1, 1)
        i, f = (cell.activate(0, cell.total(part, cell.peephole(k, c))) for part, k in ((x_i, 0), (x_f, 2)))
        g = cell.total(x_g)
    else:
        iof, g = cell.cut(cell.total(x, inner), 3, 1)
        i, o, f = cell.cut(cell.activate(0, iof), 1, 1, 1)
    new = cell.multiply(i, cell.activate(1, g))
    if c is not None:
        new = cell.add(cell.multiply(cell.complement(i) if cell.coupled else f, c), new)
    if cell.has_peepholes:
        o = cell.activate(0, cell.total(x_o, cell.peephole(1, new)))
    return cell.multiply(o, cell.activate(2, new)), new


STEPS = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}
