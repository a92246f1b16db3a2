"""What a Caffe layer is here: parameters, weights, shapes, and its meaning in ONNX.

A layer is a frozen dataclass. Its fields are Caffe's own parameter names; `param_field` names the sub-message of
LayerParameter they live in (`convolution_param` …). `blobs` are the weights in Caffe's order and shape (views of the
model's initializers wherever possible; nobody copies them before the writer). `infer` gives the top shapes and raises
`LayerError` on whatever Caffe would CHECK-fail on. `as_onnx` says in ONNX what the layer computes: the builtin runtime
executes exactly that. Meanings are measured facts of BVLC Caffe (see docs/caffe-layers.md), not of its documentation.

A layer type says three things: `top_shapes` and `blob_shapes` (shapes from shapes), and `as_onnx`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from onnx2caffe.caffe.layers.codec import Codec

__all__ = [
    "LAYERS",
    "Array",
    "Layer",
    "LayerError",
    "OnnxBuilder",
    "Shape",
    "axis_index",
    "check_blob",
    "register",
    "require",
    "scalar",
]

Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[Any]]

MAX_AXES = 32
MAX_COUNT = 2**31 - 1


class LayerError(ValueError):
    """Caffe would refuse this layer on these bottoms; the text says why, in Caffe's terms where known."""


class OnnxBuilder(Protocol):
    """Where `as_onnx` writes ONNX nodes (the default domain at opset 21). Values are opaque handles."""

    def op(self, type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; returns its output handle, or a tuple of them when `outputs` > 1. None = absent input."""
        ...

    def const(self, array: Array) -> Any:
        """A constant (no copy of the array)."""
        ...

    def shape(self, value: Any) -> Shape:
        """The static shape of a handle made from a bottom."""
        ...


_T = TypeVar("_T", bound="type[Layer]")

LAYERS: dict[str, type[Layer]] = {}
"""Every layer type this package knows, by Caffe's type name."""


def register(cls: _T) -> _T:
    """Class decorator: makes a layer type known to the reader under its Caffe name."""
    if cls.type in LAYERS:
        raise ValueError(f"layer type {cls.type} is registered twice")
    LAYERS[cls.type] = cls
    return cls


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer:
    """Base of all layers."""

    type: ClassVar[str] = ""
    param_field: ClassVar[str | None] = None
    in_place: ClassVar[bool] = False
    """True where Caffe gives the same values in place (facts: recipes §14)."""
    arity: ClassVar[tuple[int, int | None]] = (1, 1)
    """The least and the largest number of bottoms (None: any)."""
    codecs: ClassVar[Mapping[str, Codec]] = {}
    """The fields that Caffe spells in another way than as one protobuf field of the same name."""
    fillers: ClassVar[tuple[str, ...]] = ()
    """The parameter fields of fillers."""
    unread: ClassVar[frozenset[str]] = frozenset()
    """Parameter fields without meaning for inference on a CPU."""

    blobs: tuple[Array, ...] = field(default=(), repr=False)

    def infer(self, bottoms: Sequence[Shape]) -> list[Shape]:
        """Top shapes for the bottoms' shapes.

        Raises:
            LayerError: Caffe would refuse.

        """
        tops = self.outline(bottoms)
        expected, given = self.blob_shapes(bottoms), [b.shape for b in self.blobs]
        require(given == expected, f"needs blobs of shapes {expected}, has {given}")
        return tops

    def outline(self, bottoms: Sequence[Shape]) -> list[Shape]:
        """`infer`, but whatever the weights are."""
        low, high = self.arity
        require(low <= len(bottoms) and (high is None or len(bottoms) <= high), f"cannot take {len(bottoms)} bottoms")
        tops = self.top_shapes(bottoms)
        for top in tops:
            check_blob(top)
        return tops

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        """Top shapes, the parameters checked against the bottoms; called with a legal number of bottoms.

        Raises:
            LayerError: Caffe would refuse.

        """
        return [bottoms[0]]

    def blob_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        """The shapes of the weights for the bottoms' shapes; called after `top_shapes` accepted them."""
        return []

    def filler_fields(self, bottoms: int) -> Sequence[str]:
        """The parameter fields that say what each blob holds without a caffemodel, given the number of bottoms."""
        return self.fillers

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        """The layer's meaning: ONNX nodes from bottoms to tops (one handle per top of `infer`)."""
        raise NotImplementedError


def check_blob(shape: Shape) -> None:
    """Raise `LayerError` for a shape that no blob has."""
    require(len(shape) <= MAX_AXES, f"a blob has at most {MAX_AXES} axes, not {len(shape)}")
    require(all(d > 0 for d in shape), f"top shape {shape} has an empty axis")
    require(math.prod(shape) <= MAX_COUNT, f"blob {shape} exceeds INT_MAX elements")


def require(condition: bool, reason: str) -> None:
    """Raise `LayerError(reason)` unless the condition holds: one CHECK of Caffe's."""
    if not condition:
        raise LayerError(reason)


def axis_index(axis: int, rank: int) -> int:
    """A blob axis counted from the front; negative ones count from the end.

    Raises:
        LayerError: the blob has no such axis.

    """
    require(-rank <= axis < rank, f"axis {axis} is out of range for {rank} axes")
    return axis % rank


def scalar(g: OnnxBuilder, value: float) -> Any:
    """A float32 constant without axes."""
    return g.const(np.array(value, np.float32))
