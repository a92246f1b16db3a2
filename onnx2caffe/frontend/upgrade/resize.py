"""Resize and Upsample: one of scales or sizes, for all axes, in the words of opset 19.

Attributes without effect in the chosen mode are set to their defaults, so that equal resizes look equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.files import Array
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.layout import pad_all, slice_axes
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []

T = TypeVar("T")


@upgrades("Upsample", 7)
def upsample_attributes(node: Reader, build: Builder) -> ir.Value:
    """Upsample with its scales as an attribute."""
    return _asymmetric(node, build, np.asarray(node.numbers("scales"), np.float32))


@upgrades("Upsample", 9)
@upgrades("Resize", 10)
def upsample_inputs(node: Reader, build: Builder) -> ir.Value:
    """Upsample, and Resize as it was in opset 10: scales as input, asymmetric coordinates, nearest by floor."""
    scales = node.constant(1, "scales")
    if scales is None:
        raise Opaque("its scales are missing")
    return _asymmetric(node, build, scales)


def _asymmetric(node: Reader, build: Builder, scales: Array) -> ir.Value:
    """Nearest of opset 10 takes the element before when growing; when shrinking, Resize takes the one behind.

    So an axis that shrinks gets a step of its own (measured in onnxruntime 1.32).
    """
    mode = node.text("mode", "nearest")
    words: dict[str, Any] = {
        "mode": "linear" if mode == "bilinear" else mode,
        "coordinate_transformation_mode": "asymmetric",
    }
    if mode != "nearest" or node.op == "Upsample":
        return _resize(build, node.input(), scales=scales, nearest_mode="floor", **words)
    grown = _resize(build, node.input(), scales=np.maximum(scales, 1), nearest_mode="floor", **words)
    return _resize(build, grown, scales=np.minimum(scales, 1), nearest_mode="ceil", **words)


@upgrades("Resize", 11, 13, 18, 19)
def resize(node: Reader, build: Builder) -> ir.Value:
    """Resize; `axes` and `keep_aspect_ratio_policy` (18) resolved."""
    x, shape = node.input(), node.shape()
    rank = len(shape)
    axes = [node.positive(a, rank) for a in node.integers("axes", range(rank))]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    words: dict[str, Any] = {
        "mode": node.text("mode", "nearest"),
        "coordinate_transformation_mode": node.text("coordinate_transformation_mode", "half_pixel"),
        "nearest_mode": node.text("nearest_mode", "round_prefer_floor"),
        "cubic_coeff_a": node.number("cubic_coeff_a", -0.75),
        "exclude_outside": node.integer("exclude_outside", 0),
        "extrapolation_value": node.number("extrapolation_value", 0.0),
        "antialias": node.integer("antialias", 0),
    }
    if words["coordinate_transformation_mode"] == "tf_crop_and_resize":
        words["roi"] = _region(node.constant(1, "region"), axes, rank)
    scales, sizes = node.constant(2, "scales"), node.int_list(3, "sizes")
    if sizes and policy != "stretch":
        return _kept_ratio(build, x, axes=axes, sizes=sizes, policy=policy, words=words)
    if sizes:
        return _resize(build, x, sizes=_whole(shape, axes, sizes), **words)
    if scales is not None and scales.size:
        return _resize(build, x, scales=np.asarray(_whole([1.0] * rank, axes, scales.tolist())), **words)
    raise Opaque("it has neither scales nor sizes")


def _whole(default: Sequence[T], axes: Sequence[int], given: Sequence[T]) -> list[T]:
    """One value per axis: the given ones, elsewhere the default."""
    if len(axes) != len(given):
        raise Opaque(f"{list(given)} does not fit {len(axes)} axes")
    found = list(default)
    for axis, value in zip(axes, given, strict=True):
        found[axis] = value
    return found


def _region(given: Array | None, axes: Sequence[int], rank: int) -> Array:
    if given is None or given.size != 2 * len(axes):
        raise Opaque("tf_crop_and_resize without a region that fits its axes")
    starts, ends = given.reshape(2, -1).tolist()
    return np.asarray(_whole([0.0] * rank, axes, starts) + _whole([1.0] * rank, axes, ends), np.float32)


def _kept_ratio(
    build: Builder, x: ir.Value, *, axes: Sequence[int], sizes: Sequence[int], policy: str, words: dict[str, Any]
) -> ir.Value:
    """`keep_aspect_ratio_policy`: one scale for all axes, sizes rounded half up, coordinates by the scale.

    Where rounding up asks for more elements than the scale gives, the data is first extended by its edge, which is what
    sampling behind the end reads. Source: ONNX Resize-18.
    """
    shape = canon.shape(x)
    ratios = [np.float32(size) / np.float32(shape[axis]) for axis, size in zip(axes, sizes, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    wanted = _whole(shape, axes, [math.floor(scale * shape[a] + 0.5) for a in axes])
    mode = words["coordinate_transformation_mode"]
    if mode == "align_corners":
        return _resize(build, x, sizes=wanted, **words)
    pads = [0] * (2 * len(shape))
    for axis in axes:
        if math.floor(scale * shape[axis]) < wanted[axis]:
            pads[axis + len(shape)] = math.ceil(1 / scale)
    clamps = mode in {"half_pixel", "pytorch_half_pixel", "asymmetric"}
    if any(pads) and (not clamps or words["exclude_outside"] or words["antialias"]):
        raise Opaque(f"keep_aspect_ratio_policy {policy} that rounds up, with {mode}")
    extended = pad_all(build, x, pads, "edge", None)
    scales = _whole([1.0] * len(shape), axes, [float(scale)] * len(axes))
    y = _resize(build, extended, scales=np.asarray(scales), **words)
    return slice_axes(build, y, [0] * len(shape), wanted, axes=range(len(shape)))


def _resize(
    build: Builder,
    x: ir.Value,
    *,
    mode: str,
    coordinate_transformation_mode: str,
    nearest_mode: str,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Sequence[int] | None = None,
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
) -> ir.Value:
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    same = bool(np.all(scales == 1)) if scales is not None else tuple(sizes or ()) == canon.shape(x)
    if same and not crop:
        return x
    return build.op(
        "Resize",
        x,
        build.const(roi, "roi") if roi is not None else None,
        build.const(np.asarray(scales, np.float32), "scales") if scales is not None else None,
        build.ints(sizes, "sizes") if sizes is not None else None,
        mode=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode=nearest_mode if mode == "nearest" else "round_prefer_floor",
        cubic_coeff_a=cubic_coeff_a if mode == "cubic" else -0.75,
        exclude_outside=exclude_outside,
        extrapolation_value=extrapolation_value if crop else 0.0,
        antialias=antialias,
        keep_aspect_ratio_policy="stretch",
    )
