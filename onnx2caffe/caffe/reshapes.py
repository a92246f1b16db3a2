"""Net to Net: whoever can do without a Reshape reads what the Reshape reads.

A node's own lowering cannot know that the node before ends in a Reshape where it starts with one. Reshapes left without
a reader die in `finish`. Safe because no layer works in place: a blob never changes once it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx2caffe.caffe.layers import InnerProduct, Reshape
from onnx2caffe.caffe.layers.base import Shape
from onnx2caffe.caffe.net import Net, Placed

__all__ = ["read_through"]


def read_through(net: Net) -> Net:
    """The same net, its Reshapes and InnerProducts reading through Reshapes before them.

    A Reshape back to the shape it came from is read through by everybody.
    """
    sources: dict[str, str] = {}
    same: dict[str, str] = {}
    layers = []
    for placed in net:
        bottoms = tuple(same.get(blob, blob) for blob in placed.bottoms)
        if bottoms and _indifferent(placed, net, sources.get(bottoms[0], bottoms[0])):
            bottoms = (sources.get(bottoms[0], bottoms[0]),)
        if isinstance(placed.layer, Reshape):
            sources[placed.tops[0]] = bottoms[0]
            if net.shapes[bottoms[0]] == net.shapes[placed.tops[0]]:
                same[placed.tops[0]] = bottoms[0]
        layers.append(replace(placed, bottoms=bottoms))
    return replace(net, layers=layers, twins=_twins(net, layers))


def _twins(net: Net, layers: Sequence[Placed]) -> dict[str, str]:
    """What the Reshapes read whose tops nobody reads any more."""
    read = {blob for placed in layers for blob in placed.bottoms} | set(net.outputs)
    idle = (p for p in layers if isinstance(p.layer, Reshape) and p.tops[0] not in read)
    return {placed.tops[0]: placed.bottoms[0] for placed in idle}


def _indifferent(placed: Placed, net: Net, source: str) -> bool:
    """Whether the layer computes the same from `source` as from its own bottom, a Reshape of it."""
    layer = placed.layer
    shape: Shape = net.shapes[source]
    own: Shape = net.shapes[placed.bottoms[0]]
    if isinstance(layer, Reshape):
        keeps_batch = layer.shape[:1] == (0,) and shape[:1] == own[:1]
        return layer.axis == 0 and layer.num_axes == -1 and min(layer.shape[keeps_batch:], default=1) > 0
    if isinstance(layer, InnerProduct):
        return len(shape) > layer.axis and shape[: layer.axis] == own[: layer.axis]
    return False
