"""Pad in all modes, on any axis. Facts: recipes 3.14-3.18."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnx2caffe.caffe.lower.blocks import keep
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob

__all__: list[str] = []

_REPEATING = ("edge", "reflect", "wrap")
"""Modes that numpy.pad has under the same names."""


@lowers("Pad")
def pad(op: Op, net: Emitter) -> Blob:
    """Axis by axis; zeros on all spatial axes at once (recipes 3.14–3.18)."""
    x = op.blob(0)
    front, behind = np.split(op.need_const(1, "pads").astype(int), 2)
    mode = op.attribute("mode", "constant")
    if mode == "constant":
        return _constant(net, x, front.tolist(), behind.tolist(), _value(op))
    if mode not in _REPEATING:
        raise Refused(f"mode {mode!r}")
    for axis, (a, b) in enumerate(zip(front.tolist(), behind.tolist(), strict=True)):
        x = _repeated(net, x, axis, (a, b), mode)
    return x


def _value(op: Op) -> float:
    return float(op.need_const(2, "the value").item()) if op.has(2) else 0.0


def _constant(net: Emitter, x: Blob, front: Sequence[int], behind: Sequence[int], value: float) -> Blob:
    at_once = 3 <= len(x.shape) <= 5 and value == 0
    for axis in range(2 if at_once else len(x.shape)):
        x = net.recipe("constant_pad", x, axis, front[axis], behind[axis], value=value)
    return net.recipe("zero_pad", x, front[2:], behind[2:]) if at_once else x


def _repeated(net: Emitter, x: Blob, axis: int, pads: tuple[int, int], mode: str) -> Blob:
    """One axis of edge, reflect or wrap; what is negative is cut first."""
    front, behind = pads
    x = keep(net, x, axis, max(-front, 0), x.shape[axis] - max(-behind, 0))
    index = np.pad(np.arange(x.shape[axis]), (max(front, 0), max(behind, 0)), mode=mode)  # type: ignore[call-overload]
    return net.recipe("take", x, axis, index.tolist())
