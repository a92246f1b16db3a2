"""What lowering and finishing ask of a target (`targets/`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from onnx2caffe.caffe.layers import Input
from onnx2caffe.caffe.layers.base import Layer, LayerError, Shape

__all__ = ["Rules", "unfit"]


class Rules(Protocol):
    """A target: which layers it takes, which alternatives it prefers."""

    def refuses(self, layer: Layer, bottoms: Sequence[Shape], tops: Sequence[Shape]) -> str | None:
        """Why the target cannot have this layer on these shapes, or None."""
        ...

    def gist(self, op: str, shapes: Sequence[Shape], reasons: Sequence[str]) -> str:
        """Of the reasons why a node of ONNX on tensors of these shapes has no lowering, what the user should read."""
        ...

    def order(self, key: str) -> Sequence[str]:
        """The variants of `key` to try first, best first; others follow in order of registration."""
        ...


def unfit(rules: Rules, shape: Shape) -> str | None:
    """Why a target has no blob of a shape, or None."""
    layer = Input(shape=(shape,))
    try:
        return rules.refuses(layer, [], layer.infer([]))
    except LayerError as problem:
        return str(problem)
