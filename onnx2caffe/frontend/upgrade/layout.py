"""Ops that only move data: their shapes, axes and bounds become constants."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import upgrades

__all__ = ["pad_all", "slice_axes"]

_NEWER = (13, 21, 23, 24, 25)


@upgrades("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
def reshape(node: Reader, build: Builder) -> ir.Value:
    """Reshape to a constant target without 0 and -1."""
    shape = node.shape()
    target = node.int_list(1, "target shape")
    allow_zero = node.integer("allowzero", 0)
    if target is None:
        raise Opaque("its target shape is missing")
    if any(d == 0 and i >= len(shape) for i, d in enumerate(target)) and not allow_zero:
        raise Opaque(f"target {target} copies a dimension that {list(shape)} does not have")
    if not allow_zero:
        target = [shape[i] if d == 0 else d for i, d in enumerate(target)]
    if -1 in target:
        rest = math.prod(d for d in target if d != -1)
        whole = math.prod(shape)
        if target.count(-1) > 1 or (rest and whole % rest):
            raise Opaque(f"shape {list(shape)} cannot become {target}")
        target[target.index(-1)] = whole // rest if rest else 0
    return build.reshape(node.input(), target)


@upgrades("Flatten", 1, 9, 11, *_NEWER)
def flatten(node: Reader, build: Builder) -> ir.Value:
    """Flatten → Reshape."""
    shape = node.shape()
    axis = node.integer("axis", 1)
    axis = axis if axis == len(shape) else node.positive(axis, len(shape))
    return build.reshape(node.input(), (math.prod(shape[:axis]), math.prod(shape[axis:])))


@upgrades("Squeeze", 1, 11, *_NEWER)
def squeeze(node: Reader, build: Builder) -> ir.Value:
    """Squeeze → Reshape."""
    shape = node.shape()
    axes = _axes(node, required=False)
    if axes is None:
        drop = {i for i, d in enumerate(shape) if d == 1}
    else:
        drop = {node.positive(a, len(shape)) for a in axes}
        if any(shape[a] != 1 for a in drop):
            raise Opaque(f"axes {axes} of {list(shape)} are not all of size 1")
    return build.reshape(node.input(), [d for i, d in enumerate(shape) if i not in drop])


@upgrades("Unsqueeze", 1, 11, *_NEWER)
def unsqueeze(node: Reader, build: Builder) -> ir.Value:
    """Unsqueeze → Reshape."""
    shape = list(node.shape())
    axes = _axes(node, required=True) or []
    rank = len(shape) + len(axes)
    for axis in sorted(node.positive(a, rank) for a in axes):
        shape.insert(axis, 1)
    return build.reshape(node.input(), shape)


def _axes(node: Reader, required: bool) -> list[int] | None:
    """Axes: an attribute up to opset 12, then an input."""
    if node.version >= 13:
        return node.int_list(1, "axes")
    if node.given("axes") or required:
        return list(node.integers("axes"))
    return None


@upgrades("Transpose", 1, *_NEWER)
def transpose(node: Reader, build: Builder) -> ir.Value:
    """Transpose with its permutation written out."""
    rank = len(node.shape())
    perm = node.integers("perm", range(rank)[::-1])
    return build.transpose(node.input(), [node.positive(p, rank) for p in perm])


@upgrades("Concat", 4, 11, 13)
def concat(node: Reader, build: Builder) -> ir.Value:
    """Concat; of one input: nothing. Empty parts are left out."""
    axis = node.axis()
    parts = [v for v in node.present if canon.shape(v)[axis]] or node.present[:1]
    return parts[0] if len(parts) == 1 else build.op("Concat", *parts, axis=axis)


@upgrades("Slice", 1)
def slice_attributes(node: Reader, build: Builder) -> ir.Value:
    """Slice with bounds as attributes, steps of 1."""
    starts, ends = node.integers("starts"), node.integers("ends")
    axes = node.integers("axes", range(len(starts)))
    positive = [node.positive(a, len(node.shape())) for a in axes]
    return slice_axes(build, node.input(), starts, ends, axes=positive)


@upgrades("Slice", 10, 11, 13)
def slice_inputs(node: Reader, build: Builder) -> ir.Value:
    """Slice with bounds as inputs."""
    starts, ends = node.int_list(1, "starts") or [], node.int_list(2, "ends") or []
    axes = node.int_list(3, "axes")
    axes = list(range(len(starts))) if axes is None else [node.positive(a, len(node.shape())) for a in axes]
    return slice_axes(build, node.input(), starts, ends, axes=axes, steps=node.int_list(4, "steps"))


def slice_axes(
    build: Builder,
    x: ir.Value,
    starts: Sequence[int],
    ends: Sequence[int],
    *,
    axes: Sequence[int],
    steps: Sequence[int] | None = None,
) -> ir.Value:
    """Slice with bounds clamped to the data, axes ascending; axes that stay whole are left out.

    For a negative step the end may be -1-dim ("before the first").
    """
    shape = canon.shape(x)
    steps = steps or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps or len(set(axes)) < len(axes):
        raise Opaque(f"starts {list(starts)}, ends {list(ends)}, axes {list(axes)}, steps {list(steps)} do not fit")
    cuts: list[tuple[int, int, int, int]] = []
    for axis, start, end, step in sorted(zip(axes, starts, ends, steps, strict=True)):
        size = shape[axis]
        first, last, stride = slice(start, end, step).indices(size)
        if step < 0 and last < 0:
            last = -1 - size
        if (first, last, stride) != (0, size, 1):
            cuts.append((axis, first, last, stride))
    if not cuts:
        return x
    columns = [list(column) for column in zip(*cuts, strict=True)]
    names = ("axes", "starts", "ends", "steps")
    at = {name: build.ints(column, name) for name, column in zip(names, columns, strict=True)}
    return build.op("Slice", x, at["starts"], at["ends"], at["axes"], at["steps"])


@upgrades("Split", 2, 11, 13, 18)
def split(node: Reader, build: Builder) -> list[ir.Value]:
    """Split with its sizes as a constant input; into one part: nothing."""
    axis = node.axis(0)
    parts = node.integer("num_outputs", len(node.wanted)) if node.version >= 18 else len(node.wanted)
    sizes = node.int_list(1, "sizes") if node.version >= 13 else None
    if node.version < 13 and node.given("split"):
        sizes = list(node.integers("split"))
    dim = node.shape()[axis]
    if sizes is None:
        chunk = -(-dim // parts)
        sizes = [max(0, min(chunk, dim - i * chunk)) for i in range(parts)]
    if sum(sizes) != dim or len(sizes) != len(node.wanted):
        raise Opaque(f"sizes {sizes} do not fit {dim} and {len(node.wanted)} outputs")
    return split_into(build, node.input(), sizes, axis)


def split_into(build: Builder, x: ir.Value, sizes: Sequence[int], axis: int) -> list[ir.Value]:
    """`x` in parts of these sizes along an axis: a Split of those that hold anything, `x` itself if only one does."""
    whole = [size for size in sizes if size]
    parts = [x] if len(whole) < 2 else build.many("Split", [x, build.ints(whole, "sizes")], len(whole), axis=axis)
    rest, shape = iter(parts), canon.shape(x)
    nothing = np.zeros((*shape[:axis], 0, *shape[axis + 1 :]), canon.dtype(x).numpy())
    return [next(rest) if size else build.const(nothing, "empty") for size in sizes]


@upgrades("Tile", 6, 13)
def tile(node: Reader, build: Builder) -> ir.Value:
    """Tile with constant repeats."""
    repeats = node.int_list(1, "repeats") or []
    if all(r == 1 for r in repeats):
        return node.input()
    return build.op("Tile", node.input(), build.ints(repeats, "repeats"))


@upgrades("Expand", 8, 13)
def expand(node: Reader, build: Builder) -> ir.Value:
    """Expand to exactly its output's shape."""
    target = node.int_list(1, "shape") or []
    try:
        return build.expand(node.input(), np.broadcast_shapes(node.shape(), tuple(target)))
    except ValueError:
        raise Opaque(f"shape {list(node.shape())} does not broadcast to {target}") from None


