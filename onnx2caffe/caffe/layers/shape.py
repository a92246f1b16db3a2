"""Layers that only move data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnx2caffe.caffe.layers.base import Layer, OnnxBuilder, Shape, axis_index, register, require
from onnx2caffe.caffe.layers.codec import Codec, Dims, Plain

__all__ = [
    "BatchReindex",
    "Concat",
    "Flatten",
    "PassThrough",
    "Permute",
    "Reorg",
    "Reshape",
    "ShuffleChannel",
    "Silence",
    "Slice",
    "Split",
    "Tile",
]


def _ints(g: OnnxBuilder, values: Sequence[int]) -> Any:
    return g.const(np.array(values, np.int64))


def _blocks(g: OnnxBuilder, x: Any, split: Sequence[int], order: Sequence[int], merged: Sequence[int]) -> Any:
    """Reshape to `split`, transpose to `order`, reshape to `merged`."""
    moved = g.op("Transpose", g.op("Reshape", x, _ints(g, split)), perm=list(order))
    return g.op("Reshape", moved, _ints(g, merged))


class _Reshaping(Layer):
    """Another shape for the same values; the top shares the bottom's memory in Caffe."""

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (shape,) = self.top_shapes([g.shape(bottoms[0])])
        return [g.op("Reshape", bottoms[0], _ints(g, shape))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Reshape(_Reshaping):
    """Replaces the axes [axis, axis+num_axes) by `shape` (reshape_layer.cpp).

    In `shape`, 0 copies the bottom's axis at the same position counted from `axis`, one -1 is inferred. A negative axis
    counts so that -1 stands behind the last axis; num_axes -1 reaches to the end.
    """

    type: ClassVar[str] = "Reshape"
    param_field: ClassVar[str | None] = "reshape_param"
    codecs: ClassVar[Mapping[str, Codec]] = {"shape": Dims("shape")}

    shape: tuple[int, ...] = ()
    axis: int = 0
    num_axes: int = -1

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        start = self.axis if self.axis >= 0 else len(x) + 1 + self.axis
        require(0 <= start <= len(x), f"axis {self.axis} is out of range for {len(x)} axes")
        require(self.num_axes >= -1, f"num_axes {self.num_axes} is below -1")
        end = len(x) if self.num_axes == -1 else start + self.num_axes
        require(end <= len(x), f"axis + num_axes = {end} exceeds {len(x)} axes")
        require(self.shape.count(-1) <= 1, f"several -1 in {self.shape}")
        new = [self._copied(x, start + i) if d == 0 else d for i, d in enumerate(self.shape)]
        known = math.prod(d for d in (*x[:start], *new, *x[end:]) if d != -1)
        if -1 in new:
            require(known > 0 and math.prod(x) % known == 0, f"{x} does not divide into {self.shape}")
            new[new.index(-1)] = math.prod(x) // known
        top = (*x[:start], *new, *x[end:])
        require(math.prod(top) == math.prod(x), f"{x} has another number of elements than {top}")
        return [top]

    @staticmethod
    def _copied(x: Shape, index: int) -> int:
        require(index < len(x), f"a 0 without an axis of {x} to copy")
        return x[index]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Flatten(_Reshaping):
    """Merges the axes axis … end_axis; end_axis = axis - 1 inserts an axis of 1 (flatten_layer.cpp)."""

    type: ClassVar[str] = "Flatten"
    param_field: ClassVar[str | None] = "flatten_param"

    axis: int = 1
    end_axis: int = -1

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        first, last = axis_index(self.axis, len(x)), axis_index(self.end_axis, len(x))
        require(first <= last + 1, f"end_axis {self.end_axis} lies before axis {self.axis}")
        return [(*x[:first], math.prod(x[first : last + 1]), *x[last + 1 :])]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Permute(Layer):
    """numpy.transpose (SSD's layer; extension); axes not named follow in their order."""

    type: ClassVar[str] = "Permute"
    param_field: ClassVar[str | None] = "permute_param"

    order: tuple[int, ...] = ()

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return [tuple(bottoms[0][a] for a in self._complete(len(bottoms[0])))]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [g.op("Transpose", bottoms[0], perm=self._complete(len(g.shape(bottoms[0]))))]

    def _complete(self, rank: int) -> list[int]:
        require(all(0 <= a < rank for a in self.order), f"order {self.order} names axes beyond {rank}")
        require(len(set(self.order)) == len(self.order), f"order {self.order} has duplicates")
        return [*self.order, *(a for a in range(rank) if a not in self.order)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Concat(Layer):
    """Concatenates on one axis (concat_layer.cpp)."""

    type: ClassVar[str] = "Concat"
    param_field: ClassVar[str | None] = "concat_param"
    arity: ClassVar[tuple[int, int | None]] = (1, None)
    codecs: ClassVar[Mapping[str, Codec]] = {"axis": Plain("axis", "concat_dim")}

    axis: int = 1

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        first = bottoms[0]
        axis = axis_index(self.axis, len(first))
        others = {(*b[:axis], *b[axis + 1 :]) for b in bottoms}
        same_rank = {len(b) for b in bottoms} == {len(first)}
        require(same_rank and len(others) == 1, f"bottoms differ beside axis {axis}: {list(bottoms)}")
        return [(*first[:axis], sum(b[axis] for b in bottoms), *first[axis + 1 :])]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [g.op("Concat", *bottoms, axis=self.axis)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Layer):
    """Cuts an axis at the slice points (or evenly when none) into `tops` tops (slice_layer.cpp)."""

    type: ClassVar[str] = "Slice"
    param_field: ClassVar[str | None] = "slice_param"
    codecs: ClassVar[Mapping[str, Codec]] = {"axis": Plain("axis", "slice_dim")}

    axis: int = 1
    slice_point: tuple[int, ...] = ()
    tops: int = 2

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        axis = axis_index(self.axis, len(x))
        require(self.tops > 0, "needs a top")
        return [(*x[:axis], size, *x[axis + 1 :]) for size in self._sizes(x[axis])]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        (x,) = bottoms
        if self.tops == 1:
            return [g.op("Identity", x)]
        sizes = self._sizes(g.shape(x)[self.axis])
        parts: Sequence[Any] = g.op("Split", x, _ints(g, sizes), axis=self.axis, outputs=self.tops)
        return parts

    def _sizes(self, dim: int) -> list[int]:
        if not self.slice_point:
            require(dim % self.tops == 0, f"axis of {dim} does not divide into {self.tops} tops")
            return [dim // self.tops] * self.tops
        require(len(self.slice_point) == self.tops - 1, f"{len(self.slice_point)} slice points for {self.tops} tops")
        sizes = [stop - start for start, stop in pairwise((0, *self.slice_point, dim))]
        require(min(sizes) > 0, f"slice points {self.slice_point} do not rise within 1 … {dim - 1}")
        return sizes


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Split(Layer):
    """Copies to several tops."""

    type: ClassVar[str] = "Split"

    tops: int = 2

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        require(self.tops > 0, "needs a top")
        return [bottoms[0]] * self.tops

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return [g.op("Identity", bottoms[0]) for _ in range(self.tops)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Tile(Layer):
    """Repeats the whole block along an axis, as numpy.tile (tile_layer.cpp)."""

    type: ClassVar[str] = "Tile"
    param_field: ClassVar[str | None] = "tile_param"

    axis: int = 1
    tiles: int

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        axis = axis_index(self.axis, len(x))
        require(self.tiles > 0, "tiles must be positive")
        return [(*x[:axis], x[axis] * self.tiles, *x[axis + 1 :])]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        repeats = [1] * len(g.shape(bottoms[0]))
        repeats[self.axis] = self.tiles
        return [g.op("Tile", bottoms[0], _ints(g, repeats))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ShuffleChannel(Layer):
    """Channels (g, C/g) to (C/g, g) (extension)."""

    type: ClassVar[str] = "ShuffleChannel"
    param_field: ClassVar[str | None] = "shuffle_channel_param"

    group: int = 1

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        require(len(x) >= 2, "takes 2 axes or more")
        require(self.group > 0 and x[1] % self.group == 0, f"group {self.group} does not divide {x[1]} channels")
        return [x]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        n, c, *rest = g.shape(bottoms[0])
        split = (n, self.group, c // self.group, math.prod(rest))
        return [_blocks(g, bottoms[0], split, (0, 2, 1, 3), (n, c, *rest))]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class PassThrough(Layer):
    """SpaceToDepth in ONNX's order, 4-D: channel (y * block_width + x) * C + c (extension; the vendor's layer)."""

    type: ClassVar[str] = "PassThrough"
    param_field: ClassVar[str | None] = "pass_through_param"

    num_output: int = 0
    block_height: int
    block_width: int

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        bh, bw = self.block_height, self.block_width
        require(len(x) == 4, f"takes 4 axes, not {len(x)}")
        n, c, h, w = x
        require(bh > 0 and bw > 0 and h % bh == 0 and w % bw == 0, f"blocks {bh}x{bw} do not divide {h}x{w}")
        require(self.num_output in {0, c * bh * bw}, f"num_output {self.num_output} is not {c * bh * bw}")
        return [(n, c * bh * bw, h // bh, w // bw)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        n, c, h, w = g.shape(bottoms[0])
        bh, bw = self.block_height, self.block_width
        (top,) = self.top_shapes([(n, c, h, w)])
        return [_blocks(g, bottoms[0], (n, c, h // bh, bh, w // bw, bw), (0, 3, 5, 1, 2, 4), top)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Reorg(Layer):
    """Darknet's reorganisation, which is not SpaceToDepth; 4-D (extension)."""

    type: ClassVar[str] = "Reorg"
    param_field: ClassVar[str | None] = "reorg_param"

    stride: int = 2
    reverse: bool = False

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        (x,) = bottoms
        s = self.stride
        require(len(x) == 4, f"takes 4 axes, not {len(x)}")
        n, c, h, w = x
        require(s > 0 and c % (s * s) == 0, f"stride {s} squared does not divide {c} channels")
        if self.reverse:
            return [(n, c // (s * s), h * s, w * s)]
        require(h % s == 0 and w % s == 0, f"stride {s} does not divide {h}x{w}")
        return [(n, c * s * s, h // s, w // s)]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        n, c, h, w = g.shape(bottoms[0])
        s = self.stride
        small = c // (s * s)
        (top,) = self.top_shapes([(n, c, h, w)])
        if self.reverse:
            return [_blocks(g, bottoms[0], (n, s, s, small, h, w), (0, 3, 4, 1, 5, 2), top)]
        return [_blocks(g, bottoms[0], (n, small, h, s, w, s), (0, 3, 5, 1, 2, 4), top)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class BatchReindex(Layer):
    """Picks batch items of bottom 0 by the indices of bottom 1 (M,) (batch_reindex_layer.cpp)."""

    type: ClassVar[str] = "BatchReindex"
    arity: ClassVar[tuple[int, int | None]] = (2, 2)

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        x, indices = bottoms
        require(len(x) >= 1, "takes 1 axis or more")
        require(len(indices) == 1, f"takes indices of one axis, not {indices}")
        return [(*indices, *x[1:])]

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        x, indices = bottoms
        return [g.op("Gather", x, g.op("Cast", indices, to=ir.DataType.INT64.value), axis=0)]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Silence(Layer):
    """Reads its bottoms, has no top: keeps unread tops from being outputs."""

    type: ClassVar[str] = "Silence"
    arity: ClassVar[tuple[int, int | None]] = (1, None)

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        return []

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        return []
