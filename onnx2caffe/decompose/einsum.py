"""Einsum equations: letters, sizes, and the roles of letters in a product of two terms (ONNX Einsum 12)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx2caffe.canon import Shape

__all__ = ["Equation", "Labels", "Roles", "diagonal", "parse", "roles"]

Indices = np.ndarray[Any, np.dtype[np.int64]]
Labels = tuple[str, ...]
"""One label per axis: a letter, or "…k" for the k-th last axis under an ellipsis."""

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@dataclass(frozen=True)
class Equation:
    """The labels of every input's axes and of the result's axes, and the size behind each label."""

    terms: tuple[Labels, ...]
    result: Labels
    sizes: dict[str, int]


@dataclass(frozen=True)
class Roles:
    """Labels of a product of two terms: in both and kept, in both and summed, in the first only, in the second only."""

    batch: Labels
    inner: Labels
    first: Labels
    second: Labels


def parse(equation: str, shapes: Sequence[Shape]) -> Equation:
    """Read an equation for inputs of these shapes.

    Raises:
        ValueError: it is not an equation for them.

    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    sources = left.split(",")
    if len(sources) != len(shapes):
        raise ValueError(f"{len(sources)} terms for {len(shapes)} inputs")
    terms = tuple(_labels(source, len(shape)) for source, shape in zip(sources, shapes, strict=True))
    sizes: dict[str, int] = {}
    for labels, shape in zip(terms, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise ValueError(f"{label!r} is {known} and {size}")
    under = sorted((label for label in sizes if label.startswith("…")), reverse=True)
    if arrow:
        head, dots, tail = right.partition("...")
        result: Labels = (*head, *(under if dots else ()), *tail)
    else:
        letters = left.replace(".", "").replace(",", "")
        result = (*under, *sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if unknown := [label for label in result if label not in sizes]:
        raise ValueError(f"{unknown[0]!r} stands in no term")
    return Equation(terms, result, sizes)


def _labels(term: str, rank: int) -> Labels:
    """The labels of a term's axes; those under an ellipsis are counted from behind, as broadcasting does."""
    head, dots, tail = term.partition("...")
    hidden = rank - len(head) - len(tail)
    if not _TERM.fullmatch(term) or hidden < 0 or (hidden and not dots):
        raise ValueError(f"term {term!r} for an input of rank {rank}")
    return (*head, *(f"…{k:02}" for k in reversed(range(hidden))), *tail)


def roles(first: Labels, second: Labels, kept: Collection[str]) -> Roles:
    """What each label of two terms does in their product; order as in the terms."""
    both = [label for label in first if label in second]
    return Roles(
        tuple(label for label in both if label in kept),
        tuple(label for label in both if label not in kept),
        tuple(label for label in first if label not in second),
        tuple(label for label in second if label not in first),
    )


def diagonal(labels: Labels, shape: Sequence[int]) -> Indices:
    """The flat positions at which axes of the same label have the same index."""
    distinct = list(dict.fromkeys(labels))
    grid = np.indices([shape[labels.index(label)] for label in distinct])
    positions: Indices = np.ravel_multi_index(tuple(grid[distinct.index(label)] for label in labels), tuple(shape))
    return positions
