"""Recurrent layers, all attributes written out."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []

_ACTIVATIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


@upgrades("RNN", 7, 14, 22)
@upgrades("GRU", 7, 14, 22)
@upgrades("LSTM", 7, 14, 22)
def recurrent(node: Reader, build: Builder) -> Sequence[ir.Value]:
    """RNN, GRU, LSTM; lengths that are all the whole length are left out."""
    found = node.explicit()
    directions = 2 if found["direction"] == "bidirectional" else 1
    found.setdefault("activations", _ACTIVATIONS[node.op] * directions)
    found.setdefault("hidden_size", node.shape(2)[-1])
    found.setdefault("layout", 0)
    inputs = node.inputs
    steps = node.shape()[1 if found["layout"] else 0]
    if node.has(4) and (lengths := node.constant(4, "sequence lengths")) is not None and (lengths == steps).all():
        inputs[4] = None
    return build.many(node.op, inputs, len(node.wanted), **found)
