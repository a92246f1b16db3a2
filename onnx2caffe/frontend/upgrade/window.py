"""Convolutions and pools: kernels, strides, dilations and pads written out, `auto_pad` resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import unchanged, upgrades

__all__ = ["average_pool_attributes", "conv_attributes"]

unchanged("GlobalAveragePool", 1, 22)
unchanged("GlobalMaxPool", 1, 22)
unchanged("MaxRoiPool", 1, 22)
unchanged("MaxUnpool", 9, 11, 22)
unchanged("DeformConv", 19, 22)
unchanged("Col2Im", 18)


@dataclass(frozen=True)
class _Window:
    """A sliding window over the spatial axes; `pads` holds all begins, then all ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    exact: bool
    """SAME: the padding fixes the output size, so nothing is left to round up."""


def _window(node: Reader, sizes: Sequence[int], kernel: Sequence[int], *, pool: bool = False) -> _Window:
    """The window attributes of a Conv or pool over spatial `sizes`.

    SAME: the output has ceil(size / stride) elements, the odd one of the padding goes behind (UPPER) or in front
    (LOWER). Strides beyond the kernel make that negative: none for a Conv; for a pool runtimes differ.
    """
    rank = len(sizes)
    kernel = tuple(kernel)
    strides = node.integers("strides", [1] * rank)
    dilations = node.integers("dilations", [1] * rank)
    auto_pad = node.text("auto_pad", "NOTSET")
    pads = node.integers("pads", [0] * 2 * rank)
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise Opaque(f"kernel {kernel}, strides {strides}, dilations {dilations}, pads {pads} do not fit {rank} axes")
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if auto_pad in {"SAME_UPPER", "SAME_LOWER"}:
        lacking = [(-(-size // s) - 1) * s + span - size for size, s, span in zip(sizes, strides, spans, strict=True)]
        if pool and min(lacking, default=0) < -1:
            raise Opaque(f"auto_pad {auto_pad} with strides {strides} beyond the kernel {kernel}: runtimes differ")
        totals = [max(0, t) for t in lacking]
        small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
        pads = tuple(small + large if auto_pad == "SAME_UPPER" else large + small)
    elif auto_pad == "VALID":
        pads = (0,) * (2 * rank)
    elif auto_pad not in {"NOTSET", ""}:
        raise Opaque(f"auto_pad {auto_pad!r} is not known")
    padded = [size + front + behind for size, front, behind in zip(sizes, pads[:rank], pads[rank:], strict=True)]
    if any(size + stride <= span for size, stride, span in zip(padded, strides, spans, strict=True)):
        raise Opaque(f"no window of kernel {kernel}, dilations {dilations} fits in {sizes} with pads {pads}")
    return _Window(kernel, strides, dilations, pads, auto_pad.startswith("SAME"))


def conv_attributes(node: Reader, weight: Shape = (), data: Shape = ()) -> dict[str, Any]:
    """The canonical attributes of a Conv; `weight` and `data` are the shapes of inputs 1 and 0 unless given."""
    weight = weight or node.shape(1)
    kernel = node.integers("kernel_shape", weight[2:])
    if kernel != weight[2:]:
        raise Opaque(f"kernel_shape {list(kernel)} does not fit weights of shape {list(weight)}")
    window = _window(node, (data or node.shape())[2:], kernel)
    return {
        "kernel_shape": window.kernel,
        "strides": window.strides,
        "dilations": window.dilations,
        "pads": window.pads,
        "group": node.integer("group", 1),
        "auto_pad": "NOTSET",
    }


@upgrades("Conv", 1, 11, 22)
def conv(node: Reader, build: Builder) -> ir.Value:
    """Conv."""
    return build.op("Conv", *node.inputs, **conv_attributes(node))


@upgrades("ConvTranspose", 1, 11, 22)
def conv_transpose(node: Reader, build: Builder) -> ir.Value:
    """ConvTranspose; `output_shape` and `auto_pad` become pads.

    Where pads would be negative, `output_shape` makes them output_padding; auto_pad makes none, and a smaller output.

    total = stride (size - 1) + output_padding + span - output; the larger half in front for NOTSET and SAME_LOWER,
    behind for SAME_UPPER (recipes 3.11, as onnxruntime does).
    """
    sizes, weight = node.shape()[2:], canon.shape(node.input(1))
    rank = len(sizes)
    kernel = node.integers("kernel_shape", weight[2:])
    strides = node.integers("strides", [1] * rank)
    dilations = node.integers("dilations", [1] * rank)
    extra = list(node.integers("output_padding", [0] * rank))
    pads = list(node.integers("pads", [0] * 2 * rank))
    auto_pad = node.text("auto_pad", "NOTSET")
    wanted = list(node.integers("output_shape", ()))[-rank:]
    same = not wanted and auto_pad in {"SAME_UPPER", "SAME_LOWER"}
    if same:
        wanted = [size * s for size, s in zip(sizes, strides, strict=True)]
    elif auto_pad == "VALID":
        pads = [0] * 2 * rank
    for i, size in enumerate(wanted):
        total = strides[i] * (sizes[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - size
        if total < 0 and not same:
            extra[i] -= total
        total = max(total, 0)
        half = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        pads[i], pads[i + rank] = half, total - half
    return build.op(
        "ConvTranspose",
        *node.inputs,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=tuple(pads),
        output_padding=tuple(extra),
        group=node.integer("group", 1),
        auto_pad="NOTSET",
    )


@upgrades("MaxPool", 1, 8, 10, 11, 12, 22)
def max_pool(node: Reader, build: Builder) -> list[ir.Value]:
    """MaxPool, with or without its indices."""
    window = _window(node, node.shape()[2:], node.integers("kernel_shape"), pool=True)
    ceil_mode = node.integer("ceil_mode", 0)
    storage_order = node.integer("storage_order", 0)
    return build.many(
        "MaxPool",
        [node.input()],
        len(node.wanted),
        **_pool(window, ceil_mode),
        storage_order=storage_order,
    )


@upgrades("AveragePool", 19, 22)
def average_pool(node: Reader, build: Builder) -> ir.Value:
    """AveragePool."""
    return build.op("AveragePool", node.input(), **average_pool_attributes(node))


@upgrades("AveragePool", 1, 7, 10, 11)
def average_pool_by_kernel(node: Reader, build: Builder) -> ir.Value:
    """AveragePool that divides by the whole kernel even where that is larger than data and padding (onnxruntime).

    Padding that holds the whole kernel says the same in later opsets.
    """
    attributes = average_pool_attributes(node)
    if not attributes["ceil_mode"]:
        attributes["pads"] = _room(node.shape()[2:], attributes["kernel_shape"], attributes["pads"])
    return build.op("AveragePool", node.input(), **attributes)


def _room(sizes: Sequence[int], kernel: Sequence[int], pads: Sequence[int]) -> tuple[int, ...]:
    """Pads, larger behind where the kernel has no room."""
    front, behind = pads[: len(sizes)], pads[len(sizes) :]
    return (*front, *(max(b, k - s - f) for s, k, f, b in zip(sizes, kernel, front, behind, strict=True)))


def average_pool_attributes(node: Reader) -> dict[str, Any]:
    """The canonical attributes of an AveragePool."""
    window = _window(node, node.shape()[2:], node.integers("kernel_shape"), pool=True)
    ceil_mode, include = node.integer("ceil_mode", 0), node.integer("count_include_pad", 0)
    return {**_pool(window, ceil_mode), "count_include_pad": include}


@upgrades("LpPool", 2, 11, 18, 22)
def lp_pool(node: Reader, build: Builder) -> ir.Value:
    """LpPool."""
    window = _window(node, node.shape()[2:], node.integers("kernel_shape"), pool=True)
    return build.op("LpPool", node.input(), **_pool(window, node.integer("ceil_mode", 0)), p=node.integer("p", 2))


def _pool(window: _Window, ceil_mode: int) -> dict[str, Any]:
    return {
        "kernel_shape": window.kernel,
        "strides": window.strides,
        "dilations": window.dilations,
        "pads": window.pads,
        "ceil_mode": 0 if window.exact else ceil_mode,
        "auto_pad": "NOTSET",
    }


@upgrades("GlobalLpPool", 2, 22)
def global_lp_pool(node: Reader, build: Builder) -> ir.Value:
    """GlobalLpPool → ReduceL1, ReduceL2, or the p-th root of a sum of powers."""
    x, p = node.input(), node.integer("p", 2)
    axes = range(2, len(node.shape()))
    if p in {1, 2}:
        return build.reduce(f"ReduceL{p}", x, axes, keepdims=True)
    powers = build.op("Pow", build.op("Abs", x), build.like(p, x, "p"))
    return build.op("Pow", build.reduce("ReduceSum", powers, axes, keepdims=True), build.like(1 / p, x, "root"))


@upgrades("RoiAlign", 10, 16, 22)
def roi_align(node: Reader, build: Builder) -> ir.Value:
    """RoiAlign; up to opset 15 without the half-pixel shift."""
    found = node.explicit()
    found.setdefault("coordinate_transformation_mode", "output_half_pixel")
    return build.op("RoiAlign", *node.inputs, **found)


@upgrades("GridSample", 16, 20, 22)
def grid_sample(node: Reader, build: Builder) -> ir.Value:
    """GridSample; the modes' names of opset 16 in today's words."""
    renamed = {"bilinear": "linear", "bicubic": "cubic"}
    mode = node.text("mode", "bilinear" if node.version == 16 else "linear")
    return build.op(
        "GridSample",
        node.input(0),
        node.input(1),
        mode=renamed.get(mode, mode),
        padding_mode=node.text("padding_mode", "zeros"),
        align_corners=node.integer("align_corners", 0),
    )
