"""Layers that only move data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx2caffe.caffe.layers.base import Layer, register

__all__ = [
    "BatchReindex",
    "Concat",
    "Flatten",
    "Interp",
    "PassThrough",
    "Permute",
    "Reorg",
    "Reshape",
    "ShuffleChannel",
    "Silence",
    "Slice",
    "Split",
    "Tile",
    "Upsample",
]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Reshape(Layer):
    """shape: 0 copies the axis at the same position, one -1 is inferred."""

    type: ClassVar[str] = "Reshape"
    param_field: ClassVar[str | None] = "reshape_param"

    shape: tuple[int, ...]
    axis: int = 0
    num_axes: int = -1


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Flatten(Layer):
    """Merges the axes axis … end_axis."""

    type: ClassVar[str] = "Flatten"
    param_field: ClassVar[str | None] = "flatten_param"

    axis: int = 1
    end_axis: int = -1


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Permute(Layer):
    """numpy.transpose (extension); axes not named follow in their order."""

    type: ClassVar[str] = "Permute"
    param_field: ClassVar[str | None] = "permute_param"

    order: tuple[int, ...]


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Concat(Layer):
    """Concatenates on one axis."""

    type: ClassVar[str] = "Concat"
    param_field: ClassVar[str | None] = "concat_param"

    axis: int = 1


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Layer):
    """Cuts an axis at the slice points (or evenly when none) into `tops` tops."""

    type: ClassVar[str] = "Slice"
    param_field: ClassVar[str | None] = "slice_param"

    axis: int = 1
    slice_point: tuple[int, ...] = ()
    tops: int = 2


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Split(Layer):
    """Copies to several tops."""

    type: ClassVar[str] = "Split"

    tops: int = 2


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Tile(Layer):
    """Repeats the whole block along an axis, as numpy.tile."""

    type: ClassVar[str] = "Tile"
    param_field: ClassVar[str | None] = "tile_param"

    axis: int = 1
    tiles: int


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class ShuffleChannel(Layer):
    """Channels (g, C/g) to (C/g, g) (extension)."""

    type: ClassVar[str] = "ShuffleChannel"
    param_field: ClassVar[str | None] = "shuffle_channel_param"

    group: int = 1


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class PassThrough(Layer):
    """SpaceToDepth in ONNX's order, 4-D (extension)."""

    type: ClassVar[str] = "PassThrough"
    param_field: ClassVar[str | None] = "pass_through_param"

    num_output: int
    block_height: int
    block_width: int


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Reorg(Layer):
    """Darknet's reorganisation, which is not SpaceToDepth (extension)."""

    type: ClassVar[str] = "Reorg"
    param_field: ClassVar[str | None] = "reorg_param"

    stride: int = 2
    reverse: bool = False


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Upsample(Layer):
    """Nearest by repetition (scale), or un-max-pooling with a mask as second bottom (extension), 4-D."""

    type: ClassVar[str] = "Upsample"
    param_field: ClassVar[str | None] = "upsample_param"

    scale: int | None = None
    scale_h: int | None = None
    scale_w: int | None = None
    upsample_h: int | None = None
    upsample_w: int | None = None


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Interp(Layer):
    """Bilinear with align_corners to height x width, 4-D (extension)."""

    type: ClassVar[str] = "Interp"
    param_field: ClassVar[str | None] = "interp_param"

    height: int
    width: int


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class BatchReindex(Layer):
    """Picks batch items of bottom 0 by the indices of bottom 1."""

    type: ClassVar[str] = "BatchReindex"


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Silence(Layer):
    """Reads its bottoms, has no top: keeps unread tops from being outputs."""

    type: ClassVar[str] = "Silence"
