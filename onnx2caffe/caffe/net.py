"""A Caffe net as ordered, named layers: what lowering makes, finishing rewrites and the writer streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx2caffe.caffe.layers.base import Layer, Shape

__all__ = ["Blob", "Net", "Placed"]


@dataclass(frozen=True)
class Blob:
    """A tensor in a net: the blob's name and the tensor's static shape.

    `held`: the blob's own shape, where the target has no Reshape to the tensor's; the values in C order are the same.
    """

    name: str
    shape: Shape
    held: Shape | None = None

    @property
    def own(self) -> Shape:
        """The blob's own shape."""
        return self.shape if self.held is None else self.held

    def seen_as(self, shape: Shape) -> Blob:
        """The same blob as a tensor of another shape."""
        return Blob(self.name, shape, None if self.own == shape else self.own)


@dataclass(frozen=True)
class Placed:
    """A layer in a net: its name, bottoms and tops by blob name, and the user's nodes it stands for."""

    name: str
    layer: Layer
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    sources: tuple[str, ...] = ()


@dataclass
class Net:
    """Layers in execution order, Input layers first; `outputs` are the blobs the net promises, in the user's order.

    `twins`: for a blob that is no more in the net by its first name, the blob that holds the same values in C order.
    `moments`: for a blob by its first name, the layer after which its values stand in the net (absent: to the end).
    """

    name: str
    layers: list[Placed] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    twins: dict[str, str] = field(default_factory=dict)
    moments: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Placed]:
        return iter(self.layers)

    def readers(self, blob: str) -> list[Placed]:
        """The layers that read `blob`, in order."""
        return [p for p in self.layers if blob in p.bottoms]
