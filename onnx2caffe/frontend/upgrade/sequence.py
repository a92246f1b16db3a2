"""Sequences and optionals whose structure is known at conversion time: they disappear."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Entry, Reader
from onnx2caffe.frontend.upgrade.layout import split_into
from onnx2caffe.frontend.upgrade.registry import refused, upgrades

__all__: list[str] = []

refused("control flow that depends on data", "SequenceMap")
refused("strings", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer")
refused("an encoded picture as input", "ImageDecoder")


def _items(node: Reader, index: int = 0) -> tuple[ir.Value, ...]:
    entry = node.entries[index]
    if not isinstance(entry, tuple):
        raise Opaque("its sequence is not known at conversion time")
    return entry


def _position(node: Reader, index: int, length: int, default: int) -> int:
    given = node.int_list(index, "position")
    position = given[0] if given else default
    if not -length <= position <= length:
        raise Opaque(f"position {position} lies outside a sequence of {length}")
    return position % length if position < 0 else position


@upgrades("SequenceConstruct", 11)
def construct(node: Reader, build: Builder) -> list[Entry | None]:
    """A sequence of the inputs."""
    return [tuple(node.present)]


@upgrades("SequenceEmpty", 11)
def empty(node: Reader, build: Builder) -> list[Entry | None]:
    """An empty sequence."""
    node.integer("dtype", 1)
    return [()]


@upgrades("SequenceInsert", 11)
def insert(node: Reader, build: Builder) -> list[Entry | None]:
    """The sequence with a tensor put in before a position, at the end by default."""
    items = _items(node)
    at = _position(node, 2, len(items), len(items))
    return [(*items[:at], node.input(1), *items[at:])]


@upgrades("SequenceErase", 11)
def erase(node: Reader, build: Builder) -> list[Entry | None]:
    """The sequence without one tensor, the last by default."""
    items = _items(node)
    at = _position(node, 1, len(items), len(items) - 1)
    return [items[:at] + items[at + 1 :]]


@upgrades("SequenceAt", 11)
def at(node: Reader, build: Builder) -> ir.Value:
    """One tensor of a sequence."""
    items = _items(node)
    position = _position(node, 1, len(items), 0)
    if position >= len(items):
        raise Opaque(f"position {position} lies outside a sequence of {len(items)}")
    return items[position]


@upgrades("SequenceLength", 11)
def length(node: Reader, build: Builder) -> ir.Value:
    """How many tensors a sequence has."""
    return build.const(np.asarray(len(_items(node)), np.int64), "length")


@upgrades("ConcatFromSequence", 11)
def concat(node: Reader, build: Builder) -> ir.Value:
    """Concat, or the tensors stacked along a new axis."""
    items = _items(node)
    new = node.integer("new_axis", 0)
    if not items:
        raise Opaque("an empty sequence cannot be joined")
    rank = len(canon.shape(items[0])) + bool(new)
    axis = node.axis(rank=rank)
    if new:
        items = tuple(build.reshape(v, (*canon.shape(v)[:axis], 1, *canon.shape(v)[axis:])) for v in items)
    return items[0] if len(items) == 1 else build.op("Concat", *items, axis=axis)


@upgrades("SplitToSequence", 11, 24)
def split(node: Reader, build: Builder) -> list[Entry | None]:
    """Split into parts of a given size, given sizes, or (by default) of size 1 with the axis kept or dropped."""
    axis, keep = node.axis(0), node.integer("keepdims", 1)
    shape = node.shape()
    dim = shape[axis]
    given = node.constant(1, "sizes")
    if given is None:
        sizes = [1] * dim
    elif given.ndim == 0:
        sizes = _chunks(dim, int(given))
    else:
        sizes = [int(s) for s in given]
    parts = split_into(build, node.input(), sizes, axis)
    if given is None and not keep:
        parts = [build.reshape(v, shape[:axis] + shape[axis + 1 :]) for v in parts]
    return [tuple(parts)]


def _chunks(dim: int, size: int) -> list[int]:
    return [min(size, dim - start) for start in range(0, dim, size)]


@upgrades("Optional", 15, 28)
def optional(node: Reader, build: Builder) -> list[Entry | None]:
    """What it holds."""
    if not node.has(0):
        raise Opaque("an optional without a value")
    return [node.entries[0]]


@upgrades("OptionalGetElement", 15, 18, 28)
def get_element(node: Reader, build: Builder) -> list[Entry | None]:
    """What it holds."""
    return [node.entries[0]]


@upgrades("OptionalHasElement", 15, 18, 28)
def has_element(node: Reader, build: Builder) -> ir.Value:
    """Whether it holds something, which is known here."""
    return build.const(np.asarray(node.has(0)), "has")
