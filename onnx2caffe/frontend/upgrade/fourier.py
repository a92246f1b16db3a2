"""Fourier transforms of known length: products with constant matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import FOLD_LIMIT, Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []

Matrix = np.ndarray[Any, np.dtype[np.float32]]


@upgrades("DFT", 17, 20)
def dft(node: Reader, build: Builder) -> ir.Value:
    """Data (…, n, …, 1 or 2) along one axis → (…, k, …, 2), or the real signal (…, k, …, 1) of a one-sided spectrum."""
    inverse, onesided = bool(node.integer("inverse", 0)), bool(node.integer("onesided", 0))
    x, rank = node.input(), len(node.shape())
    given = node.int_list(2, "axis") or [-2]
    axis = node.axis(1) if node.version == 17 else node.positive(given[0], rank)
    if axis == rank - 1:
        raise Opaque("a Fourier transform of the last axis, which holds the parts of complex numbers")
    steps, parts = node.shape()[axis], node.shape()[-1]
    (length,) = node.int_list(1, "length") or [2 * (steps - 1) if inverse and onesided else steps]
    order = [*(i for i in range(rank) if i != axis)]
    order.insert(rank - 2, axis)
    y = _transformed(build, build.transpose(x, order), _matrix(steps, parts, length, inverse, onesided))
    return build.transpose(y, [order.index(i) for i in range(rank)])


@upgrades("STFT", 17)
def stft(node: Reader, build: Builder) -> ir.Value:
    """The signal (batch, n, 1 or 2) in overlapping frames, each under the window → (batch, frames, k, 2)."""
    _, steps, parts = node.shape()
    step = (node.int_list(1, "step") or [0])[0]
    window = node.optional(2)
    (length,) = node.int_list(3, "length") or ((steps,) if window is None else canon.shape(window))
    onesided = bool(node.integer("onesided", 1))
    if not 0 < length <= steps or step < 1:
        raise Opaque(f"frames of {length} in steps of {step} from a signal of {steps}")
    starts = np.arange(0, steps - length + 1, step, dtype=np.int64)
    frames = build.op("Gather", node.input(), build.const(starts[:, None] + np.arange(length), "frames"), axis=1)
    if window is not None:
        frames = build.op("Mul", frames, build.reshape(window, (length, 1)))
    return _transformed(build, frames, _matrix(length, parts, length, False, onesided))


def _transformed(build: Builder, x: ir.Value, matrix: Matrix) -> ir.Value:
    """(…, n, parts) times a matrix (n, parts, k, parts)."""
    outer, (steps, parts, *asked) = canon.shape(x)[:-2], matrix.shape
    rows = build.reshape(x, (*outer, steps * parts))
    constant = build.const(matrix.reshape(steps * parts, -1), "fourier")
    return build.reshape(build.op("MatMul", rows, constant), (*outer, *asked))


def _matrix(steps: int, parts: int, length: int, inverse: bool, onesided: bool) -> Matrix:
    """(n, parts, k, parts): what each number given adds to each asked for; nothing where n is beyond `length`."""
    real_output = inverse and onesided
    bins = length // 2 + 1 if onesided else length
    kept = min(steps, bins if real_output else length)
    asked = bins if onesided and not inverse else length
    if 16 * steps * asked > FOLD_LIMIT:
        raise Opaque(f"a Fourier transform of {length} numbers is too large a matrix")
    angles = (1 if inverse else -1) * 2 * np.pi * (np.outer(np.arange(kept), np.arange(asked)) % length) / length
    weights = np.full((kept, 1), 1 / length if inverse else 1.0)
    if real_output:  # the other half of the spectrum is the conjugate
        weights[1 : (length + 1) // 2] *= 2
    turns = weights * np.exp(1j * angles)
    matrix = np.zeros((steps, 2, asked, 2), np.float32)
    matrix[:kept, 0, :, 0], matrix[:kept, 0, :, 1] = turns.real, turns.imag
    matrix[:kept, 1, :, 0], matrix[:kept, 1, :, 1] = -turns.imag, turns.real
    return matrix[:, :parts, :, : 1 if real_output else 2]
