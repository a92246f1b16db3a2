"""What a Caffe layer is here: parameters, weights, shapes, and its meaning in ONNX.

A layer is a frozen dataclass. Its fields are Caffe's own parameter names; `param_field` names the sub-message of
LayerParameter they live in (`convolution_param` …). `blobs` are the weights in Caffe's order and shape (views of the
model's initializers wherever possible; nobody copies them before the writer). `infer` gives the top shapes and raises
`LayerError` on whatever Caffe would CHECK-fail on. `as_onnx` says in ONNX what the layer computes: the builtin runtime
executes exactly that. Meanings are measured facts of BVLC Caffe (see docs/caffe-layers.md), not of its documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

__all__ = ["LAYERS", "Array", "Layer", "LayerError", "OnnxBuilder", "Shape", "register"]

Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[Any]]


class LayerError(ValueError):
    """Caffe would refuse this layer on these bottoms; the text says why, in Caffe's terms where known."""


class OnnxBuilder(Protocol):
    """Where `as_onnx` writes ONNX (opset 23) nodes. Values are opaque handles."""

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

    blobs: tuple[Array, ...] = field(default=(), repr=False)

    def infer(self, bottoms: Sequence[Shape]) -> list[Shape]:
        """Top shapes for the bottoms' shapes.

        Raises:
            LayerError: Caffe would refuse.

        """
        raise NotImplementedError

    def as_onnx(self, g: OnnxBuilder, bottoms: Sequence[Any]) -> Sequence[Any]:
        """The layer's meaning: ONNX nodes from bottoms to tops (one handle per top of `infer`)."""
        raise NotImplementedError
