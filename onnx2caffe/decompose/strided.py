"""Index maps as strided views: which slices, transposes and repetitions an array of flat positions stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Nest", "Radix", "View", "nest", "view"]

Indices = np.ndarray[Any, np.dtype[np.int64]]

_DEEPEST = 8


@dataclass(frozen=True)
class Nest:
    """Loops: position = offset + sum of i[k] * strides[k], outermost loop first; 0 <= i[k] < counts[k], counts > 1."""

    offset: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Radix:
    """One axis of the source seen as a mixed-radix number: its size, and the range that is read, maybe backwards."""

    size: int
    start: int
    count: int
    backwards: bool = False


@dataclass(frozen=True)
class View:
    """How to make a nest out of the flat source.

    Reshape to the sizes of `axes`, keep each axis's range, transpose so that the axes come in the order of `loops`. A
    loop is an axis number or, when it repeats, None; `counts` are the loops' lengths. Axes in no loop have count 1.
    """

    axes: tuple[Radix, ...]
    loops: tuple[int | None, ...]
    counts: tuple[int, ...]


def nest(indices: Indices) -> Nest | None:
    """The loops that produce `indices` (any shape, read in C order); None when no 8 loops do."""
    outer = np.asarray(indices, np.int64).reshape(-1)
    if not outer.size:
        return None
    offset = int(outer[0])
    counts: list[int] = []
    strides: list[int] = []
    while outer.size > 1:
        steps = np.diff(outer)
        other = np.flatnonzero(steps != steps[0])
        count = int(other[0]) + 1 if other.size else outer.size
        if len(counts) == _DEEPEST or outer.size % count:
            return None
        rows = outer.reshape(-1, count)
        if not np.array_equal(rows, rows[:, :1] + np.arange(count) * steps[0]):
            return None
        counts.insert(0, count)
        strides.insert(0, int(steps[0]))
        outer = rows[:, 0]
    return Nest(offset, tuple(counts), tuple(strides))


def view(loops: Nest, size: int) -> View | None:
    """The nest as a view of a flat source of `size` elements; None when its strides do not divide each other."""
    moving = [k for k, stride in enumerate(loops.strides) if stride]
    backwards = {k for k in moving if loops.strides[k] < 0}
    offset = loops.offset + sum((loops.counts[k] - 1) * loops.strides[k] for k in backwards)
    moving.sort(key=lambda k: -abs(loops.strides[k]))
    axes: list[Radix] = []
    place: dict[int, int] = {}
    whole = size
    for k in moving:
        stride = abs(loops.strides[k])
        if whole % stride:
            return None
        radix, start = whole // stride, offset // stride
        if start + loops.counts[k] > radix:
            return None
        place[k] = len(axes)
        axes.append(Radix(radix, start, loops.counts[k], k in backwards))
        offset, whole = offset % stride, stride
    if whole > 1:
        axes.append(Radix(whole, offset, 1))
    return View(tuple(axes), tuple(place.get(k) for k in range(len(loops.counts))), loops.counts)
