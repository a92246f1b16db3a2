"""Net to Net: other names for blobs and layers; `twins` and `moments` say where the old blobs are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from onnx2caffe.caffe.net import Net

__all__ = ["forgotten", "renamed"]


def renamed(net: Net, blobs: Mapping[str, str], layers: Mapping[str, str] | None = None) -> Net:
    """The same net with other names (old -> new).

    A blob that has the new name of another, and no new name itself, gets one.
    """
    layers = layers or {}
    taken = {*net.shapes, *blobs.values()}
    blobs = dict(blobs)
    for old in net.shapes:
        if old not in blobs and old in blobs.values():
            number = next(n for n in range(2, len(taken) + 3) if f"{old}_{n}" not in taken)
            blobs[old] = f"{old}_{number}"
            taken.add(blobs[old])
    placed = [
        replace(
            one,
            name=layers.get(one.name, one.name),
            bottoms=tuple(blobs.get(b, b) for b in one.bottoms),
            tops=tuple(blobs.get(t, t) for t in one.tops),
        )
        for one in net
    ]
    return replace(
        net,
        layers=placed,
        shapes={blobs.get(b, b): shape for b, shape in net.shapes.items()},
        inputs=[blobs.get(b, b) for b in net.inputs],
        outputs=[blobs.get(b, b) for b in net.outputs],
        twins={**{old: blobs.get(b, b) for old, b in net.twins.items()}, **blobs},
        moments={blob: layers.get(layer, layer) for blob, layer in net.moments.items()},
    )


def forgotten(net: Net, before: Iterable[str], finished: Net) -> Net:
    """`net`, made of `finished` by other names: the blobs of `before` that died on the way to that are nowhere.

    Their names may be new names of others by now.
    """
    dead = dict.fromkeys((b for b in before if b not in finished.shapes and b not in finished.twins), "")
    return replace(net, twins=dead | net.twins)
