"""What a rule looks at: a layer in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx2caffe.caffe.layers.base import Layer, Shape

__all__ = ["Site"]


@dataclass(frozen=True)
class Site:
    """One layer: its type by name, its parameters where they could be read, and shapes where they are known.

    `bottoms` and `tops` are blob names. `shapes` and `top_shapes` are empty where a shape could not be inferred, or
    where there are no bottoms or tops. `line`: in the prototxt, from 1 (0: none). `fields`: the names written in the
    layer, with those of its parameter message as `pooling_param.pool`. `problem`: why Caffe would refuse the layer.
    """

    type: str
    layer: Layer | None
    shapes: Sequence[Shape]
    top_shapes: Sequence[Shape]
    name: str = ""
    bottoms: Sequence[str] = ()
    tops: Sequence[str] = ()
    line: int = 0
    fields: frozenset[str] = field(default_factory=frozenset)
    unknown: Sequence[str] = ()
    problem: str = ""
