"""Resize and Upsample: one of scales or sizes, for all axes, in the words of opset 19.

Attributes without effect in the chosen mode are set to their defaults, so that equal resizes look equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__: list[str] = []


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


def _asymmetric(node: Reader, build: Builder, scales: np.ndarray) -> ir.Value:
    mode = node.text("mode", "nearest")
    rounding = "floor" if np.all(scales >= 1) or node.op == "Upsample" else "simple"
    if mode == "nearest" and rounding == "simple":
        # Downsampling by nearest in opset 10 rounds up where it is not exact, as onnxruntime does.
        rounding = "ceil"
    return _resize(
        build,
        node.input(),
        scales=scales,
        mode="linear" if mode in {"linear", "bilinear"} else mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode=rounding,
    )


@upgrades("Resize", 11, 13, 18, 19)
def resize(node: Reader, build: Builder) -> ir.Value:
    """Resize; `axes` and `keep_aspect_ratio_policy` (18) resolved."""
    shape = node.shape()
    rank = len(shape)
    axes = [node.positive(a, rank) for a in node.integers("axes", range(rank))]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    scales, sizes = node.constant(2, "scales"), node.int_list(3, "sizes")
    if sizes:
        sizes = _kept_ratio([shape[a] for a in axes], sizes, policy)
        whole_sizes = list(shape)
        for axis, size in zip(axes, sizes, strict=True):
            whole_sizes[axis] = size
    elif scales is not None and scales.size:
        whole_scales = np.ones(rank, np.float32)
        whole_scales[axes] = scales
    else:
        raise Opaque("it has neither scales nor sizes")
    transformation = node.text("coordinate_transformation_mode", "half_pixel")
    roi = node.constant(1, "region")
    if transformation == "tf_crop_and_resize":
        region = np.concatenate([np.zeros(rank), np.ones(rank)]).astype(np.float32)
        given = np.zeros(0, np.float32) if roi is None else roi.reshape(2, -1)
        region[axes], region[[a + rank for a in axes]] = given[0], given[1]
    return _resize(
        build,
        node.input(),
        roi=region if transformation == "tf_crop_and_resize" else None,
        scales=None if sizes else whole_scales,
        sizes=whole_sizes if sizes else None,
        mode=node.text("mode", "nearest"),
        coordinate_transformation_mode=transformation,
        nearest_mode=node.text("nearest_mode", "round_prefer_floor"),
        cubic_coeff_a=node.number("cubic_coeff_a", -0.75),
        exclude_outside=node.integer("exclude_outside", 0),
        extrapolation_value=node.number("extrapolation_value", 0.0),
        antialias=node.integer("antialias", 0),
    )


def _kept_ratio(old: Sequence[int], new: Sequence[int], policy: str) -> list[int]:
    """The sizes after `keep_aspect_ratio_policy` (ONNX Resize-18: one scale for all, sizes rounded half up)."""
    if policy == "stretch":
        return list(new)
    scales = [n / o for n, o in zip(new, old, strict=True)]
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(scale * o + 0.5) for o in old]


def _resize(
    build: Builder,
    x: ir.Value,
    *,
    mode: str,
    coordinate_transformation_mode: str,
    nearest_mode: str,
    roi: np.ndarray | None = None,
    scales: np.ndarray | None = None,
    sizes: Sequence[int] | None = None,
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
) -> ir.Value:
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    same = np.all(scales == 1) if scales is not None else tuple(sizes or ()) == canon.shape(x)
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
