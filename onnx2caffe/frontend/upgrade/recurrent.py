"""Recurrent layers, all attributes written out."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []

_BATCHED = (0, 5, 6)
"""The inputs X, initial_h and initial_c: `layout` 1 puts the batch first in them, and in all outputs."""

_ACTIVATIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


@upgrades("RNN", 7, 14, 22)
@upgrades("GRU", 7, 14, 22)
@upgrades("LSTM", 7, 14, 22)
def recurrent(node: Reader, build: Builder) -> Sequence[ir.Value | None]:
    """RNN, GRU, LSTM with the time first; lengths that are all the whole length are left out."""
    found = node.explicit()
    directions = 2 if found["direction"] == "bidirectional" else 1
    found.setdefault("activations", _ACTIVATIONS[node.op] * directions)
    found.setdefault("hidden_size", node.shape(2)[-1])
    batch_first = bool(found.get("layout", 0))
    found["layout"] = 0
    inputs = node.inputs
    if batch_first:
        inputs = [_swapped(build, v, (1, 0, 2)) if i in _BATCHED else v for i, v in enumerate(inputs)]
    lengths = node.constant(4, "sequence lengths")
    if lengths is not None and (lengths == node.shape()[1 if batch_first else 0]).all():
        inputs[4] = None
    outputs = build.many(node.op, inputs, len(node.wanted), **found)
    if not batch_first:
        return outputs
    first, *states = outputs
    return [_swapped(build, first, (2, 0, 1, 3)), *(_swapped(build, v, (1, 0, 2)) for v in states)]


def _swapped(build: Builder, x: ir.Value | None, perm: Sequence[int]) -> ir.Value | None:
    return None if x is None else build.transpose(x, perm)
