"""Weights from fillers that always give the same values (filler.hpp)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onnx2caffe.caffe.layers.base import Array, Layer, LayerError, Shape
from onnx2caffe.caffe.proto import Message

__all__ = ["fill"]


def fill(layer: Layer, param: Message, shapes: Sequence[Shape]) -> tuple[Array, ...] | None:
    """The blobs of a layer whose prototxt names a filler for each; None where one is missing or random."""
    body = getattr(param, layer.param_field) if layer.param_field else param
    names = layer.filler_fields(len(param.bottom))[: len(shapes)]
    if len(names) < len(shapes) or not all(body.HasField(name) for name in names):
        return None
    blobs = []
    for name, shape in zip(names, shapes, strict=True):
        blob = _filled(getattr(body, name), shape)
        if blob is None:
            return None
        blobs.append(blob)
    return tuple(blobs)


def _filled(filler: Message, shape: Shape) -> Array | None:
    if filler.type == "constant":
        return np.full(shape, filler.value, np.float32)
    if filler.type == "bilinear":
        return _bilinear(shape)
    return None


def _bilinear(shape: Shape) -> Array:
    """The same pyramid in every plane: k = 4 gives the row 0.25 0.75 0.75 0.25, k = 3 gives 0.5 1 0.5."""
    if len(shape) != 4 or shape[2] != shape[3]:
        raise LayerError(f"a bilinear filler takes square planes, not {shape}")
    factor = math.ceil(shape[3] / 2)
    centre = (shape[3] - 1) / 2
    row = 1 - np.abs(np.arange(shape[3]) - centre) / factor
    return np.broadcast_to(np.outer(row, row).astype(np.float32), shape)
