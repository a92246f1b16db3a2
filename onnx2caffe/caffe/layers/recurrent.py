"""Recurrent layers, unrolled over time.

bottoms: x (T,N,…), cont (T,N) [, static (N,…)] and, with expose_hidden, the initial states (1,N,D). Tops: (T,N,D) and,
with expose_hidden, the last states (1,N,D). cont 0 resets the state before a step. Without expose_hidden Caffe carries
the state on from one forward to the next; here every run starts from zeros, as a fresh net does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, register, require

__all__ = ["LSTM", "RNN"]


class _Recurrent(Layer):
    """What both layers share (recurrent_layer.cpp)."""

    arity: ClassVar[tuple[int, int | None]] = (2, 5)
    unread: ClassVar[frozenset[str]] = frozenset({"debug_info"})
    gates: ClassVar[int]
    states: ClassVar[int]

    num_output: int
    expose_hidden: bool

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        x, cont, *rest = bottoms
        require(self.num_output > 0, "num_output must be positive")
        require(len(x) >= 2, f"takes x of 2 axes or more, not {x}")
        require(cont == x[:2], f"cont {cont} is not (T, N) of {x}")
        steps, batch = cont
        state = (1, batch, self.num_output)
        static = self._static(len(bottoms))
        require(len(rest) == static + self._exposed, f"cannot take {len(bottoms)} bottoms")
        require(not static or rest[0][:1] == (batch,), f"static input {rest[:1]} is not of batch {batch}")
        require(all(s == state for s in rest[static:]), f"initial states are not {state}: {rest[static:]}")
        return [(steps, batch, self.num_output), *[state] * self._exposed]

    def _input_blobs(self, bottoms: Sequence[Shape]) -> list[Shape]:
        rows = self.gates * self.num_output
        blobs = [(rows, math.prod(bottoms[0][2:])), (rows,)]
        return [*blobs, (rows, math.prod(bottoms[2][1:]))] if self._static(len(bottoms)) else blobs

    @property
    def _exposed(self) -> int:
        return self.states if self.expose_hidden else 0

    def _static(self, bottoms: int) -> int:
        return int(bottoms - self._exposed > 2)

    def _inputs(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> list[Any]:
        """W x + b [+ W_static x_static] for each step: T values of (N, gates * D)."""
        steps, batch, *rest = g.shape(bottoms[0])
        weight, bias, *static = (g.const(b) for b in self.blobs[: 2 + self._static(len(bottoms))])
        rows = g.op("Reshape", bottoms[0], g.const(np.array((steps * batch, math.prod(rest)), np.int64)))
        product = g.op("Gemm", rows, weight, bias, transB=1)
        products = _steps(g, product, (steps, batch, self.gates * self.num_output))
        if not static:
            return products
        flat = g.op("Flatten", bottoms[2], axis=1)
        fixed = g.op("Gemm", flat, static[0], transB=1)
        return [g.op("Add", p, fixed) for p in products]

    def _cont(self, g: OnnxBuilder, cont: Any) -> list[Any]:
        """T values of (N, 1)."""
        return _steps(g, cont, (*g.shape(cont), 1))

    def _initial(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> list[Any]:
        """The states before the first step, (N, D) each."""
        shape = (g.shape(bottoms[1])[1], self.num_output)
        if not self.expose_hidden:
            return [g.const(np.zeros(shape, np.float32))] * self.states
        return [g.op("Reshape", b, g.const(np.array(shape, np.int64))) for b in bottoms[-self.states :]]

    def _tops(self, g: OnnxBuilder, outputs: Sequence[Any], last: Sequence[Any]) -> list[Any]:
        axis = g.const(np.array([0], np.int64))
        sequence, *states = (
            g.op("Concat", *(g.op("Unsqueeze", step, axis) for step in steps), axis=0)
            for steps in (outputs, *([s] for s in last))
        )
        return [sequence, *states[: self._exposed]]


def _steps(g: OnnxBuilder, x: Any, shape: Shape) -> list[Any]:
    """X as `shape`, cut along axis 0, that axis dropped."""
    steps = g.op("Reshape", x, g.const(np.array(shape, np.int64)))
    return [g.op("Gather", steps, g.const(np.array(t, np.int64)), axis=0) for t in range(shape[0])]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class LSTM(_Recurrent):
    """Gate order i, f, o, g (lstm_layer.cpp, lstm_unit_layer.cpp). States h, c.

    blobs: W_xc (4D, I), b_c (4D,) [, W_x_static (4D, S)], W_hc (4D, D).
    """

    type: ClassVar[str] = "LSTM"
    param_field: ClassVar[str | None] = "recurrent_param"
    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2

    num_output: int
    expose_hidden: bool = False

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [*self._input_blobs(bottoms), (4 * self.num_output, self.num_output)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        recurrent = g.const(self.blobs[-1])
        sizes = g.const(np.full(4, self.num_output))
        h, c = self._initial(g, bottoms)
        outputs = []
        for x, cont in zip(self._inputs(g, bottoms), self._cont(g, bottoms[1]), strict=True):
            gates = g.op("Add", x, g.op("Gemm", g.op("Mul", h, cont), recurrent, transB=1))
            i, f, o, new = g.op("Split", gates, sizes, axis=1, outputs=4)
            kept = g.op("Mul", g.op("Mul", cont, g.op("Sigmoid", f)), c)
            c = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", new)))
            h = g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c))
            outputs.append(h)
        return self._tops(g, outputs, [h, c])


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class RNN(_Recurrent):
    """h = tanh(W_xh x + b_h + W_hh h'), o = tanh(W_ho h + b_o) (rnn_layer.cpp). State h.

    blobs: W_xh (D, I), b_h (D,) [, W_x_static (D, S)], W_hh (D, D), W_ho (D, D), b_o (D,).
    """

    type: ClassVar[str] = "RNN"
    param_field: ClassVar[str | None] = "recurrent_param"
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1

    num_output: int
    expose_hidden: bool = False

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        d = self.num_output
        return [*self._input_blobs(bottoms), (d, d), (d, d), (d,)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        recurrent, out, out_bias = (g.const(b) for b in self.blobs[-3:])
        (h,) = self._initial(g, bottoms)
        outputs = []
        for x, cont in zip(self._inputs(g, bottoms), self._cont(g, bottoms[1]), strict=True):
            h = g.op("Tanh", g.op("Add", x, g.op("Gemm", g.op("Mul", h, cont), recurrent, transB=1)))
            outputs.append(g.op("Tanh", g.op("Gemm", h, out, out_bias, transB=1)))
        return self._tops(g, outputs, [h])
