"""NumPy broadcasting as a plan: how operands line up, where each one repeats, where a constant really varies.

Both exits need it: Caffe has no broadcasting, the TVM exit only some. Pure shape arithmetic, no layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx2caffe.canon import Shape

__all__ = ["Broadcast", "align", "collapse", "span"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Broadcast:
    """Operands of one element-wise node, lined up at the last axis.

    `shape`: the result's shape. `aligned`: every operand's shape with ones in front, of the result's rank.
    """

    shape: Shape
    aligned: tuple[Shape, ...]

    @classmethod
    def of(cls, *shapes: Shape) -> Broadcast:
        """The plan for operands of these shapes.

        Raises:
            ValueError: they do not broadcast.

        """
        result = np.broadcast_shapes(*shapes)
        return cls(result, tuple(align(s, len(result)) for s in shapes))

    def repeats(self, operand: int) -> tuple[int, ...]:
        """The axes along which an operand repeats."""
        pairs = zip(self.aligned[operand], self.shape, strict=True)
        return tuple(axis for axis, (own, full) in enumerate(pairs) if own != full)

    def gaps(self, operand: int) -> tuple[int, ...]:
        """The axes along which an operand repeats between two axes along which it varies."""
        first, stop = span(self.aligned[operand])
        return tuple(axis for axis in self.repeats(operand) if first <= axis < stop)


def align(shape: Sequence[int], rank: int) -> Shape:
    """`shape` with ones in front up to `rank` axes."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def span(*aligned: Shape) -> tuple[int, int]:
    """The smallest range of axes [first, stop) outside which every one of these shapes is 1; (0, 0) when all are."""
    axes = [axis for shape in aligned for axis, size in enumerate(shape) if size > 1]
    return (min(axes), max(axes) + 1) if axes else (0, 0)


def collapse(array: Array) -> Array:
    """The smallest array that broadcasts to the same values: axes along which nothing changes become 1."""
    for axis, size in enumerate(array.shape):
        first = array[(slice(None),) * axis + (slice(0, 1),)]
        if size > 1 and np.array_equal(array, np.broadcast_to(first, array.shape)):
            array = first
    return array
