"""A net as NNIE's 8-bit mode computes it: weights and layer inputs on HiSilicon's logarithmic grid (nnie §12).

A code stands for 2^(n/16), or 0; a tensor has 127 codes of either sign down from its largest magnitude. What the mapper
does beyond is not known; here each computing layer has one range for all its inputs, that of the picture at hand, and
one for its weights; biases and sums are exact, layers that only move values cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, scalar
from onnx2caffe.caffe.net import Net, Placed

STEPS, CODES = 16, 127
"""Steps to an octave; the highest code (the lowest is 0, for negative values 1)."""
_TINY = 1e-30
_SLACK = 1e-4
"""Of a step: a maximum that lies on the grid stays there although float32 logarithms are rounded."""

MOVERS = frozenset(
    """Concat Crop Dropout Flatten Input PassThrough Parameter Permute Reorg Reshape ShuffleChannel Silence Slice Split
    Tile Upsample""".split()
)
WEIGHTED = frozenset("Convolution Deconvolution DepthwiseConv InnerProduct PReLU Scale".split())
"""Types whose first blob is weights, which are codes too; the second is a bias."""


def quantised(x: np.ndarray, largest: float | None = None) -> np.ndarray:
    """The nearest values of the grid below `largest` (default: the tensor's own largest magnitude)."""
    size = np.abs(x).astype(np.float64)
    top = size.max(initial=0.0) if largest is None else largest
    bottom = np.floor(STEPS * np.log2(max(top, _TINY)) + _SLACK) - CODES
    code = np.rint(STEPS * np.log2(np.maximum(size, _TINY))) - bottom
    least = np.where(x < 0, 1, 0)
    value = 2 ** ((np.clip(code, least, CODES) + bottom) / STEPS)
    zero = size <= 2 ** ((bottom + least) / STEPS) / 2
    return np.where(zero, 0, np.sign(x) * value).astype(np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class OnGrid(Layer):
    """`quantised` of all bottoms, which share one range."""

    type: ClassVar[str] = "OnGrid"
    arity: ClassVar[tuple[int, int | None]] = (1, None)

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return list(bottoms)

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        sizes = [g.op("Abs", x) for x in bottoms]
        tops = [g.op("ReduceMax", size, keepdims=0) for size in sizes]
        steps = g.op("Add", _steps(g, g.op("Max", *tops)), scalar(g, _SLACK))
        bottom = g.op("Sub", g.op("Floor", steps), scalar(g, CODES))
        return [_nearest(g, x, size, bottom) for x, size in zip(bottoms, sizes, strict=True)]


def _steps(g: OnnxBuilder, size: Any) -> Any:
    return g.op("Mul", g.op("Log", g.op("Max", size, scalar(g, _TINY))), scalar(g, STEPS / np.log(2)))


def _power(g: OnnxBuilder, steps: Any) -> Any:
    return g.op("Pow", scalar(g, 2), g.op("Div", steps, scalar(g, STEPS)))


def _nearest(g: OnnxBuilder, x: Any, size: Any, bottom: Any) -> Any:
    least = g.op("Add", bottom, g.op("Where", g.op("Less", x, scalar(g, 0)), scalar(g, 1), scalar(g, 0)))
    code = g.op("Min", g.op("Max", g.op("Round", _steps(g, size)), least), g.op("Add", bottom, scalar(g, CODES)))
    zero = g.op("LessOrEqual", size, g.op("Div", _power(g, least), scalar(g, 2)))
    return g.op("Where", zero, scalar(g, 0), g.op("Mul", g.op("Sign", x), _power(g, code)))


def in_eight_bits(net: Net) -> Net:
    """The net with every computing layer's weights and inputs on the grid; blobs and layers keep their names."""
    layers: list[Placed] = []
    shapes = dict(net.shapes)
    for placed in net:
        if placed.layer.type in MOVERS:
            layers.append(placed)
            continue
        coded = tuple(f"{placed.name}/on grid {number}" for number in range(len(placed.bottoms)))
        shapes |= {new: shapes[old] for new, old in zip(coded, placed.bottoms, strict=True)}
        layers.append(Placed(coded[0], OnGrid(), placed.bottoms, coded))
        layers.append(replace(placed, layer=_coded(placed.layer), bottoms=coded))
    return replace(net, layers=layers, shapes=shapes)


def _coded(layer: Layer) -> Layer:
    if layer.type not in WEIGHTED or not layer.blobs:
        return layer
    weights, *rest = layer.blobs
    return replace(layer, blobs=(quantised(weights), *rest))
