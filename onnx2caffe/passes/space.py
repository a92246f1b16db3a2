"""Spellings of channel permutations, DepthToSpace and SpaceToDepth, all found by their index map.

A channel permutation (channel shuffle above all) is a Gather along axis 1; a block order that ONNX has no mode for is
the nearest op and such a Gather. DepthToSpace reads channel (i·b+j)·C+c (DCR) or c·b²+i·b+j (CRD) into row y·b+i,
column x·b+j; SpaceToDepth writes channel (i·b+j)·C+c (recipes 5.11–5.18).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.decompose.transpose import Digits
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.indexmap import Selection, selection
from onnx2caffe.passes.linear import linear
from onnx2caffe.passes.match import maker, only_reader, source
from onnx2caffe.passes.movers import Chain, chain_above

__all__ = ["FoldSpaceToDepthIntoConv", "RaiseChannelMovers", "RaiseConcatOfSlices"]

_LONGEST_LIST = 4096
"""A Gather costs the square of its channels where a target has only convolutions to do it."""


def _gather(before: ir.Node, value: ir.Value, order: Array, edit: Editor) -> ir.Value:
    """`value` with its channels in this order; itself when they are."""
    if np.array_equal(order, np.arange(canon.shape(value)[1])):
        return value
    shape = list(canon.shape(value))
    shape[1] = len(order)
    indices = edit.constant(order.astype(np.int64), before.outputs[0], "channels")
    return edit.add(before, "Gather", [value, indices], {"axis": 1}, shape=tuple(shape), what="picked")


def _finish(node: ir.Node, value: ir.Value, order: Array, merged: Sequence[ir.Node], edit: Editor) -> None:
    """Let `node`'s output be `value` with its channels in `order`."""
    picked = _gather(node, value, order, edit)
    producer = picked.producer()
    assert producer is not None
    for one in merged:
        producer.meta["sources"] = tuple(dict.fromkeys((*canon.sources(producer), *canon.sources(one))))
    edit.forward(node.outputs[0], picked)


