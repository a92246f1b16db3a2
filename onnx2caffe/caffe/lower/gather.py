"""Gather and Scatter with constant indices, and other ops that move or mask data along known positions.

A mover is its *index map*: for every element of the output, its flat position in the input (recipes, rule 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx2caffe import ranges
from onnx2caffe.caffe.layers import Concat, Deconvolution, Embed, Scale
from onnx2caffe.caffe.lower.arithmetic import above, absolute, affine, extreme, linear, negative, power, product
from onnx2caffe.caffe.lower.blocks import keep, reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import transpose
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.lower.slicing import gather
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape
from onnx2caffe.frontend.evaluate import NotEvaluable, run

__all__ = ["move"]

Index = np.ndarray[Any, np.dtype[np.int64]]


def move(net: Emitter, x: Blob, index: Index) -> Blob:
    """`x.ravel()[index]` for a constant index map: axis by axis where it can, else on the shortest merged axis.

    Raises:
        Refused: the map falls into many pieces and is too large for a one-hot matrix.

    """
    per_axis = _separated(x.shape, index)
    if per_axis is not None:
        for axis, indices in enumerate(per_axis):
            x = gather(net, x, axis, indices)
        return x
    flat, size = index.ravel(), math.prod(x.shape)
    rows = next(r for r in _leading(x.shape) if _repeats(flat, r, size // r))
    inner = flat[: flat.size // rows]
    width = next(w for w in _leading(x.shape[::-1]) if _wide(inner, w) and size // rows % w == 0)
    y = gather(net, reshape(net, x, (rows, size // rows // width, width)), 1, (inner[::width] // width).tolist())
    return reshape(net, y, index.shape)


def _separated(shape: Shape, index: Index) -> list[list[int]] | None:
    """One index list per axis, when every output coordinate decides the input coordinate of its own axis alone."""
    if index.ndim != len(shape):
        return None
    coordinates = np.unravel_index(index, shape)
    lists = []
    for axis, found in enumerate(coordinates):
        own = np.moveaxis(found, axis, 0).reshape(index.shape[axis], -1)
        if np.any(own != own[:, :1]):
            return None
        lists.append(own[:, 0].tolist())
    return lists


def _leading(shape: Shape) -> list[int]:
    """Products of leading axes, the largest first, 1 last."""
    return [math.prod(shape[:k]) for k in range(len(shape), -1, -1)]


def _repeats(flat: Index, rows: int, size: int) -> bool:
    """Whether the map does the same in each of `rows` rows of `size` elements."""
    if flat.size % rows:
        return False
    table = flat.reshape(rows, -1)
    return bool(table[0].max() < size and np.array_equal(table, table[0] + np.arange(rows)[:, None] * size))


def _wide(flat: Index, width: int) -> bool:
    """Whether the map moves whole aligned groups of `width` neighbours."""
    if flat.size % width:
        return False
    table = flat.reshape(-1, width)
    return not np.any(table[:, 0] % width) and np.array_equal(table, table[:, :1] + np.arange(width))


def _wrapped(indices: Index, sizes: Any) -> Index:
    """Negative indices counted from the end.

    Raises:
        Refused: an index lies outside.

    """
    if np.any(indices < -np.asarray(sizes)) or np.any(indices >= np.asarray(sizes)):
        raise Refused(f"indices reach from {indices.min()} to {indices.max()}, outside the data's size {sizes}")
    return np.where(indices < 0, indices + sizes, indices).astype(np.int64)


@lowers("Gather", variant="constant")
def _gather(op: Op, net: Emitter) -> Blob:
    """A constant list of indices on any axis; a single index drops the axis (recipes 11.6)."""
    x, axis = op.blob(0), int(op.attribute("axis", 0))
    indices = _wrapped(op.need_const(1, "indices"), x.shape[axis])
    return reshape(net, gather(net, x, axis, indices.ravel().tolist()), op.outputs[0])


@lowers("Gather", variant="Embed")
def _embed(op: Op, net: Emitter) -> Blob:
    """A constant table read by computed indices (recipes 11.7)."""
    axis = int(op.attribute("axis", 0))
    table = np.moveaxis(op.need_const(0, "data"), axis, 0)
    entries, rest = table.shape[0], table.shape[1:]
    weights = table.reshape(entries, -1).astype(np.float32, copy=False)
    indices = _unsigned(net, op.blob(1), entries) if op.dtype(1).is_signed() else op.blob(1)
    y = net(Embed(num_output=weights.shape[1], input_dim=entries, bias_term=False, blobs=(weights,)), indices)
    seen = math.prod(indices.shape), math.prod(rest[:axis]), math.prod(rest[axis:])
    return transpose(net, y, (1, 0, 2), seen, op.outputs[0])


@lowers("OneHot")
def _one_hot(op: Op, net: Emitter) -> Blob:
    """Off + (on - off) · [index = k] for every k along the new axis; indices outside are off everywhere (OneHot 11).

    [index = k] is one minus [|index - k| > ½].
    """
    if not ranges.of(op.node.inputs[0]).whole:
        raise Refused("indices are no whole numbers")
    axis, depth = int(op.attribute("axis")), int(op.need_const(1, "depth"))
    off, on = (float(v) for v in op.need_const(2, "values"))
    x = op.blob(0)
    indices = reshape(net, x, (math.prod(x.shape[:axis]), 1, math.prod(x.shape[axis:])))
    if op.dtype(0).is_signed():
        indices = _unsigned(net, indices, depth)
    distance = absolute(net, affine(net, indices, shift=-np.arange(depth).reshape(-1, 1)))
    return reshape(net, power(net, above(net, distance, 0.5), scale=off - on, shift=on), op.outputs[0])


def _unsigned(net: Emitter, indices: Blob, entries: int) -> Blob:
    """Negative indices counted from the end: Embed would read before its table, unchecked."""
    return linear(net, [(indices, 1.0), (above(net, negative(net, indices)), float(entries))])


@lowers("GatherElements", "GatherND", "ReverseSequence", "Compress")
def _mover(op: Op, net: Emitter) -> Blob:
    """Any mover by its index map: the node itself, evaluated on the positions of its data (recipes 11.6)."""
    x = op.blob(0)
    return move(net, x, _evaluate(op, op.type, _positions(x.shape), op.need_const(1, "indices")))


@lowers("ScatterElements", "ScatterND")
def _scatter(op: Op, net: Emitter) -> Blob:
    """Data with some elements replaced by the updates, or joined with them by `reduction` (recipes 11.11)."""
    shape, indices, reduction = op.shape(0), op.need_const(1, "indices"), op.attribute("reduction", "none")
    data, updates = _blob(op, net, 0), _blob(op, net, 2)
    if reduction != "none":
        reader = "GatherElements" if op.type == "ScatterElements" else "GatherND"
        targets = _evaluate(op, reader, _positions(shape), indices)
        if np.unique(targets).size != targets.size:
            raise Refused(f"reduction {reduction!r} with repeated indices")
        updates = _join(net, reduction, move(net, data, targets), updates)
    new = math.prod(shape) + _positions(updates.shape)
    return _assemble(net, data, updates, _evaluate(op, op.type, _positions(shape), indices, new))


def _evaluate(op: Op, op_type: str, *arrays: Index) -> Index:
    """An indexing op evaluated on positions instead of data.

    Raises:
        Refused: an index lies outside the data.

    """
    own = {name: op.attribute(name) for name in op.node.attributes}
    try:
        return run(op_type, {"batch_dims": 0, **own, "reduction": "none"}, arrays)[0]
    except (IndexError, NotEvaluable) as problem:
        raise Refused(f"{op.type}: {problem}") from problem


def _positions(shape: Shape) -> Index:
    return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


def _blob(op: Op, net: Emitter, index: int) -> Blob:
    """The blob of an input, constant or not."""
    array = op.const(index)
    return op.blob(index) if array is None else net.recipe("constant", array)


def _join(net: Emitter, reduction: str, a: Blob, b: Blob) -> Blob:
    """Two blobs of one shape, joined element by element."""
    if reduction == "add":
        return linear(net, [(a, 1.0), (b, 1.0)])
    if reduction == "mul":
        return product(net, [a, b])
    return extreme(net, [a, b], 1.0 if reduction == "max" else -1.0)


def _assemble(net: Emitter, a: Blob, b: Blob, index: Index) -> Blob:
    """The two blobs' elements (a's flat positions first, then b's) as `index` says: Concat on the axis that fits."""
    total = math.prod(a.shape)
    parts = np.arange(total), total + np.arange(math.prod(b.shape))
    for before, behind in _seams(index.shape):
        if any(part.size % (before * behind) for part in parts):
            continue
        joined = np.concatenate([part.reshape(before, -1, behind) for part in parts], axis=1)
        wanted = index.reshape(before, -1, behind)
        place = {int(first): j for j, first in enumerate(joined[0, :, 0])}
        chosen = [place.get(int(first), -1) for first in wanted[0, :, 0]]
        if -1 not in chosen and np.array_equal(joined[:, chosen], wanted):
            blobs = [_rows(net, blob, before, behind) for blob in (a, b)]
            return reshape(net, gather(net, net(Concat(axis=1), *blobs), 1, chosen), index.shape)
    raise AssertionError("two flat blobs always fit")