@upgrades("Pad", 2)
def pad_attributes(node: Reader, build: Builder) -> ir.Value:
    """Pad with amounts and value as attributes."""
    pads, mode, value = node.integers("pads"), node.text("mode", "constant"), node.number("value", 0.0)
    return pad_all(build, node.input(), pads, mode, build.like(value, node.input(), "value"))


@upgrades("Pad", 11, 13, 18, 19, 21, 23, 24, 25)
def pad_inputs(node: Reader, build: Builder) -> ir.Value:
    """Pad with amounts, value and (18) axes as inputs; the amounts of all axes are written out."""
    rank = len(node.shape())
    pads = node.int_list(1, "amounts") or []
    axes = node.int_list(3, "axes")
    if axes is not None:
        if len(pads) != 2 * len(axes):
            raise Opaque(f"pads {pads} do not fit axes {axes}")
        whole = [0] * (2 * rank)
        for i, axis in enumerate(node.positive(a, rank) for a in axes):
            whole[axis], whole[axis + rank] = pads[i], pads[i + len(axes)]
        pads = whole
    return pad_all(build, node.input(), pads, node.text("mode", "constant"), node.optional(2))


def pad_all(build: Builder, x: ir.Value, pads: Sequence[int], mode: str, value: ir.Value | None) -> ir.Value:
    """Pad by `pads` (all begins, then all ends); the fill value is written out for mode "constant" only."""
    if len(pads) != 2 * len(canon.shape(x)):
        raise Opaque(f"pads {list(pads)} do not fit {len(canon.shape(x))} dimensions")
    if not any(pads):
        return x
    if mode == "constant":
        value = build.like(0, x, "value") if value is None else build.reshape(value, ())
    return build.op("Pad", x, build.ints(pads, "pads"), value if mode == "constant" else None, mode=mode)


