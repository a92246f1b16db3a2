"""Reshape, Transpose, Expand, Tile and the moves between depth and space.

The functions here are also the other families' hands: each returns its input blob when there is nothing to do.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from onnx2caffe.caffe.layers import (
    Convolution,
    Deconvolution,
    Im2col,
    PassThrough,
    Permute,
    ShuffleChannel,
    Tile,
)
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape
from onnx2caffe.decompose.transpose import Blocks

__all__ = ["expand", "tile", "transpose"]

_MOST_BLOCKS = 7
"""The search for the shortest chain of exchanges visits up to this factorial of orders."""


def transpose(
    net: Emitter, x: Blob, perm: Sequence[int], seen: Sequence[int] | None = None, result: Sequence[int] | None = None
) -> Blob:
    """`x`, seen as shape `seen`, with its axes in the order `perm`, in the shape `result` (default: as transposed)."""
    shape = tuple(seen or x.shape)
    wanted = tuple(result or (shape[axis] for axis in perm))
    if Blocks.of(shape, perm).moves:
        return net.recipe("transpose", x, shape, tuple(perm), wanted)
    return reshape(net, x, wanted)


@recipe("transpose", "permute")
def _permute(net: Emitter, x: Blob, shape: Shape, perm: Shape, result: Shape) -> Blob:
    """One Permute of the ONNX order (recipes 5.2)."""
    return reshape(net, net(Permute(order=perm), reshape(net, x, shape)), result)


@recipe("transpose", "im2col")
def _im2col(net: Emitter, x: Blob, shape: Shape, perm: Shape, result: Shape) -> Blob:
    """Stock layers only: a chain of exchanges of neighbouring blocks, each one an Im2col (recipes 1, SWAP).

    Windows as channels turn (1, P, A*B, S) with kernel = stride = (B, 1) into (1, P*B, A, S).
    """
    blocks = Blocks.of(shape, perm)
    if len(blocks.sizes) > _MOST_BLOCKS:
        raise Refused(f"perm {list(perm)} on shape {list(shape)} moves more than {_MOST_BLOCKS} blocks")
    sizes = list(blocks.sizes)
    for a, b, c in _exchanges(blocks.order):
        before, first, second, behind = map(math.prod, (sizes[:a], sizes[a:b], sizes[b:c], sizes[c:]))
        windows = Im2col(kernel_size=(second, 1), stride=(second, 1))
        x = net(windows, reshape(net, x, (1, before, first * second, behind)))
        sizes = sizes[:a] + sizes[b:c] + sizes[a:b] + sizes[c:]
    return reshape(net, x, result)


@lru_cache(maxsize=256)
def _exchanges(perm: Shape) -> tuple[tuple[int, int, int], ...]:
    """The shortest chain of exchanges from (0, 1, …) to `perm`.

    An exchange (a, b, c) turns the current order into order[:a] + order[b:c] + order[a:b] + order[c:].
    """
    count = len(perm)
    moves = [(a, b, c) for a in range(count) for b in range(a + 1, count) for c in range(b + 1, count + 1)]
    chains: dict[Shape, tuple[tuple[int, int, int], ...]] = {tuple(range(count)): ()}
    queue = deque(chains)
    while perm not in chains:
        order = queue.popleft()
        for a, b, c in moves:
            reached = order[:a] + order[b:c] + order[a:b] + order[c:]
            if reached not in chains:
                chains[reached] = (*chains[order], (a, b, c))
                queue.append(reached)
    return chains[perm]


def tile(net: Emitter, x: Blob, axis: int, times: int) -> Blob:
    """`x` repeated as a whole along an axis, as numpy.tile."""
    return x if times == 1 else net.recipe("tile", x, axis, times)


@recipe("tile", "Tile")
def _tile_layer(net: Emitter, x: Blob, axis: int, times: int) -> Blob:
    """One Tile (recipes 11.10)."""
    return net(Tile(axis=axis, tiles=times), x)


def expand(net: Emitter, x: Blob, shape: Sequence[int]) -> Blob:
    """`x` broadcast to `shape`, which has its rank or a higher one (recipes 11.10).

    Raises:
        Refused: a dimension of size 0, which Caffe has not.

    """
    if 0 in shape:
        raise Refused(f"shape {list(shape)} has a dimension of size 0")
    x = reshape(net, x, (1,) * (len(shape) - len(x.shape)) + x.shape)
    return net.recipe("broadcast", x, tuple(shape))


@lowers("Reshape")
def _reshape(op: Op, net: Emitter) -> Blob:
    """Reshape to the static shape (recipes 5.1)."""
    return reshape(net, op.blob(), op.outputs[0])


@lowers("Transpose")
def _transpose(op: Op, net: Emitter) -> Blob:
    """The recipe "transpose" (recipes 5.2–5.5)."""
    return transpose(net, op.blob(), op.attribute("perm"))


@lowers("Expand")
def _expand(op: Op, net: Emitter) -> Blob:
    """A Tile for every axis that grows (recipes 11.10)."""
    return expand(net, op.blob(), op.outputs[0])


@lowers("Tile")
def _tile(op: Op, net: Emitter) -> Blob:
    """A Tile for every axis that is repeated (recipes 11.10)."""
    x = op.blob()
    repeats = [int(r) for r in op.need_const(1, "repeats")]
    if 0 in repeats:
        raise Refused(f"repeats {repeats} holds a 0")
    for axis, times in enumerate(repeats):
        x = tile(net, x, axis, times)
    return x


@recipe("shuffle", "ShuffleChannel")
def _shuffle_layer(net: Emitter, x: Blob, group: int) -> Blob:
    """Channels (group, C/group) to (C/group, group) by the layer of that name (recipes 5.11)."""
    return net(ShuffleChannel(group=group), x)


@recipe("shuffle", "transpose")
def _shuffle_transpose(net: Emitter, x: Blob, group: int) -> Blob:
    """Channels (group, C/group) to (C/group, group) by Reshape, transposition, Reshape (recipes 5.11)."""
    batch, channels, *rest = x.shape
    seen = (batch, group, channels // group, math.prod(rest))
    return transpose(net, x, (0, 2, 1, 3), seen, x.shape)


@lowers("DepthToSpace", variant="groups")
def _depth_to_space_by_groups(op: Op, net: Emitter) -> Blob:
    """CRD: one Deconvolution of one-hot weights per map (recipes 5.13)."""
    x, block, maps = _blocks_of(op)
    if op.attribute("mode", "DCR") != "CRD":
        raise Refused("mode DCR: the channels of a map are no neighbours")
    weights = np.eye(block * block, dtype=np.float32).reshape(1, block * block, 1, block, block)
    weights = np.tile(weights, (maps, 1, 1, 1, 1)).reshape(x.shape[1], 1, block, block)
    return _spread(net, x, weights, maps)


@lowers("DepthToSpace", variant="dense")
def _depth_to_space(op: Op, net: Emitter) -> Blob:
    """Deconvolution with one-hot weights, kernel = stride = blocksize (recipes 5.12)."""
    x, block, maps = _blocks_of(op)
    weights = np.eye(x.shape[1], dtype=np.float32)
    if op.attribute("mode", "DCR") == "CRD":
        return _spread(net, x, weights.reshape(-1, maps, block, block), 1)
    return _spread(net, x, weights.reshape(-1, block, block, maps).transpose(0, 3, 1, 2), 1)


def _blocks_of(op: Op) -> tuple[Blob, int, int]:
    """The input of DepthToSpace, its blocksize, and how many maps come out."""
    x, block = op.blob(), int(op.attribute("blocksize"))
    return x, block, x.shape[1] // (block * block)


def _spread(net: Emitter, x: Blob, weights: Array, group: int) -> Blob:
    """A Deconvolution whose blocks do not overlap."""
    block = weights.shape[2:]
    layer = Deconvolution(
        num_output=weights.shape[1] * group,
        kernel_size=block,
        stride=block,
        group=group,
        bias_term=False,
        blobs=(weights,),
    )
    return x if max(block) == 1 else net(layer, x)


@lowers("SpaceToDepth", variant="PassThrough")
def _pass_through(op: Op, net: Emitter) -> Blob:
    """PassThrough has ONNX's order of channels (recipes 5.14)."""
    x = op.blob()
    block = int(op.attribute("blocksize"))
    layer = PassThrough(num_output=x.shape[1] * block * block, block_height=block, block_width=block)
    return x if block == 1 else net(layer, x)


@lowers("SpaceToDepth", variant="convolution")
def _space_to_depth(op: Op, net: Emitter) -> Blob:
    """Convolution with one-hot weights, kernel = stride = blocksize (recipes 5.14)."""
    x = op.blob()
    block, channels = int(op.attribute("blocksize")), x.shape[1]
    total = channels * block * block
    weights = np.eye(total, dtype=np.float32).reshape(total, block, block, channels).transpose(0, 3, 1, 2)
    layer = Convolution(
        num_output=total, kernel_size=(block, block), stride=(block, block), bias_term=False, blobs=(weights,)
    )
    return net(layer, x)
