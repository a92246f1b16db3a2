"""Dense layers over groups of channels stay on the channels, and so does a Softmax in front of them, for the NNIE.

Heads move (1, G·K, H, W) to (…, K) before a MatMul, often with a Softmax over K between (the integral of GFL and DFL).
Both see each group's K channels alone, so they commute with moving whatever else: group by group they are Softmax on
the channels and Convolution 1×1, forms that were seen compiled (recipes 6.3, 6.15, 6.16).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.decompose.transpose import Blocks, Digits
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.match import between, maker, source
from onnx2caffe.passes.movers import Chain, chain_above

__all__ = ["KeepDenseOnChannels"]

_MOVERS = ("Reshape", "Transpose")
_MOST_GROUPS = 32


@dataclass(frozen=True)
class _Dense:
    """Weights (M, K) over one axis of a value."""

    value: ir.Value
    axis: int
    weight: Array


class KeepDenseOnChannels(NodePass):
    """A dense layer over moved groups of channels, with or without a Softmax before it, is done before the moves."""

    claim = "W·x and softmax x over K of G·K channels commute with moving whatever else"
    ops = frozenset({"Conv", "MatMul"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Hoist where everything between the map and the dense layer goes."""
        dense = _dense(node)
        if dense is None:
            return False
        for chain in _chains(dense.value):
            soft = maker(chain.root, "Softmax")
            if soft is None:
                found = [(chain.root, chain.blocks, dense)] if node.op_type == "MatMul" else []
            else:
                found = _through_softmax(soft, chain, dense)
            for root, blocks, seen in found:
                digits = _on_channels(root, blocks, seen)
                if digits is not None and (soft is None or soft in between(node, root)):
                    _hoist(node, root, digits, dense, edit, soft=soft is not None)
                    return True
        return False


def _dense(node: ir.Node) -> _Dense | None:
    """A constant matrix over the last axis (MatMul), or over the channels one place at a time (Conv)."""
    weight = canon.const(source(node, 1))
    if weight is None:
        return None
    value = source(node)
    if node.op_type == "MatMul":
        rows = weight.reshape(len(weight), -1).T
        return _Dense(value, len(canon.shape(value)) - 1, rows) if weight.ndim <= 2 else None
    attributes = (canon.attribute(node, name) for name in ("strides", "kernel_shape"))
    plain = all(set(numbers) == {1} for numbers in attributes) and not any(canon.attribute(node, "pads"))
    if not plain or canon.attribute(node, "group") != 1 or len(node.inputs) > 2:
        return None
    return _Dense(value, 1, weight.reshape(weight.shape[:2]))


def _chains(value: ir.Value) -> list[Chain]:
    """The chains of movers that end in a value, the longest first; one of none where there is no mover."""
    mover = maker(value, *_MOVERS)
    still = [Chain(value, Blocks((), ()), (), 0)] if maker(value, "Softmax") else []
    return [*(reversed(chain_above(mover)) if mover else []), *still]


def _through_softmax(soft: ir.Node, below: Chain, dense: _Dense) -> list[tuple[ir.Value, Blocks, _Dense]]:
    """The maps above a Softmax over the same elements, and what moves them to the dense layer."""
    value = source(soft)
    axis = int(canon.attribute(soft, "axis")) % len(canon.shape(value))
    found = []
    for above in _chains(value):
        blocks = above.blocks.then(below.blocks)
        if blocks is not None and _on_channels(above.root, above.blocks, _Dense(value, axis, dense.weight)) is not None:
            found.append((above.root, blocks, dense))
    return found


def _on_channels(root: ir.Value, blocks: Blocks, dense: _Dense) -> Digits | None:
    """The digits between a map and a moved value, if the moved value's dense axis is the inner part of the channels."""
    shape, seen, size = canon.shape(root), canon.shape(dense.value), dense.weight.shape[1]
    if len(shape) < 3 or shape[0] != 1 or shape == seen or seen[dense.axis] != size or shape[1] > _MOST_GROUPS * size:
        return None
    digits = Digits.of(blocks, shape, seen)
    inner = digits.target[dense.axis] if digits is not None else ()
    return digits if digits is not None and len(inner) == 1 and digits.source[1][-1:] == inner else None


def _hoist(node: ir.Node, root: ir.Value, digits: Digits, dense: _Dense, edit: Editor, *, soft: bool) -> None:
    out, size = dense.weight.shape
    _, channels, *rest = canon.shape(root)
    groups = channels // size
    parts = edit.split(node, root, 1, [size] * groups) if groups > 1 else [root]
    taps = (1,) * len(rest)
    kernel = np.ascontiguousarray(dense.weight).reshape(out, size, *taps)
    weight = edit.constant(kernel, node.outputs[0], "weight")
    attributes = {"auto_pad": "NOTSET", "dilations": taps, "group": 1, "kernel_shape": taps}
    attributes |= {"pads": (0, 0) * len(rest), "strides": taps}
    merged = between(node, root)
    if soft:
        shape = (1, size, *rest)
        parts = [edit.add(node, "Softmax", [p], {"axis": 1}, shape=shape, what="soft", merged=merged) for p in parts]
    shape = (1, out, *rest)
    done = [edit.add(node, "Conv", [p, weight], attributes, shape=shape, what="dense", merged=merged) for p in parts]
    y = done[0]
    if groups > 1:
        y = edit.add(node, "Concat", done, {"axis": 1}, shape=(1, groups * out, *rest), what="groups", merged=merged)
    inner = digits.target[dense.axis]
    _move(node, y, tuple(out if (i,) == inner else n for i, n in enumerate(digits.sizes)), digits, edit)


def _move(node: ir.Node, value: ir.Value, sizes: Shape, digits: Digits, edit: Editor) -> None:
    """The moves that were in front, the digits of these sizes."""
    order = tuple(i for group in digits.target for i in group)
    value = edit.reshape(node, value, sizes, "digits")
    if order != tuple(sorted(order)):
        shape = tuple(sizes[i] for i in order)
        value = edit.add(node, "Transpose", [value], {"perm": order}, shape=shape, what="digits_moved")
    edit.replace_by_reshape(node, value)
