"""Pad nodes that the op behind can do itself.

Zeros in front of a Conv are its own padding (recipes 3.4), through any element-wise op with f(0) = 0 in between
(problems 110). AveragePool may take them when it counts padding in the divisor. MaxPool pads with −∞: it may take −∞
always, and zeros only when its input is ≥ 0 and every window keeps a real element (recipes 2.13).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import ints, maker, only_reader, scalar, source

__all__ = ["FoldPad", "MergePads"]

_KEEPS_ZERO = frozenset(
    {
        "Abs",
        "Elu",
        "Erf",
        "Gelu",
        "HardSwish",
        "LeakyRelu",
        "Mish",
        "Neg",
        "Relu",
        "Selu",
        "Sign",
        "Softsign",
        "Sqrt",
        "Tanh",
    }
)
_NOT_NEGATIVE = frozenset({"Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus", "Sqrt"})
_KEEPS_SIGN = frozenset(
    {"AveragePool", "Concat", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Reshape", "Slice", "Split", "Transpose"}
)
_LOWEST = float(np.finfo(np.float32).min)


def _fill(node: ir.Node) -> float | None:
    """The number a Pad writes; None for other modes."""
    if canon.attribute(node, "mode") != "constant":
        return None
    value = node.inputs[2] if len(node.inputs) > 2 else None
    return 0.0 if value is None else scalar(value)


def _spatial(node: ir.Node) -> tuple[int, ...] | None:
    """Begin then end padding of the spatial axes, when nothing else is padded and nothing is cut."""
    pads = ints(node, 1)
    if pads is None or min(pads, default=0) < 0:
        return None
    half = len(pads) // 2
    begins, ends = pads[:half], pads[half:]
    if any(begins[:2]) or any(ends[:2]) or half < 3:
        return None
    return begins[2:] + ends[2:]


def not_negative(value: ir.Value) -> bool:
    """Whether a value is ≥ 0 everywhere, as far as the ops that make it tell."""
    node = value.producer()
    if node is None or node.domain or canon.is_opaque(node):
        return False
    if node.op_type in _NOT_NEGATIVE:
        return True
    if node.op_type == "Clip":
        low = scalar(node.inputs[1]) if len(node.inputs) > 1 else None
        return low is not None and low >= 0
    data = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    return node.op_type in _KEEPS_SIGN and all(one is not None and not_negative(one) for one in data)


class MergePads(NodePass):
    """Pad of Pad with the same constant is one Pad."""

    claim = "padding by a then by b with one constant is padding by a+b (no cuts)"
    ops = frozenset({"Pad"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Add up the pads."""
        inner = maker(source(node), "Pad")
        if inner is None:
            return False
        fill, outer_pads, inner_pads = _fill(node), ints(node, 1), ints(inner, 1)
        if fill is None or fill != _fill(inner) or outer_pads is None or inner_pads is None:
            return False
        if min(*outer_pads, *inner_pads) < 0:
            return False
        total = edit.constant([a + b for a, b in zip(inner_pads, outer_pads, strict=True)], node.outputs[0], "pads")
        edit.replace(node, "Pad", [source(inner), total, *node.inputs[2:]], node.attributes, merged=[inner])
        return True


class FoldPad(NodePass):
    """The op behind a Pad pads by itself."""

    claim = "constant padding equals the padding of the Conv (0), AveragePool (0, counted) or MaxPool (−∞) behind it"
    ops = frozenset({"AveragePool", "Conv", "MaxPool"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Find the Pad in front, through element-wise ops that keep zero, and add its pads to the op's own."""
        between, pad = _pad_above(node)
        if pad is None or (between and node.op_type != "Conv"):
            return False
        pads = _spatial(pad)
        if pads is None or not _may_take(node, pad, pads):
            return False
        value = source(pad)
        for one in between:
            inputs = [value, *one.inputs[1:]]
            value = edit.add(one, one.op_type, inputs, one.attributes, shape=canon.shape(value), what="unpadded")
        attributes = {**node.attributes, "pads": _sum(canon.attribute(node, "pads"), pads)}
        if node.op_type == "AveragePool":
            attributes["count_include_pad"] = 1
        edit.replace(node, node.op_type, [value, *node.inputs[1:]], attributes, merged=[pad])
        return True


def _pad_above(node: ir.Node) -> tuple[list[ir.Node], ir.Node | None]:
    between: list[ir.Node] = []
    value = source(node)
    while (one := maker(value, *_KEEPS_ZERO)) is not None and only_reader(value) is not None:
        between.insert(0, one)
        value = source(one)
    return between, maker(value, "Pad")


def _sum(own: Sequence[int], more: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(own, more, strict=True)]


def _may_take(node: ir.Node, pad: ir.Node, pads: tuple[int, ...]) -> bool:
    fill, own = _fill(pad), canon.attribute(node, "pads")
    if fill is None:
        return False
    if node.op_type == "Conv":
        return fill == 0
    kernel = canon.attribute(node, "kernel_shape")
    total = _sum(own, pads)
    if canon.attribute(node, "ceil_mode") or any(p >= k for p, k in zip(total, (*kernel, *kernel), strict=True)):
        return False
    if node.op_type == "AveragePool":
        counted = canon.attribute(node, "count_include_pad") or not any(own)
        return fill == 0 and bool(counted) and set(canon.attribute(node, "dilations", (1,))) == {1}
    if len(node.outputs) > 1 or set(canon.attribute(node, "dilations", (1,))) != {1}:
        return False
    return fill <= _LOWEST or (fill == 0 and not_negative(source(pad)))