@upgrades("CenterCropPad", 18)
def center_crop_pad(node: Reader, build: Builder) -> ir.Value:
    """Slice what is too large, Pad with 0 what is too small, both centred (an odd remainder goes behind)."""
    shape = node.shape()
    wanted = node.int_list(1, "shape") or []
    axes = [node.positive(a, len(shape)) for a in node.integers("axes", range(len(shape)))]
    starts, ends, pads = [], [], [0] * (2 * len(shape))
    for axis, size in zip(axes, wanted, strict=True):
        cut, grow = max(0, shape[axis] - size), max(0, size - shape[axis])
        starts.append(cut // 2)
        ends.append(shape[axis] - (cut - cut // 2))
        pads[axis], pads[axis + len(shape)] = grow // 2, grow - grow // 2
    return pad_all(build, slice_axes(build, node.input(), starts, ends, axes=axes), pads, "constant", None)


@upgrades("DepthToSpace", 1, 11, 13, 28)
def depth_to_space(node: Reader, build: Builder) -> ir.Value:
    """DepthToSpace with its mode written out; a block of 1: nothing."""
    block, mode = node.integer("blocksize"), node.text("mode", "DCR")
    return node.input() if block == 1 else build.op("DepthToSpace", node.input(), blocksize=block, mode=mode)


@upgrades("SpaceToDepth", 1, 13, 28)
def space_to_depth(node: Reader, build: Builder) -> ir.Value:
    """SpaceToDepth; the CRD order (28) as Reshape, Transpose, Reshape."""
    x, b = node.input(), node.integer("blocksize")
    if b == 1 or node.text("mode", "DCR") == "DCR":
        return x if b == 1 else build.op("SpaceToDepth", x, blocksize=b)
    n, c, h, w = node.shape()
    blocks = build.transpose(build.reshape(x, (n, c, h // b, b, w // b, b)), (0, 1, 3, 5, 2, 4))
    return build.reshape(blocks, (n, c * b * b, h // b, w // b))
