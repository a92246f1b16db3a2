"""Transpositions for the NNIE, whose one Permute turns (N, A, B, C) into (N, B, C, A).

What is no rotation of the axes takes a depthwise one-hot Convolution, or slices. Facts: recipes 5.3-5.7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from onnx2caffe.caffe.layers import Concat, Convolution, Slice
from onnx2caffe.caffe.lower.blocks import one_hot, reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.maps import fold, forward
from onnx2caffe.caffe.lower.registry import Refused, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape
from onnx2caffe.decompose.transpose import Blocks

__all__: list[str] = []

_TURNS = ((0, 2, 1), (1, 0, 2), (2, 1, 0))
"""Orders of three blocks by how many turns leave only the last two in each other's place."""

_MOST_PARTS = 32
"""The most tops of a Slice (nnie §1 W09)."""


@recipe("transpose", "rotation")
def _rotation(net: Emitter, x: Blob, shape: Shape, perm: Shape, result: Shape) -> Blob:
    """Two blocks change places: one Permute, or two where that keeps the map narrow (recipes 5.3, 5.4, ROT)."""
    blocks = _behind_batch(x, shape, perm)
    if blocks.order != (1, 0):
        raise Refused(f"perm {list(perm)} on shape {list(shape)} is no rotation of two blocks")
    first, second = blocks.sizes
    ways = list(_views(first, second, x.own, result))
    ways.sort(key=lambda way: way[1] + _reshapes(way[0], way[1], x.own, result))
    return net.either(*(partial(_turned, net, x, view, turns, result) for view, turns in ways))


@recipe("transpose", "slices")
def _slices(net: Emitter, x: Blob, shape: Shape, perm: Shape, result: Shape) -> Blob:
    """Within each of a few slices two blocks change places, then Concat (recipes 5.7)."""
    turns, (parts, first, second) = _exchange_behind(_behind_batch(x, shape, perm))
    if parts > _MOST_PARTS:
        raise Refused(f"perm {list(perm)} on shape {list(shape)} needs {parts} slices (at most {_MOST_PARTS})")
    x = _turned_blocks(net, x, turns, (parts, first, second))
    natural = x.own[1:2] == (parts * first,) and len(x.own) == 4
    x = reshape(net, x, x.own if natural else (1, parts * first, *fold(second)))
    tops = net.many(Slice(axis=1, slice_point=tuple(range(first, parts * first, first)), tops=parts), x)
    turned = [reshape(net, forward(net, top), (1, second, first)) for top in tops]
    return reshape(net, net(Concat(axis=1), *turned), result)


@recipe("transpose", "dw")
def _one_hot_rows(net: Emitter, x: Blob, shape: Shape, perm: Shape, result: Shape) -> Blob:
    """Two inner blocks change places: a depthwise Convolution turns a row's elements into channels (recipes 5.5b)."""
    turns, sizes = _exchange_behind(_behind_batch(x, shape, perm))
    groups, _, columns = sizes
    x = reshape(net, _turned_blocks(net, x, turns, sizes), (1, *sizes))
    weights = np.tile(one_hot(range(columns), columns), (groups, 1)).reshape(-1, 1, 1, columns)
    layer = Convolution(
        num_output=groups * columns, kernel_size=(1, columns), group=groups, bias_term=False, blobs=(weights,)
    )
    return reshape(net, net(layer, x), result)


def _behind_batch(x: Blob, shape: Shape, perm: Shape) -> Blocks:
    """What is moved while the batch stays.

    Raises:
        Refused: it does not.

    """
    if x.own[:1] != (1,):
        raise Refused(f"{list(x.own)} has a batch")
    return Blocks.of(shape, perm)


def _exchange_behind(blocks: Blocks) -> tuple[int, Shape]:
    """Three blocks as: how often to turn them, and their sizes then, so that the last two are left to change places.

    Raises:
        Refused: there are not three.

    """
    if blocks.order not in _TURNS:
        raise Refused(f"{len(blocks.sizes)} blocks in the order {list(blocks.order)}")
    turns = _TURNS.index(blocks.order)
    return turns, blocks.sizes[turns:] + blocks.sizes[:turns]


def _turned_blocks(net: Emitter, x: Blob, turns: int, turned: Shape) -> Blob:
    """Three blocks turned until their sizes are `turned`."""
    if not turns:
        return x
    x = reshape(net, x, (1, *turned[-turns:], *turned[:-turns]))
    for _ in range(turns):
        x = forward(net, x)
    return x


def _views(first: int, second: int, given: Shape, result: Shape) -> Iterator[tuple[Shape, int]]:
    """Shapes (A, B, C), and how often to turn them, that let two blocks change places."""
    splits = {(first, *fold(second)): 1, (*fold(first), second): 2}
    if len(given) == 4:
        splits |= {given[1:]: 1 if given[1] == first else 2}
    if len(result) == 4:
        splits |= {(first, *result[1:3]): 1, (*result[2:], second): 2}
    for view, turns in splits.items():
        if math.prod(view) == first * second and view[0 if turns == 1 else 2] == (first if turns == 1 else second):
            yield view, turns


def _reshapes(view: Shape, turns: int, given: Shape, result: Shape) -> int:
    """How many Reshapes a view costs."""
    return int(view != given[1:]) + int(view[turns:] + view[:turns] != result[1:])


def _turned(net: Emitter, x: Blob, view: Shape, turns: int, result: Shape) -> Blob:
    x = reshape(net, x, (1, *view))
    for _ in range(turns):
        x = forward(net, x)
    return reshape(net, x, result)
