"""Two linear branches of one input that are added become one Conv (RepVGG, MobileOne; recipes 13.11).

(V∗x + b) + (W∗x + c) = (V′ + W′)∗x + (b + c), where the smaller kernel stands in the larger one at the offset by which
their paddings differ. A BatchNormalization of x, arithmetic with constants per channel, and x itself are 1×1 kernels on
the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.passes.affine import arithmetic, batch_norm
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.linear import Linear, linear
from onnx2caffe.passes.match import only_reader, operands

__all__ = ["SumBranches"]


@dataclass(frozen=True)
class _Kernel:
    """Weights (out, in/group, taps…), float64 bias per output, and padding in front and behind."""

    weight: Array
    bias: Array
    pads: Shape

    @property
    def taps(self) -> Shape:
        return tuple(self.weight.shape[2:])

    def inside(self, other: _Kernel) -> tuple[slice, ...] | None:
        """Where this kernel's taps lie in the other one, if it fits in there."""
        rank = len(self.taps)
        offsets = [large - small for small, large in zip(self.pads[:rank], other.pads[:rank], strict=True)]
        room = [large - small for small, large in zip(self.taps, other.taps, strict=True)]
        if any(not 0 <= offset <= free for offset, free in zip(offsets, room, strict=True)):
            return None
        return tuple(slice(offset, offset + size) for offset, size in zip(offsets, self.taps, strict=True))


class SumBranches(NodePass):
    """The sum of a Conv of x and another linear function of x with the same outputs is one Conv."""

    claim = "V∗x + W∗x = (V + W)∗x with the kernels aligned"
    ops = frozenset({"Add"})

    def __init__(self, *, keep_bn: bool = False) -> None:
        super().__init__()
        self.keep_bn = keep_bn

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Add the other branch's kernel to the Conv's, when nothing else reads either branch."""
        for first, second in operands(node):
            conv = _branch_conv(first)
            if conv is not None and canon.shape(first) == canon.shape(second):
                other = self._kernel(second, conv)
                if other is not None and _add(node, conv, other, edit):
                    return True
        return False

    def _kernel(self, value: ir.Value, conv: Linear) -> _Kernel | None:
        """`value` as a kernel over the input of `conv`, with its groups and strides."""
        other = _branch_conv(value)
        if other is not None:
            same = all(
                canon.attribute(other.node, name) == canon.attribute(conv.node, name)
                for name in ("dilations", "group", "strides")
            )
            return _of_conv(other) if same and other.value is conv.value else None
        if set(canon.attribute(conv.node, "strides")) != {1}:
            return None
        return self._diagonal(value, conv)

    def _diagonal(self, value: ir.Value, conv: Linear) -> _Kernel | None:
        channels = canon.shape(value)[1]
        factor, shift = np.ones(channels), np.zeros(channels)
        if value is not conv.value:
            node = value.producer()
            affine = None if node is None else arithmetic(node) or (None if self.keep_bn else batch_norm(node))
            vectors = affine.per_channel(1) if affine is not None and affine.value is conv.value else None
            if vectors is None or only_reader(value) is None:
                return None
            factor, shift = vectors
        width = channels // conv.group
        weight = np.zeros((channels, width), dtype=np.float32)
        weight[np.arange(channels), np.arange(channels) % width] = factor
        rank = conv.weight.ndim - 2
        return _Kernel(weight.reshape(channels, width, *(1,) * rank), shift, (0,) * 2 * rank)


def _branch_conv(value: ir.Value) -> Linear | None:
    node = value.producer()
    if node is None or node.op_type != "Conv" or node.domain or canon.is_opaque(node) or only_reader(value) is None:
        return None
    return linear(node)


def _of_conv(conv: Linear) -> _Kernel:
    bias = np.zeros(conv.outputs) if conv.bias is None else conv.bias.astype(np.float64)
    return _Kernel(conv.weight, bias, canon.attribute(conv.node, "pads"))


def _add(node: ir.Node, conv: Linear, other: _Kernel, edit: Editor) -> bool:
    own = _of_conv(conv)
    large, small = (own, other) if other.inside(own) is not None else (other, own)
    place = small.inside(large)
    undilated = set(canon.attribute(conv.node, "dilations")) == {1}
    if place is None or not (undilated or (own.taps == other.taps and own.pads == other.pads)):
        return False
    weight = np.array(large.weight)
    weight[(slice(None), slice(None), *place)] += small.weight
    attributes = {"kernel_shape": large.taps, "pads": large.pads}
    merged = [value.producer() for value in node.inputs if value is not None and value is not conv.value]
    return conv.rebuild(
        node,
        edit,
        weight=weight,
        bias=own.bias + other.bias,
        attributes=attributes,
        merged=[one for one in merged if one is not None],
    )