def _rows(net: Emitter, x: Blob, before: int, behind: int) -> Blob:
    return reshape(net, x, (before, math.prod(x.shape) // (before * behind), behind))


def _seams(shape: Shape) -> list[tuple[int, int]]:
    """Elements before and behind each axis, and last (1, 1): everything on one axis."""
    return [*((math.prod(shape[:a]), math.prod(shape[a + 1 :])) for a in range(len(shape))), (1, 1)]


@lowers("Trilu")
def _trilu(op: Op, net: Emitter) -> Blob:
    """Scale by a 0/1 mask over the last two axes (ONNX Trilu-14)."""
    x = op.blob(0)
    k = op.need_const(1, "k") if op.has(1) else np.zeros((), np.int64)
    keep_part = np.triu if op.attribute("upper", 1) else np.tril
    mask = keep_part(np.ones(x.shape[-2:], np.float32), int(k.item()))
    return net(Scale(axis=len(x.shape) - 2, num_axes=2, blobs=(mask,)), x)


@lowers("CumSum")
def _cum_sum(op: Op, net: Emitter) -> Blob:
    """A triangular matrix along the axis (recipes 10.15)."""
    x = op.blob(0)
    axis = int(op.need_const(1, "axis").item()) % len(x.shape)
    matrix = np.tri(x.shape[axis], k=-1 if op.attribute("exclusive", 0) else 0, dtype=np.float32)
    return net.recipe("axis_map", x, axis, matrix.T if op.attribute("reverse", 0) else matrix)


@lowers("Col2Im")
def _col2im(op: Op, net: Emitter) -> Blob:
    """Deconvolution with one-hot weights per channel, then the pads cut off (ONNX Col2Im-18)."""
    x = op.blob(0)
    image, block = (
        tuple(int(v) for v in op.need_const(i, name)) for i, name in ((1, "image_shape"), (2, "block_shape"))
    )
    rank, taps = len(block), math.prod(block)
    strides, dilations = (_all(op.attribute(name), rank, 1) for name in ("strides", "dilations"))
    pads = _all(op.attribute("pads"), 2 * rank, 0)
    sizes = [
        (image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    ]
    channels = x.shape[1] // taps
    layer = Deconvolution(
        num_output=channels,
        kernel_size=block,
        stride=strides,
        dilation=dilations,
        group=channels,
        bias_term=False,
        blobs=(np.tile(np.eye(taps, dtype=np.float32), (channels, 1)).reshape(-1, 1, *block),),
    )
    y = net(layer, reshape(net, x, (x.shape[0], x.shape[1], *sizes)))
    for axis in range(rank):
        missing = image[axis] + pads[axis] - y.shape[2 + axis]
        if missing > 0:
            y = net.recipe("constant_pad", y, 2 + axis, 0, missing, 0.0)
        y = keep(net, y, 2 + axis, pads[axis], pads[axis] + image[axis])
    return y


def _all(values: Sequence[int] | None, count: int, default: int) -> tuple[int, ...]:
    return tuple(values) if values else (default,) * count
