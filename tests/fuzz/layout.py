"""Makers of nodes that move data: shapes, orders, ranges, index lists."""

from __future__ import annotations

import numpy as np

from tests.fuzz.graph import Graph, Maker

__all__ = ["MAKERS"]

_LAST = 2**63 - 1


def reshape(g: Graph) -> None:
    x = g.pick()
    shape = list(g.shapes[x])
    g.need(shape)
    if g.int(0, 1) and len(shape) < 5:
        at = g.int(0, len(shape) - 1)
        divisor = g.one(2, 3)
        g.need(shape[at] % divisor == 0)
        shape[at : at + 1] = g.one([divisor, shape[at] // divisor], [shape[at] // divisor, divisor])
    elif len(shape) > 1:
        at = g.int(0, len(shape) - 2)
        shape[at : at + 2] = [-1]
    for i, d in enumerate(shape):
        if i < len(g.shapes[x]) and d == g.shapes[x][i] and g.rarely():
            shape[i] = 0
    g.add("Reshape", x, g.indices(*shape))


def reshape_by_shape(g: Graph) -> None:
    """As exporters write x.view(x.shape[0], -1)."""
    x = g.pick(2, 3, 4)
    dims = g.add("Shape", x)
    batch = g.add("Gather", dims, g.constant(np.array([0], np.int64)), axis=0)
    batch_size, *rest = g.shapes[x]
    g.add("Reshape", x, g.add("Concat", batch, g.indices(-1), axis=0), shape=(batch_size, int(np.prod(rest))))


def reshape_back(g: Graph) -> None:
    """To the shape another tensor has, read by Shape."""
    x = g.pick()
    size = int(np.prod(g.shapes[x]))
    mates = [n for n, s in g.shapes.items() if int(np.prod(s)) == size]
    mate = g.one(*mates)
    g.add("Reshape", x, g.add("Shape", mate), shape=g.shapes[mate])


def filled(g: Graph) -> None:
    """A constant made of a shape, joined with the tensor that had it."""
    x = g.pick(1, 2, 3, 4)
    g.need(g.opset >= 9)
    ones = g.add("ConstantOfShape", g.add("Shape", x), shape=g.shapes[x])
    g.add(g.one("Add", "Mul"), x, g.add("Add", ones, g.number(g.one(0.0, 1.0, 0.5))))


def flatten(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    rank = len(g.shapes[x])
    g.add("Flatten", x, axis=g.int(-rank if g.opset >= 11 else 0, rank))


def squeeze(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    shape = g.shapes[x]
    axes = g.some(i for i, d in enumerate(shape) if d == 1)
    if g.rarely():
        g.add("Squeeze", x)
        return
    if g.opset >= 11 and g.int(0, 1):
        axes = [a - len(shape) for a in axes]
    g.over("Squeeze", x, axes, 13)


def unsqueeze(g: Graph) -> None:
    x = g.pick(0, 1, 2, 3, 4)
    rank = len(g.shapes[x])
    axes = g.some(range(rank + 1), most=1) if g.int(0, 1) else g.some(range(rank + 2), most=2)
    if g.opset >= 11 and g.int(0, 1):
        axes = [a - rank - len(axes) for a in axes]
    g.over("Unsqueeze", x, axes, 13)


def transpose(g: Graph) -> None:
    x = g.pick(2, 3, 4, 5)
    if g.rarely():
        g.add("Transpose", x)
    else:
        g.add("Transpose", x, perm=g.permutation(len(g.shapes[x])))


def slices(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    shape = g.shapes[x]
    axes = g.some(range(len(shape)), most=3)
    starts = [g.int(0, shape[a] - 1) for a in axes]
    ends = [g.one(g.int(s + 1, shape[a]), 2**31 - 1) for s, a in zip(starts, axes, strict=True)]
    if g.opset < 10:
        g.add("Slice", x, axes=axes, starts=starts, ends=ends)
        return
    steps = [g.one(1, 1, 2, 3) for _ in axes]
    for i, a in enumerate(axes):
        if g.rarely():
            steps[i] = -g.int(1, 2)
            starts[i], ends[i] = g.one(shape[a] - 1, -1), g.one(-_LAST, -shape[a] - 1)
    if g.int(0, 1):
        axes = [a - len(shape) for a in axes]
    g.add("Slice", x, *(g.indices(*numbers) for numbers in (starts, ends, axes, steps)))


def split(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    shape = g.shapes[x]
    axis = g.axis(x)
    size = shape[axis]
    g.need(size >= 2)
    if g.rarely() and g.opset >= 18:
        g.many("Split", x, outputs=2, axis=axis, num_outputs=2)
        return
    if g.rarely():
        parts = g.one(2, 3)
        g.need(size % parts == 0, g.opset < 18)
        g.many("Split", x, outputs=parts, axis=axis)
        return
    first = g.int(1, size - 1)
    g.halved(x, axis, first)


def concat(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    shape = g.shapes[x]
    axis = g.axis(x)
    mates = [n for n, s in g.shapes.items() if len(s) == len(shape) and _joins(s, shape, axis)]
    if g.rarely():
        mates = [g.weight(*(g.int(1, 3) if i == axis % len(shape) else d for i, d in enumerate(shape)))]
    parts = [x, *(g.one(*mates) for _ in range(g.int(1, 2)))]
    g.add("Concat", *g.one(parts, parts[::-1]), axis=axis)


def _joins(a: tuple[int, ...], b: tuple[int, ...], axis: int) -> bool:
    return all(p == q for i, (p, q) in enumerate(zip(a, b, strict=True)) if i != axis % len(b))


def gather(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    axis = g.axis(x)
    size = g.shapes[x][axis]
    low = -size if g.opset >= 11 else 0
    if g.rarely():
        g.add("Gather", x, g.constant(np.array(g.int(low, size - 1), np.int64)), axis=axis)
    elif g.rarely():
        g.add("Gather", x, g.constant(np.array(g.ints(4, low, size - 1), np.int64).reshape(2, 2)), axis=axis)
    else:
        g.add("Gather", x, g.indices(*g.ints(g.int(1, 5), low, size - 1)), axis=axis)


def gather_elements(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4)
    shape = g.shapes[x]
    axis = g.axis(x)
    g.need(g.opset >= 11)
    picked = tuple(g.int(1, d) for d in shape)
    rng = np.random.default_rng(g.int(0, 999))
    g.add("GatherElements", x, g.constant(rng.integers(-shape[axis], shape[axis], picked)), axis=axis)


def gather_nd(g: Graph) -> None:
    x = g.pick(2, 3, 4)
    g.need(g.opset >= 11)
    g.add("GatherND", x, g.constant(_places(g, g.shapes[x], g.int(1, 3))))


def _places(g: Graph, shape: tuple[int, ...], count: int) -> np.ndarray:
    """Distinct indices into the leading axes."""
    depth = g.int(1, len(shape))
    lead = shape[:depth]
    rng = np.random.default_rng(g.int(0, 999))
    flat = rng.permutation(int(np.prod(lead)))[:count]
    return np.stack(np.unravel_index(flat, lead), -1).astype(np.int64)


def scatter(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4)
    shape = g.shapes[x]
    g.need(g.opset >= 11)
    reduction = {"reduction": g.one("none", "add", "mul")} if g.opset >= 16 else {}
    if g.int(0, 1):
        places = _places(g, shape, g.int(1, 3))
        updates = (len(places), *shape[places.shape[1] :])
        g.add("ScatterND", x, g.constant(places), g.weight(*updates), **reduction)
        return
    axis = g.axis(x) % len(shape)
    count = g.int(1, shape[axis])
    picked = tuple(count if i == axis else d for i, d in enumerate(shape))
    order = np.random.default_rng(g.int(0, 999)).permutation(shape[axis])[:count]
    places = np.broadcast_to(order.reshape([-1 if i == axis else 1 for i in range(len(shape))]), picked)
    g.add("ScatterElements", x, g.constant(places.astype(np.int64)), g.weight(*picked), axis=axis, **reduction)


def tile(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4, 5)
    g.add("Tile", x, g.indices(*(g.one(1, 2, 1, 3) for _ in g.shapes[x])))


def expand(g: Graph) -> None:
    x = g.pick(0, 1, 2, 3, 4)
    g.need(g.opset >= 8)
    shape = [g.int(2, 3) if d == 1 and g.int(0, 1) else d for d in g.shapes[x]]
    if g.rarely():
        shape = [g.int(1, 3), *shape]
    g.add("Expand", x, g.indices(*shape))


def nothing(g: Graph) -> None:
    op = g.one("Identity", "Dropout")
    g.add(op, g.pick())


def trilu(g: Graph) -> None:
    g.need(g.opset >= 14)
    g.add("Trilu", g.pick(2, 3, 4), g.constant(np.int64(g.int(-1, 1))), upper=g.int(0, 1))


def reverse(g: Graph) -> None:
    x = g.pick(2, 3, 4)
    g.need(g.opset >= 10)
    time, batch = g.shapes[x][:2]
    lengths = g.indices(*g.ints(batch, 1, time))
    g.add("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)


def compress(g: Graph) -> None:
    x = g.pick(1, 2, 3, 4)
    g.need(g.opset >= 9)
    axis = g.axis(x)
    keep = np.array([g.int(0, 1) for _ in range(g.shapes[x][axis])], bool)
    g.need(keep.any())
    shape = list(g.shapes[x])
    shape[axis] = int(keep.sum())
    g.add("Compress", x, g.constant(keep), axis=axis, shape=tuple(shape))


MAKERS: tuple[Maker, ...] = (
    reshape, reshape, reshape_by_shape, reshape_back, filled, flatten, squeeze, unsqueeze, transpose, transpose,
    transpose, slices, slices, split, concat, concat, gather, gather_elements, gather_nd, scatter, tile, expand,
    nothing, trilu, reverse, compress,
)  # fmt: skip
