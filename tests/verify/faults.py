"""Faults to plant in written nets: each changes one layer, and the net still loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnx2caffe.caffe.layers import Pooling, Sigmoid, TanH
from onnx2caffe.caffe.net import Net, Placed

__all__ = ["FAULTS", "Fault", "first_reached", "plant"]

Change = Callable[[Placed], Placed]


@dataclass(frozen=True)
class Fault:
    """One planted fault: which net, which layer, what is done to it.

    `layer`: the blob it makes; `blob:Type` is the nearest layer of a type on the way up from there.
    """

    model: str
    layer: str
    name: str
    change: Change

    @property
    def id(self) -> str:
        return f"{self.model}-{self.layer}-{self.name}".replace(" ", "_").replace(":", "_")


def _blob(index: int, function: Callable[[np.ndarray], np.ndarray]) -> Change:
    def change(placed: Placed) -> Placed:
        blobs = [np.array(blob) for blob in placed.layer.blobs]
        blobs[index] = function(blobs[index]).astype(np.float32)
        return replace(placed, layer=replace(placed.layer, blobs=tuple(blobs)))

    return change


def _fields(**values: Any) -> Change:
    return lambda placed: replace(placed, layer=replace(placed.layer, **values))


def _layer(layer: Any) -> Change:
    return lambda placed: replace(placed, layer=layer)


def _bottoms(placed: Placed) -> Placed:
    return replace(placed, bottoms=placed.bottoms[::-1])


def _tops(placed: Placed) -> Placed:
    return replace(placed, tops=placed.tops[::-1])


def _largest_more(weights: np.ndarray) -> np.ndarray:
    weights = weights.copy()
    weights.flat[np.argmax(np.abs(weights))] *= 1.02
    return weights


def _first_two_swapped(weights: np.ndarray) -> np.ndarray:
    return weights[[1, 0, *range(2, len(weights))]]


WEIGHTS = {
    "one weight x 1.02": _blob(0, _largest_more),
    "all weights x 1.02": _blob(0, lambda w: w * 1.02),
    "first two outputs swapped": _blob(0, _first_two_swapped),
}
BIAS = {"bias dropped": _blob(1, np.zeros_like), "bias of the neighbour": _blob(1, lambda b: np.roll(b, 1))}
KERNEL = {
    "kernel mirrored": _blob(0, lambda w: w[..., ::-1]),
    "kernel transposed": _blob(0, lambda w: w.swapaxes(-1, -2)),
}
DILATED = {"dilated": _fields(dilation=(2, 2), pad=(2, 2))}
INPUTS = {"input channels rolled": _blob(0, lambda w: np.roll(w, 1, axis=1))}
CONV = WEIGHTS | BIAS | INPUTS
CONV3 = CONV | KERNEL | DILATED
LEAKY = {"slope 0.1": _fields(negative_slope=0.1)}
SWAPPED = {"bottoms swapped": _bottoms}
MAX_FOR_SUM = {"MAX for SUM": _fields(operation="MAX"), "PROD for SUM": _fields(operation="PROD")}

_TABLE: dict[str, dict[str, dict[str, Change]]] = {
    "classifier": {
        "c1": CONV3,
        "r1": LEAKY,
        "p1": {
            "floor for ceil": _fields(round_mode="FLOOR"),
            "average for maximum": _fields(pool="AVE"),
            "smaller window": _fields(kernel_size=(2, 2)),
        },
        "c2": WEIGHTS | BIAS | INPUTS | KERNEL,
        "r2": {"no slope": _fields(negative_slope=0.0), "slope 0.11": _fields(negative_slope=0.11)},
        "c3": WEIGHTS | BIAS | INPUTS | KERNEL | {"not dilated": _fields(dilation=(1, 1), pad=(1, 1))},
        "a3": MAX_FOR_SUM | {"coefficients": _fields(coeff=(1.0, 0.98))},
        "r3": LEAKY,
        "g": {"maximum for average": _layer(Pooling(pool="MAX", global_pooling=True))},
        "fc": WEIGHTS | BIAS,
        "prob": {"sigmoid for softmax": _layer(Sigmoid())},
    },
    "branches": {
        "c1": CONV3,
        "s0": {
            "slice point - 1": _fields(slice_point=(4,)),
            "slice point + 1": _fields(slice_point=(6,)),
            "tops swapped": _tops,
        },
        "g0": {"tanh for sigmoid": _layer(TanH())},
        "g1": {"sigmoid for tanh": _layer(Sigmoid())},
        "cat1": SWAPPED,
        "dw": WEIGHTS | BIAS | KERNEL | DILATED,
        "r_dw": LEAKY,
        "pw": CONV | {"transposed": _blob(0, lambda w: w.swapaxes(0, 1))},
        "cat2": SWAPPED,
        "shuffled": {"other group": _fields(group=3), "no shuffle": _fields(group=1)},
        "c2": CONV,
        "ap": {"maximum for average": _fields(pool="MAX")},
    },
    "detector": {
        "stem": WEIGHTS | BIAS | INPUTS | KERNEL,
        "feat": LEAKY,
        "down": WEIGHTS | BIAS | INPUTS | KERNEL,
        "a_box": CONV,
        "feat2": LEAKY,
        "b_box": CONV,
        "rows:Concat": SWAPPED,
        "dist": {"wrong axis": _fields(axis=1), "sigmoid for softmax": _layer(Sigmoid())},
        "expected": {
            "all weights x 1.02": _blob(0, lambda w: w * 1.02),
            "bins rolled": _blob(0, lambda w: np.roll(w, 1, axis=1)),
        },
    },
    "decoder": {
        "e1": CONV3,
        "e1r": LEAKY,
        "e2": WEIGHTS | BIAS | INPUTS | KERNEL,
        "up": WEIGHTS | BIAS | INPUTS | KERNEL,
        "skip": MAX_FOR_SUM,
        "pooled": {"maximum for average": _fields(pool="MAX")},
        "se": CONV,
        "gate": {"tanh for sigmoid": _layer(TanH())},
        "mask": CONV3,
        "y": {"tanh for sigmoid": _layer(TanH())},
    },
    "arithmetic": {
        "bn": {
            "scale x 1.02": _blob(0, lambda s: s * 1.02),
            "scales of the neighbour": _blob(0, lambda s: np.roll(s, 1)),
        }
        | BIAS,
        "pr": {
            "slopes x 1.02": _blob(0, lambda s: s * 1.02),
            "slopes of the neighbour": _blob(0, lambda s: np.roll(s, 1)),
        },
        "c1": CONV3,
        "cl": {"lower bound": _fields(min=-1.02), "upper bound": _fields(max=1.52)},
        "scaled": {"scale": _fields(scale=1.72), "shift": _fields(shift=0.02), "power": _fields(power=2.0)},
        "prod": {"SUM for PROD": _fields(operation="SUM")},
        "mx": {"SUM for MAX": _fields(operation="SUM")},
        "av": {
            "maximum for average": _fields(pool="MAX"),
            "smaller window": _fields(kernel_size=(1, 1), pad=(0, 0)),
        },
        "sub": {"sign lost": _fields(coeff=(1.0, 1.0))} | SWAPPED,
        "mm": WEIGHTS | {"transposed": _blob(0, np.transpose)},
        "y": {"alpha": _fields(alpha=1.1)},
    },
}

FAULTS = [
    Fault(model, layer, name, change)
    for model, layers in _TABLE.items()
    for layer, changes in layers.items()
    for name, change in changes.items()
]


def plant(net: Net, fault: Fault) -> Placed:
    """Put the fault into the net; the layer as it was."""
    blob, _, type_ = fault.layer.partition(":")
    while True:
        (place,) = (i for i, placed in enumerate(net.layers) if blob in placed.tops)
        before = net.layers[place]
        if before.layer.type == (type_ or before.layer.type):
            net.layers[place] = fault.change(before)
            return before
        blob = before.bottoms[0]


def first_reached(net: Net, layer: Placed, blobs: dict[str, str], order: list[str]) -> str:
    """The first tensor, in `order`, whose blob depends on the layer. `blobs`: tensor -> blob."""
    reached = set(layer.tops)
    for placed in net:
        if reached & set(placed.bottoms):
            reached |= set(placed.tops)
    return next(name for name in order if blobs.get(name) in reached)
