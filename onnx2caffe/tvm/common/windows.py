"""The ways back from windows to a map."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.tvm.common.indices import scattered
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.program import Array
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@dataclass(frozen=True)
class _Windows:
    """How windows lie on a map of some sizes; `pads`: the begins come first."""

    sizes: Shape
    kernel: Shape
    strides: Shape
    dilations: Shape
    pads: Shape

    def places(self, out: Shape) -> Array:
        """The flat place in the map (windows, positions in a window) that each position reads; -1 outside."""
        flat = np.zeros((math.prod(out), math.prod(self.kernel)), np.int64)
        outside = np.zeros(flat.shape, bool)
        for axis, size in enumerate(self.sizes):
            starts = np.indices(out)[axis].reshape(-1, 1) * self.strides[axis] - self.pads[axis]
            place = starts + np.indices(self.kernel)[axis].reshape(1, -1) * self.dilations[axis]
            outside |= (place < 0) | (place >= size)
            flat = flat * size + place
        return np.where(outside, -1, flat)

    def out(self) -> Shape:
        """How many windows fit on each axis."""
        rank = len(self.sizes)
        room = [n + self.pads[axis] + self.pads[axis + rank] for axis, n in enumerate(self.sizes)]
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel, strict=True)]
        return tuple((n - r) // s + 1 for n, r, s in zip(room, reach, self.strides, strict=True))


@emits(BOTH, "MaxUnpool")
def max_unpool(op: Op, net: Net) -> Value:
    """Zeros with the values where their indices say."""
    x, indices = op.value(0), op.value(1)
    empty = net.broadcast(net.like(0, x), op.outputs[0])
    return scattered(net, empty, indices, x, "update")


@emits(BOTH, "Col2Im")
def col2im(op: Op, net: Net) -> Value:
    """Every pixel is the sum of the positions in windows that read it: a gather of these, and the sum."""
    x = op.value()
    sizes, kernel = (tuple(int(n) for n in op.need_const(i, what)) for i, what in ((1, "image_shape"), (2, "block")))
    ones = (1,) * len(sizes)
    windows = _Windows(
        sizes,
        kernel,
        op.attribute("strides", ones),
        op.attribute("dilations", ones),
        op.attribute("pads", (0, 0) * len(sizes)),
    )
    places = windows.places(windows.out()).transpose()  # as x has them: positions, windows
    readers = _readers(places.reshape(-1), math.prod(sizes))
    items, channels = op.outputs[0][:2]
    columns = net.reshape(x, (items, channels, places.size))
    terms = net.take(columns, net.const(np.maximum(readers, 0)), 2)
    if (readers < 0).any():
        terms = net("where", net.const(readers >= 0), terms, net.like(0, x), dtype=x.dtype)
    return net.reshape(net("sum", terms, [3], shape=(items, channels, math.prod(sizes))), op.outputs[0])


def _readers(places: Array, size: int) -> Array:
    """For each of `size` places the positions that name it, filled up with -1."""
    counts = np.bincount(places[places >= 0], minlength=size)
    readers = np.full((size, max(int(counts.max(initial=1)), 1)), -1, np.int64)
    found = np.zeros(size, np.int64)
    for position, place in enumerate(places):
        if place >= 0:
            readers[place, found[place]] = position
            found[place] += 1
    return readers
