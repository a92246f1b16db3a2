"""Nets of one layer, for the tests of layers, files and runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from onnx2caffe.caffe.layers import LSTM, RNN, BatchNorm, BatchReindex, Embed, Input, Layer
from onnx2caffe.caffe.layers.base import Shape
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.write import write_caffemodel, write_prototxt
from onnx2caffe.runtimes.base import NetFiles

__all__ = ["Case", "feeds", "one_layer", "weighted", "written"]


@dataclass(frozen=True)
class Case:
    """A layer (weights are made up) on bottoms of these shapes, or on these arrays."""

    layer: Layer
    shapes: Sequence[Shape]
    arrays: Mapping[int, object] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = " ".join("x".join(map(str, s)) or "()" for s in self.shapes)
        return f"{self.layer} on {shapes}"


def weighted(layer: Layer, shapes: Sequence[Shape], seed: int = 0) -> Layer:
    """The layer with normal random weights; variances positive."""
    rng = np.random.default_rng(seed)
    blobs = [rng.standard_normal(shape).astype(np.float32) for shape in layer.blob_shapes(shapes)]
    if isinstance(layer, BatchNorm):
        blobs = [blobs[0], np.abs(blobs[1]), np.abs(blobs[2]) + 0.5]
    return replace(layer, blobs=tuple(blobs))


def one_layer(case: Case) -> Net:
    """Inputs x0, x1 …, the layer, its tops y0, y1 …"""
    layer = case.layer if case.layer.blobs else weighted(case.layer, case.shapes)
    tops = {f"y{i}": shape for i, shape in enumerate(layer.infer(case.shapes))}
    bottoms = {f"x{i}": shape for i, shape in enumerate(case.shapes)}
    inputs = [Placed(name, Input(shape=(shape,)), (), (name,)) for name, shape in bottoms.items()]
    placed = Placed("layer", layer, tuple(bottoms), tuple(tops))
    return Net("net", [*inputs, placed], bottoms | tops, list(bottoms), list(tops))


def feeds(case: Case, seed: int = 0) -> dict[str, np.ndarray]:
    """Normal random bottoms, or what the case says; indices where the layer wants them."""
    rng = np.random.default_rng(seed)
    values = {}
    for i, shape in enumerate(case.shapes):
        value = rng.standard_normal(shape) * 2
        if isinstance(case.layer, Embed):
            value = rng.integers(0, case.layer.input_dim, shape)
        elif isinstance(case.layer, BatchReindex) and i == 1:
            value = rng.integers(0, case.shapes[0][0], shape)
        elif isinstance(case.layer, LSTM | RNN) and i == 1:
            value = rng.integers(0, 2, shape)
            value[0] = 0
        values[f"x{i}"] = np.asarray(case.arrays.get(i, value), np.float32).reshape(shape)
    return values


def written(folder: Path, net: Net) -> NetFiles:
    files = NetFiles(folder / "net.prototxt", folder / "net.caffemodel")
    write_prototxt(net, files.prototxt)
    write_caffemodel(net, files.caffemodel)
    return files
