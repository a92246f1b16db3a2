"""What lowering and finishing ask of a target (`targets/`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from onnx2caffe.caffe.layers.base import Layer, Shape

__all__ = ["Rules"]


class Rules(Protocol):
    """A target: which layers it takes, which alternatives it prefers."""

    def refuses(self, layer: Layer, bottoms: Sequence[Shape], tops: Sequence[Shape]) -> str | None:
        """Why the target cannot have this layer on these shapes, or None."""
        ...

    def order(self, key: str) -> Sequence[str]:
        """The variants of `key` to try first, best first; others follow in order of registration."""
        ...
