"""Block normal form of what Reshapes and Transpositions do (recipes §5).

Read in C order, any chain of Reshape and Transpose is: read the flat input as some shape, permute its axes, read the
result flat again. Axes of size 1 say nothing and axes that stay neighbours are one axis, so the shortest such shape and
its order (`Blocks`) are unique: two chains do the same exactly when their blocks are equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx2caffe.canon import Shape

__all__ = ["Blocks", "Digits", "Step", "invert", "spell"]

Step = tuple[str, Shape]
"""One op of a spelling: ("Reshape", target shape) or ("Transpose", perm)."""


def invert(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `perm`."""
    return tuple(perm.index(i) for i in range(len(perm)))


@dataclass(frozen=True)
class Blocks:
    """Flat input → read as `sizes` → transpose by `order` → flat output; always the shortest such form.

    One block or none: nothing moves. Two: a rotation.
    """

    sizes: Shape
    order: tuple[int, ...]

    @classmethod
    def of(cls, shape: Shape, perm: Sequence[int]) -> Blocks:
        """The normal form of ONNX Transpose `perm` on `shape`: size-1 axes dropped, staying neighbours merged."""
        order = [axis for axis in perm if shape[axis] != 1]
        runs: list[list[int]] = []
        rank = {axis: i for i, axis in enumerate(sorted(order))}
        for axis in order:
            if runs and rank[axis] == rank[runs[-1][-1]] + 1:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        by_input = sorted(runs)
        return cls(
            tuple(math.prod(shape[axis] for axis in run) for run in by_input),
            tuple(by_input.index(run) for run in runs),
        )

    @property
    def moves(self) -> bool:
        """Whether any element changes its place."""
        return len(self.order) > 1

    @property
    def inverse(self) -> Blocks:
        """The blocks that undo these."""
        return Blocks(self.output_sizes, invert(self.order))

    @property
    def output_sizes(self) -> Shape:
        """The block sizes in output order."""
        return tuple(self.sizes[i] for i in self.order)

    def then(self, after: Blocks) -> Blocks | None:
        """These blocks followed by `after`, or None when their radices do not fit (6 = 2·3 against 3·2)."""
        if not self.moves or not after.moves:
            return after if not self.moves else self
        digits = _refine(self.output_sizes, after.sizes)
        if digits is None:
            return None
        mine = _split(self.output_sizes, digits)
        theirs = _split(after.sizes, digits)
        here = [i for block in invert(self.order) for i in mine[block]]
        order = [i for block in after.order for i in theirs[block]]
        return Blocks.of(tuple(digits[i] for i in here), tuple(here.index(i) for i in order))

    def indices(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """For each element of the flat output, its place in the flat input."""
        flat = np.arange(math.prod(self.sizes), dtype=np.int64)
        return flat.reshape(self.sizes).transpose(self.order).ravel()

    def split_at(self, rows: int) -> tuple[Blocks, Blocks] | None:
        """As two independent maps: one of the `rows` outer rows, one inside every row; None when they mix."""
        rest = math.prod(self.sizes) // rows
        digits = _refine(self.sizes, tuple(size for size in (rows, rest) if size > 1))
        if digits is None:
            return None
        outer = len(_split((rows,), digits)[0])
        own = _split(self.sizes, digits)
        order = [i for block in self.order for i in own[block]]
        if any(i >= outer for i in order[:outer]):
            return None
        inner = [i - outer for i in order[outer:]]
        return Blocks.of(digits[:outer], order[:outer]), Blocks.of(digits[outer:], inner)


@dataclass(frozen=True)
class Digits:
    """A map as moved digits: their sizes in input order, and which of them make up each axis of input and output."""

    sizes: Shape
    source: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, blocks: Blocks, source: Shape, target: Shape) -> Digits | None:
        """`blocks` between these two shapes; None when an axis boundary falls inside a digit."""
        nontrivial = tuple(size for size in source if size > 1)
        coarse = _refine(blocks.sizes, nontrivial) if blocks.moves else nontrivial
        if coarse is None:
            return None
        own = _split(blocks.sizes, coarse) if blocks.moves else [list(range(len(coarse)))]
        order = [i for block in (blocks.order if blocks.moves else (0,)) for i in own[block]]
        moved = tuple(coarse[i] for i in order)
        fine = _refine(moved, tuple(size for size in target if size > 1))
        if fine is None:
            return None
        parts = dict(zip(order, _split(moved, fine), strict=True))
        by_input = [position for i in range(len(coarse)) for position in parts[i]]
        sizes = tuple(fine[position] for position in by_input)
        names = {position: i for i, position in enumerate(by_input)}
        return cls(
            sizes,
            tuple(tuple(group) for group in _split(source, sizes)),
            tuple(tuple(names[position] for position in group) for group in _split(target, fine)),
        )

    def size(self, digits: Sequence[int]) -> int:
        """How many values these digits together take."""
        return math.prod(self.sizes[i] for i in digits)

    def table(self, written: Sequence[int], read: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Indices of an axis made of the digits `written`, listed in the order of `read` (the same digits)."""
        flat = np.arange(self.size(written), dtype=np.int64)
        return flat.reshape([self.sizes[i] for i in written]).transpose([written.index(i) for i in read]).ravel()


def _refine(left: Shape, right: Shape) -> Shape | None:
    """The coarsest shape that both shapes of one element count are groupings of."""
    digits: list[int] = []
    a, b = list(left), list(right)
    while a and b:
        small, large = sorted((a[-1], b[-1]))
        if large % small:
            return None
        digits.append(small)
        for sizes in (a, b):
            if sizes[-1] == small:
                sizes.pop()
            else:
                sizes[-1] //= small
    return tuple(reversed(digits))


def _split(sizes: Shape, digits: Shape) -> list[list[int]]:
    """Which digits make up each size."""
    groups: list[list[int]] = []
    position = 0
    for size in sizes:
        group: list[int] = []
        product = 1
        while product < size:
            product *= digits[position]
            group.append(position)
            position += 1
        groups.append(group)
    return groups


def _direct(blocks: Blocks, source: Shape, target: Shape | None) -> tuple[int, ...] | None:
    """A Transpose perm on `source` that does what `blocks` do (and gives `target`, when named), or None."""
    axes = [axis for axis, size in enumerate(source) if size != 1]
    groups: list[list[int]] = []
    position = 0
    for size in blocks.sizes:
        group: list[int] = []
        product = 1
        while product < size and position < len(axes):
            group.append(axes[position])
            product *= source[axes[position]]
            position += 1
        if product != size:
            return None
        groups.append(group)
    moved = [axis for block in blocks.order for axis in groups[block]] if blocks.order else axes
    ones = [axis for axis, size in enumerate(source) if size == 1]
    if target is None:
        return (*ones, *moved)
    perm: list[int] = []
    for size in target:
        pool = ones if size == 1 else moved
        if not pool:
            return None
        perm.append(pool.pop(0))
    return tuple(perm) if not ones and not moved and tuple(source[axis] for axis in perm) == target else None


def spell(blocks: Blocks, source: Shape, target: Shape) -> tuple[Step, ...]:
    """The shortest Reshape/Transpose spelling from a tensor of shape `source` to one of shape `target`."""
    if not blocks.moves:
        return () if source == target else (("Reshape", target),)
    perm = _direct(blocks, source, target)
    if perm is not None:
        return (("Transpose", perm),)
    perm = _direct(blocks, source, None)
    if perm is not None:
        return ("Transpose", perm), ("Reshape", target)
    back = _direct(blocks.inverse, target, None)
    if back is not None:
        return ("Reshape", tuple(target[axis] for axis in back)), ("Transpose", invert(back))
    return ("Reshape", blocks.sizes), ("Transpose", blocks.order), ("Reshape", target)
