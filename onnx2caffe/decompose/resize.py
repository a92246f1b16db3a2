"""Every Resize as one linear map per axis, every GridSample with a constant grid as one per map.

The maps are found by running the node on an identity (nearest: on positions) instead of by formula: onnxruntime is what
exports are measured against, and its float32 rounding decides ties (docs: ONNX Resize 19, GridSample 22).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from onnx2caffe.frontend.evaluate import run

__all__ = ["AxisMap", "Tent", "axis_maps", "same", "sampling_matrix", "tent"]

Array = np.ndarray[Any, Any]
Attributes = tuple[tuple[str, Any], ...]

_DEFINING = (
    "antialias",
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "mode",
    "nearest_mode",
)
"""The attributes of a Resize that define the map of an axis."""


@dataclass(frozen=True, eq=False)
class AxisMap:
    """out[j] = sum_i matrix[j, i] · x[i], float32; `outside`: places that hold extrapolation_value instead."""

    matrix: Array
    outside: Array

    @property
    def index(self) -> Array | None:
        """The source index of every place when the map only picks, else None."""
        one_hot = (self.matrix == 1).sum(1) == 1
        if not one_hot.all() or np.count_nonzero(self.matrix) != len(self.matrix):
            return None
        index: Array = self.matrix.argmax(1)
        return index

    @property
    def identity(self) -> bool:
        """Whether nothing changes."""
        return np.array_equal(self.matrix, np.eye(len(self.matrix), dtype=np.float32))


def axis_maps(
    shape: Sequence[int],
    out: Sequence[int],
    attributes: Mapping[str, Any],
    scales: Array | None = None,
    roi: Array | None = None,
) -> list[AxisMap]:
    """One map per axis of a Resize.

    Args:
        shape: of the input.
        out: of the output, same rank.
        attributes: of the node; those that are missing have ONNX's defaults.
        scales: float32 per axis; None when the node has sizes (the two differ where size times scale is no integer).
        roi: float32 starts then ends, for tf_crop_and_resize.

    Raises:
        frontend.evaluate.NotEvaluable: onnxruntime has no such Resize.

    """
    rank = len(shape)
    defining = tuple((name, attributes[name]) for name in _DEFINING if attributes.get(name) is not None)
    crop = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize" and roi is not None
    if tuple(shape) == tuple(out) and not crop:  # onnxruntime copies then, whatever the scales are
        return [AxisMap(np.eye(size, dtype=np.float32), np.zeros(size, bool)) for size in shape]
    return [
        _axis_map(
            shape[axis],
            out[axis],
            defining,
            None if scales is None else float(scales[axis]),
            (float(roi[axis]), float(roi[axis + rank])) if crop and roi is not None else None,
        )
        for axis in range(rank)
    ]


@lru_cache(maxsize=256)
def _axis_map(
    size: int, out: int, attributes: Attributes, scale: float | None, roi: tuple[float, float] | None
) -> AxisMap:
    def resized(x: Array, extrapolation: float) -> Array:
        """The columns of `x` resized; another axis grows from 1 to 2, so that onnxruntime never just copies."""
        columns = x.shape[-1]
        target = (
            (None, np.array([1, columns, out, 2], np.int64))
            if scale is None
            else (np.array([1, 1, scale, 2], np.float32), None)
        )
        region = None if roi is None else np.array([0, 0, roi[0], 0, 1, 1, roi[1], 1], np.float32)
        node = {**dict(attributes), "extrapolation_value": extrapolation}
        maps: Array = run("Resize", node, [np.ascontiguousarray(x.T)[None, ..., None], region, *target])[0]
        return np.ascontiguousarray(maps[0, :, :, 0].T)

    outside = np.zeros(out, bool)
    if roi is not None:
        outside = resized(np.zeros((size, 1), np.float32), 1.0)[:, 0] == 1
    if dict(attributes).get("mode", "nearest") == "nearest":
        index = resized(np.arange(size, dtype=np.float32)[:, None], -1.0)
        return AxisMap((index == np.arange(size)).astype(np.float32), outside)
    return AxisMap(resized(np.eye(size, dtype=np.float32), 0.0), outside)


def sampling_matrix(shape: Sequence[int], grid: Array, attributes: Mapping[str, Any]) -> Array:
    """The matrix (places sampled, places of the map) of a GridSample for one item.

    Args:
        shape: the spatial shape of the input (H, W or D, H, W).
        grid: (…, rank), the item's grid.
        attributes: of the node.

    Raises:
        frontend.evaluate.NotEvaluable: onnxruntime has no such GridSample.

    """
    places = math.prod(shape)
    maps = np.eye(places, dtype=np.float32).reshape(1, places, *shape)
    (sampled,) = run("GridSample", attributes, [maps, grid[None].astype(np.float32)])
    return np.ascontiguousarray(sampled.reshape(places, -1).T)


@dataclass(frozen=True, eq=False)
class Tent:
    """One axis of a Deconvolution that interpolates linearly, and what its outputs are multiplied with."""

    stride: int
    pad: int
    taps: Array
    factors: Array


def tent(matrix: Array) -> Tent | None:
    """The Deconvolution that makes `matrix`: element i spreads a tent of half width `stride` round i·stride + shift.

    None where `matrix` is not linear by a whole factor.
    """
    out, size = matrix.shape
    whole = {round(n / d) for n, d in ((out, size), (out - 1, size - 1)) if d and n % d == 0}
    for stride, centred in itertools.product(sorted(whole - {0}), (True, False)):
        shift = (stride - 1) / 2 if centred else 0.0
        places = np.arange(out)[:, None] - stride * np.arange(size) - shift
        weights = np.maximum(0, 1 - np.abs(places) / stride)
        sums = weights.sum(1)
        if (sums > 0).all() and same(matrix, weights / sums[:, None]):
            return Tent(stride, *_tent_taps(out - stride * (size - 1), stride, shift), 1 / sums)
    return None


def _tent_taps(length: int, stride: int, shift: float) -> tuple[int, Array]:
    """Pad and taps of a tent, the first element of which has `length` places up to the end of the output's share."""
    pad = -(math.floor(shift - stride) + 1)
    last = math.ceil(shift + stride) - 1
    pad += max(0, last + 1 - pad - length)
    places = np.arange(length + 2 * pad) - pad - shift
    return pad, np.maximum(0, 1 - np.abs(places) / stride)


def same(matrix: Array, other: Array) -> bool:
    """Equal up to the rounding of float32 coordinates along the longer side."""
    tolerance = 1e-6 + 4 * np.finfo(np.float32).eps * max(matrix.shape)
    return bool(np.abs(matrix - other).max() <= tolerance)