class RaiseChannelMovers(NodePass):
    """Movers that permute channels, or trade them for space, become Gather, DepthToSpace or SpaceToDepth."""

    claim = "a chain of movers equals the op with the same index map"
    ops = frozenset({"Reshape", "Transpose"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Raise the longest chain above that has such an index map and dies."""
        for chain in reversed(chain_above(node)):
            if chain.blocks.moves and chain.private == len(chain.nodes) > 1 and self._raise(node, chain, edit):
                return True
        return False

    def _raise(self, node: ir.Node, chain: Chain, edit: Editor) -> bool:
        shape, target = canon.shape(chain.root), canon.shape(node.outputs[0])
        inside = Digits.of(chain.blocks, shape, shape)
        if inside is not None and (shape == target or len(shape) == 4) and _permutation(node, chain, inside, edit):
            return True
        digits = Digits.of(chain.blocks, shape, target)
        if digits is None or len(shape) != 4 or len(target) != 4 or digits.source[0] != digits.target[0]:
            return False
        return _depth_to_space(node, chain, digits, edit) or _space_to_depth(node, chain, digits, edit)


def _permutation(node: ir.Node, chain: Chain, digits: Digits, edit: Editor) -> bool:
    """A Gather of channels and, where the shape changes too, a Reshape.

    On rank 3 axis 1 may be tokens, and their windows are permuted too: there only a swap of two digits is a shuffle.
    """
    pairs = list(zip(digits.source, digits.target, strict=True))
    if len(pairs) < 2 or any(a != b for axis, (a, b) in enumerate(pairs) if axis != 1):
        return False
    channels = pairs[1][0]
    if digits.size(channels) > _LONGEST_LIST or (len(pairs) == 3 and len(channels) != 2):
        return False
    order = digits.table(channels, pairs[1][1])
    edit.replace_by_reshape(node, _gather(node, chain.root, order, edit), merged=chain.nodes)
    return True


def _depth_to_space(node: ir.Node, chain: Chain, digits: Digits, edit: Editor) -> bool:
    _, channels, *maps = digits.source
    _, kept, *grown = digits.target
    blocks = [grown[i][len(maps[i]) :] for i in range(2)]
    if any(grown[i][: len(maps[i])] != maps[i] for i in range(2)):
        return False
    b = digits.size(blocks[0])
    if b != digits.size(blocks[1]) or b == 1:
        return False
    order = digits.table(channels, (*blocks[0], *blocks[1], *kept))
    plain = np.arange(len(order))
    columns_last = plain.reshape(-1, b, b).transpose(1, 2, 0).ravel()
    value, mode = chain.root, "DCR"
    if np.array_equal(order, columns_last) and not np.array_equal(order, plain):
        mode = "CRD"
    else:
        value = _gather(node, value, order, edit)
    edit.replace(node, "DepthToSpace", [value], {"blocksize": b, "mode": mode}, merged=chain.nodes)
    return True


def _space_to_depth(node: ir.Node, chain: Chain, digits: Digits, edit: Editor) -> bool:
    _, kept, *maps = digits.source
    _, channels, *shrunk = digits.target
    blocks = [maps[i][len(shrunk[i]) :] for i in range(2)]
    if any(maps[i][: len(shrunk[i])] != shrunk[i] for i in range(2)):
        return False
    b = digits.size(blocks[0])
    if b != digits.size(blocks[1]) or b == 1:
        return False
    order = digits.table((*blocks[0], *blocks[1], *kept), channels)
    value = _fold_space(node, chain.root, b, edit)
    _finish(node, value, order, chain.nodes, edit)
    return True


def _fold_space(before: ir.Node, value: ir.Value, b: int, edit: Editor) -> ir.Value:
    n, c, h, w = canon.shape(value)
    return edit.add(
        before, "SpaceToDepth", [value], {"blocksize": b}, shape=(n, c * b * b, h // b, w // b), what="folded"
    )


class RaiseConcatOfSlices(NodePass):
    """A channel Concat of slices of one map becomes a Gather, or SpaceToDepth and a Gather (YOLOv5 and YOLOX Focus)."""

    claim = "slices with step b from (i, j), concatenated, are SpaceToDepth's channel blocks i·b+j in some order"
    ops = frozenset({"Concat"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Follow every part to the common root and read off offset and channels."""
        if canon.attribute(node, "axis") != 1 or len(canon.shape(node.outputs[0])) < 3 or len(node.inputs) < 2:
            return False
        parts = _common_root([source(node, i) for i in range(len(node.inputs))])
        if parts is None or not _dies(node, parts):
            return False
        root = parts[0].root
        shape = canon.shape(root)
        b = _block(shape, canon.shape(node.outputs[0]))
        if b is None:
            return False
        order: list[Array] = []
        for part in parts:
            offset = _offset(part.axes, shape, b)
            if offset is None:
                return False
            order.append(offset * shape[1] + part.axes[1])
        channels = np.concatenate(order)
        if len(channels) > _LONGEST_LIST:
            return False
        value = root if b == 1 else _fold_space(node, root, b, edit)
        _finish_or_forward(node, value, channels, [one for part in parts for one in part.nodes], edit)
        return True


def _finish_or_forward(node: ir.Node, value: ir.Value, order: Array, merged: list[ir.Node], edit: Editor) -> None:
    if np.array_equal(order, np.arange(canon.shape(value)[1])) and value.producer() is None:
        edit.forward(node.outputs[0], value)
    else:
        _finish(node, value, order, merged, edit)


def _common_root(values: list[ir.Value]) -> list[Selection] | None:
    """Each value as a selection of the nearest value that all of them select from."""
    candidates = [selection(value) for value in values]
    for first in candidates[0][1:]:
        same = [next((one for one in each if one.root is first.root and one.nodes), None) for each in candidates]
        chosen = [one for one in same if one is not None]
        if len(chosen) == len(values):
            return chosen
    return None


def _dies(node: ir.Node, parts: list[Selection]) -> bool:
    """Whether all the movers are there for this Concat only."""
    movers = {one for part in parts for one in part.nodes} | {node}
    return all(
        not output.is_graph_output() and all(use.node in movers for use in output.uses())
        for one in movers - {node}
        for output in one.outputs
    )


def _block(shape: Shape, target: Shape) -> int | None:
    """By which factor every spatial axis shrinks, when it is one and divides."""
    if shape[0] != target[0]:
        return None
    factors = {a // b for a, b in zip(shape[2:], target[2:], strict=True) if a % b == 0}
    exact = all(a % b == 0 for a, b in zip(shape[2:], target[2:], strict=True))
    if not exact or len(factors) != 1:
        return None
    b = factors.pop()
    return b if b == 1 or len(shape) == 4 else None


def _offset(axes: tuple[Array, ...], shape: Shape, b: int) -> int | None:
    """Which channel block of SpaceToDepth these spatial lists are; None for anything but start i, step b."""
    if not np.array_equal(axes[0], np.arange(shape[0])):
        return None
    place = 0
    for indices, size in zip(axes[2:], shape[2:], strict=True):
        start = int(indices[0])
        if start >= b or not np.array_equal(indices, np.arange(start, size, b)):
            return None
        place = place * b + start
    return place


class FoldSpaceToDepthIntoConv(NodePass):
    """SpaceToDepth and the Conv behind it are one Conv with a larger kernel (recipes 5.17, 5.19)."""

    claim = "W′[o, c, b·y+i, b·x+j] = W[o, (i·b+j)·C+c, y, x] with stride and padding times b reads the same products"
    ops = frozenset({"Conv"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Fold when the Conv is dense, undilated and alone reads the folded map."""
        conv = linear(node)
        folded = maker(conv.value, "SpaceToDepth") if conv is not None else None
        if conv is None or folded is None or only_reader(conv.value) is None or conv.group != 1:
            return False
        if set(canon.attribute(node, "dilations")) != {1}:
            return False
        b = int(canon.attribute(folded, "blocksize"))
        outputs, inputs, kh, kw = conv.weight.shape
        blocks = conv.weight.reshape(outputs, b, b, inputs // (b * b), kh, kw)
        weight = blocks.transpose(0, 3, 4, 1, 5, 2).reshape(outputs, inputs // (b * b), kh * b, kw * b)
        attributes = {
            name: tuple(int(n) * b for n in canon.attribute(node, name)) for name in ("kernel_shape", "pads", "strides")
        }
        return conv.rebuild(node, edit, value=source(folded), weight=weight, attributes=attributes, merged=[folded])
