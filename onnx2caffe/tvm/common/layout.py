"""What only moves elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.common.indices import wrapped
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__ = ["sliced"]

_SLICE_INPUTS = ("starts", "ends", "axes", "steps")


@emits(BOTH, "Reshape")
def reshape(op: Op, net: Net) -> Value:
    """Its target is static."""
    return net.reshape(op.value(), op.outputs[0])


@emits(BOTH, "Transpose")
def transpose(op: Op, net: Net) -> Value:
    """`perm` is explicit."""
    return net.transpose(op.value(), op.attribute("perm"))


@emits(BOTH, "Concat")
def concat(op: Op, net: Net) -> Value:
    """Values one after another."""
    return net.concat(op.values, op.attribute("axis"))


@emits(BOTH, "Split")
def split(op: Op, net: Net) -> list[Value]:
    """A slice for each part."""
    x, axis = op.value(), op.attribute("axis")
    parts, start = [], 0
    for shape in op.outputs:
        parts.append(sliced(net, x, axis, range(start, start + shape[axis])))
        start += shape[axis]
    return parts


@emits(BOTH, "Slice")
def slice_(op: Op, net: Net) -> Value:
    """What is read backwards is taken by its indices."""
    x = op.value()
    starts, ends, axes, steps = (op.need_const(i, what).tolist() for i, what in enumerate(_SLICE_INPUTS, start=1))
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        x = sliced(net, x, axis, range(x.shape[axis])[slice(start, end, step)])
    return x


def sliced(net: Net, x: Value, axis: int, places: range) -> Value:
    """These places of one axis."""
    if places == range(x.shape[axis]):
        return x
    if x.array is not None:
        return net.const(np.take(x.array, list(places), axis))
    if not places:
        return net.const(np.zeros([0 if a == axis else n for a, n in enumerate(x.shape)], x.dtype))
    if places.step < 0:
        return net.take(x, net.const(np.array(places, np.int64)), axis)
    starts, stops, steps = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[axis], stops[axis], steps[axis] = places.start, places.stop, places.step
    return net.slice(x, starts, stops, steps)


@emits(BOTH, "Pad")
def pad(op: Op, net: Net) -> Value:
    """What is negative is cut first; what repeats elements is taken by its indices."""
    x = op.value()
    if 0 in x.shape:
        raise Refused(f"its input of shape {list(x.shape)} is empty")
    before, after = np.split(op.need_const(1, "pads").astype(int), 2)
    for axis, (front, behind) in enumerate(zip(before, after, strict=True)):
        x = sliced(net, x, axis, range(max(-front, 0), x.shape[axis] - max(-behind, 0)))
    before, after = np.maximum(before, 0), np.maximum(after, 0)
    mode = op.attribute("mode")
    if mode == "constant":
        value = op.need_const(2, "the value").item() if op.has(2) else 0
        return net.pad(x, before.tolist(), after.tolist(), mode, value) if before.any() or after.any() else x
    return _repeated(net, x, before.tolist(), after.tolist(), mode)


def _repeated(net: Net, x: Value, before: Sequence[int], after: Sequence[int], mode: str) -> Value:
    """Edge, reflect or wrap, one axis after another."""
    for axis, widths in enumerate(zip(before, after, strict=True)):
        if any(widths):
            index = np.pad(np.arange(x.shape[axis]), widths, mode=mode)  # type: ignore[call-overload]
            x = net.take(x, net.const(index), axis)
    return x


@emits(BOTH, "Gather")
def gather(op: Op, net: Net) -> Value:
    """`take`, which does not know indices that count from behind."""
    x, axis = op.value(), op.attribute("axis")
    return net.take(x, wrapped(net, op.value(1), x.shape[axis]), axis)


@emits(BOTH, "Expand")
def expand(op: Op, net: Net) -> Value:
    """Axes in front, axes of size 1 repeated."""
    return net.broadcast(op.value(), op.outputs[0])


@emits(BOTH, "Tile")
def tile(op: Op, net: Net) -> Value:
    """Copies along axes."""
    return net("tile", op.value(), op.need_const(1, "the repeats").tolist(), shape=op.outputs[0])


@emits(BOTH, "DepthToSpace")
def depth_to_space(op: Op, net: Net) -> Value:
    """Channels are (block, block, C) or, in mode CRD, (C, block, block)."""
    (n, c, h, w), block = op.shape(), op.attribute("blocksize")
    inner = c // block**2
    if op.attribute("mode") == "CRD":
        split, perm = (n, inner, block, block, h, w), (0, 1, 4, 2, 5, 3)
    else:
        split, perm = (n, block, block, inner, h, w), (0, 3, 4, 1, 5, 2)
    return net.reshape(net.transpose(net.reshape(op.value(), split), perm), op.outputs[0])


@emits(BOTH, "SpaceToDepth")
def space_to_depth(op: Op, net: Net) -> Value:
    """Channels become (block, block, C)."""
    (n, c, h, w), block = op.shape(), op.attribute("blocksize")
    split = (n, c, h // block, block, w // block, block)
    return net.reshape(net.transpose(net.reshape(op.value(), split), (0, 3, 5, 1, 2, 4)), op.outputs[0])
