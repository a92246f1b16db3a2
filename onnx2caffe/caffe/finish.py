"""Net to Net, last before writing: nothing dead, nothing that only looks like an output, no name Caffe makes itself.

Blob names never change: map.json points at them. In-place layers are not made: every blob keeps its value after a run.
A net output that is also read inside needs nothing: its blob holds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

from onnx2caffe.caffe.layers import Input, Silence
from onnx2caffe.caffe.names import Namer
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.reshapes import read_through
from onnx2caffe.caffe.rules import Rules

__all__ = ["finish"]


def finish(net: Net, target: Rules) -> Net:
    """The net to write: live layers in their order, unread tops silenced where the target has Silence."""
    net = read_through(net)
    layers = _live(net)
    layers += _silence(net, layers, target)
    tops = {top for placed in layers for top in placed.tops}
    shapes = {blob: shape for blob, shape in net.shapes.items() if blob in tops}
    return Net(net.name, _clear_of_splits(layers), shapes, net.inputs, net.outputs, net.twins)


def _live(net: Net) -> list[Placed]:
    """The layers that an output needs, and all inputs."""
    needed = set(net.outputs)
    live = []
    for placed in reversed(net.layers):
        if isinstance(placed.layer, Input) or needed.intersection(placed.tops):
            needed.update(placed.bottoms)
            live.append(placed)
    return live[::-1]


def _silence(net: Net, layers: Sequence[Placed], target: Rules) -> list[Placed]:
    """A layer that reads what nobody reads: Caffe calls every unread blob an output of the net."""
    read = {blob for placed in layers for blob in placed.bottoms} | set(net.outputs)
    unread = [top for placed in layers for top in placed.tops if top not in read]
    layer, shapes = Silence(), [net.shapes[blob] for blob in unread]
    if not unread or target.refuses(layer, shapes, []):
        return []
    name = Namer()
    for placed in layers:
        name(placed.name)
    return [Placed(name("silence"), layer, tuple(unread), ())]


def _clear_of_splits(layers: Sequence[Placed]) -> list[Placed]:
    """Rename layers whose automatic split would bear a name the net has.

    A blob with several readers gets a Split `<blob>_<layer>_<i>_split` with tops `<blob>_<layer>_<i>_split_<j>`
    (insert_splits.cpp); `layer` is the one that makes the blob, so another name for it is a way out.
    """
    readers = Counter(blob for placed in layers for blob in placed.bottoms)
    taken = {placed.name for placed in layers} | {top for placed in layers for top in placed.tops}
    result = []
    for placed in layers:
        others = (f"{placed.name}_{number}" for number in count(2))
        names = chain([placed.name], (name for name in others if name not in taken))
        name = next(n for n in names if taken.isdisjoint(_split_names(n, placed.tops, readers)))
        taken |= {name, *_split_names(name, placed.tops, readers)}
        result.append(replace(placed, name=name))
    return result


def _split_names(layer: str, tops: Sequence[str], readers: Counter[str]) -> set[str]:
    names = set()
    for index, blob in enumerate(tops):
        if readers[blob] > 1:
            split = f"{blob}_{layer}_{index}_split"
            names |= {split, *(f"{split}_{j}" for j in range(readers[blob]))}
    return names
