"""Several nets as one prototxt for one `.wk`: the CPU parts between them are `Custom` layers (nnie E15, §5)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from onnx2caffe.caffe.layers import Input, Reshape
from onnx2caffe.caffe.layers.base import Layer, Shape
from onnx2caffe.caffe.layers.codec import Codec, DimsList
from onnx2caffe.caffe.names import unlike
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.rename import renamed
from onnx2caffe.targets.nnie.finish import NAME_LENGTH, plain

__all__ = ["Custom", "Joined", "Link", "joined"]

_AXES = (2, 3, 4)
"""How many the mapper's blobs have, the batch's among them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Custom(Layer):
    """What the user computes himself between two segments: one shape per top."""

    type: ClassVar[str] = "Custom"
    param_field: ClassVar[str | None] = "custom_param"
    arity: ClassVar[tuple[int, int | None]] = (1, None)
    codecs: ClassVar[Mapping[str, Codec]] = {"shape": DimsList("shape")}

    shape: tuple[Shape, ...]

    def top_shapes(self, bottoms: Sequence[Shape]) -> list[Shape]:
        """As the field says."""
        return list(self.shape)


@dataclass(frozen=True)
class Link:
    """A net, or None for a part in between; tensors to blobs for a net, tensors to shapes for a part.

    `kept`: blobs of the net that keep their names, since the user chose these.
    """

    net: Net | None
    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    shapes: Mapping[str, Shape]
    kept: Collection[str] = ()


@dataclass(frozen=True)
class Joined:
    """One net of several; for each of these, in order, what its blobs and its layers are called there."""

    net: Net
    blobs: Sequence[Mapping[str, str]]
    layers: Sequence[Mapping[str, str]]


def joined(name: str, links: Sequence[Link]) -> Joined:
    """One net of all links, in order; what comes from outside stays an Input."""
    return _Joining(name, {blob for link in links for blob in link.kept}).run(links)


class _Joining:
    def __init__(self, name: str, kept: set[str]) -> None:
        self._net, self._kept = Net(plain(name)), kept
        self._renamings: list[tuple[dict[str, str], dict[str, str]]] = []
        """Of blobs and of layers, per net."""
        self._blobs: dict[str, str] = {}
        """Tensor -> the blob that holds it in the joined net."""
        self._layers: set[str] = set()

    def run(self, links: Sequence[Link]) -> Joined:
        for number, link in enumerate(links):
            if link.net is None:
                wanted = {tensor for later in links[number + 1 :] for tensor in later.inputs}
                self._custom(link, wanted)
            else:
                self._add(link, link.net)
        return Joined(self._net, *([pair[kind] for pair in self._renamings] for kind in (0, 1)))

    def _free(self, name: str, others: Collection[str] = (), length: int = NAME_LENGTH) -> str:
        """A name for a blob like this one, that nothing has."""
        return unlike(plain(name), {*self._net.shapes, *others, *self._kept}, length)

    def _add(self, link: Link, net: Net) -> None:
        made = {blob: self._blobs[tensor] for tensor, blob in link.inputs.items() if tensor in self._blobs}
        fed = {blob: self._shaped(source, net.shapes[blob]) for blob, source in made.items()}
        own = replace(net, layers=[p for p in net if not (isinstance(p.layer, Input) and p.tops[0] in fed)])
        blobs, layers = dict(fed), dict[str, str]()
        for blob in (b for b in net.shapes if b not in fed):
            length = NAME_LENGTH if len(blob) <= NAME_LENGTH else 0
            blobs[blob] = blob if blob in link.kept else self._free(blob, blobs.values(), length)
        for placed in own:
            layers[placed.name] = unlike(placed.name, {*self._layers, *layers.values()})
        own = renamed(own, blobs, layers)
        self._net.layers += own.layers
        self._net.shapes |= own.shapes
        self._layers |= set(layers.values())
        self._renamings.append((blobs, layers))
        self._blobs |= {t: blobs[b] for t, b in (*link.inputs.items(), *link.outputs.items())}

    def _shaped(self, blob: str, shape: Shape) -> str:
        """A blob in the shape in which a net takes it; outputs of nets need not have that of their tensor."""
        if self._net.shapes[blob] == shape:
            return blob
        top = self._free(f"{blob}__shaped")
        layer = Reshape(shape=(0, *shape[1:]))
        self._place(Placed(unlike(top, self._layers), layer, (blob,), (top,)))
        return top

    def _custom(self, link: Link, wanted: set[str]) -> None:
        for tensor in link.inputs:
            if tensor not in self._blobs:
                self._input(tensor, link.shapes[tensor])
        tops: dict[str, str] = {}
        for tensor in (t for t in link.outputs if t in wanted):
            tops[tensor] = self._free(tensor, tops.values())
        layer = Custom(shape=tuple(link.shapes[tensor] for tensor in tops))
        name = unlike(plain(link.name), self._layers)
        bottoms = tuple(dict.fromkeys(self._blobs[tensor] for tensor in link.inputs))
        self._place(Placed(name, layer, bottoms, tuple(tops.values())))
        self._blobs |= tops

    def _input(self, tensor: str, shape: Shape) -> None:
        """What only the user's own code reads: a row of numbers where the mapper has no such shape."""
        blob = self._free(tensor)
        taken = shape if len(shape) in _AXES and shape[0] == 1 else (1, math.prod(shape))
        self._place(Placed(unlike(blob, self._layers), Input(shape=(taken,)), (), (blob,)))
        self._blobs[tensor] = blob

    def _place(self, placed: Placed) -> None:
        source = isinstance(placed.layer, Input)
        self._net.layers.insert(0 if source else len(self._net.layers), placed)
        self._layers.add(placed.name)
        shapes = [self._net.shapes[blob] for blob in placed.bottoms]
        self._net.shapes |= zip(placed.tops, placed.layer.top_shapes(shapes), strict=True)
