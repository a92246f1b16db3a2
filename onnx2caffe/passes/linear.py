"""One view of the ops with constant weights – Conv, ConvTranspose, Gemm, MatMul – for passes that change the weights.

Weights are (out, in/group, taps…) or, for ConvTranspose and a constant right operand of MatMul, (in, out/group, taps…):
a factor per output or per input channel is one broadcast multiplication either way (recipes 13.2, problems 137).
A weight that other nodes read is never changed: the rewritten op gets its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.match import narrow, source

__all__ = ["Linear", "linear"]


@dataclass(frozen=True)
class Linear:
    """A node y = W·x + b with constant W and b.

    `axis` counts channels in x and in y; `inputs_first` says that the weights' first axis is the input channels.
    """

    node: ir.Node
    value: ir.Value
    weight: Array
    bias: Array | None
    axis: int
    group: int = 1
    inputs_first: bool = False

    @property
    def outputs(self) -> int:
        """The number of output channels."""
        return canon.shape(self.node.outputs[0])[self.axis]

    @property
    def has_bias(self) -> bool:
        """Whether the op can hold a bias."""
        return self.node.op_type != "MatMul"

    @property
    def uniform(self) -> bool:
        """Whether every output position reads all taps, none of them from padding."""
        return self.node.op_type == "Gemm" or (
            self.node.op_type == "Conv" and not any(canon.attribute(self.node, "pads"))
        )

    def _per(self, vector: Array, *, first: bool) -> Array:
        """A number per channel of the weights' first axis, or of the second in every group, to broadcast over taps."""
        if first:
            spread = vector[:, None]
        else:
            spread = np.repeat(vector.reshape(self.group, -1), self.weight.shape[0] // self.group, axis=0)
        return spread.reshape(*spread.shape, *(1,) * (self.weight.ndim - 2))

    def per_output(self, vector: Array) -> Array:
        """A vector over output channels, broadcastable against the weights."""
        return self._per(vector, first=not self.inputs_first)

    def per_input(self, vector: Array) -> Array:
        """A vector over input channels, broadcastable against the weights."""
        return self._per(vector, first=self.inputs_first)

    def response(self, shift: Array) -> Array:
        """What a constant `shift` per input channel adds to every output channel of a `uniform` op."""
        taps = self.weight.reshape(*self.weight.shape[:2], -1).sum(axis=2, dtype=np.float64)
        return np.asarray((taps * self.per_input(shift).reshape(taps.shape)).sum(axis=1))

    def inputs(
        self,
        origin: ir.Value,
        edit: Editor,
        *,
        value: ir.Value | None = None,
        weight: Array | None = None,
        bias: Array | None = None,
    ) -> list[ir.Value | None] | None:
        """The inputs of this op with another input, weights or bias (new constants are called after `origin`).

        None, and nothing made, when it cannot hold the bias or float32 cannot hold the numbers.
        """
        bias = self.bias if bias is None else narrow(bias)
        if bias is not None and not np.any(bias):
            bias = None
        if bias is not None and not self.has_bias:
            return None
        if any(array is not None and not np.all(np.isfinite(array)) for array in (weight, bias)):
            return None
        at = next(i for i, one in enumerate(self.node.inputs) if one is not self.value)
        inputs = list(self.node.inputs[:2])
        inputs[1 - at] = value or self.value
        if weight is not None:
            inputs[at] = edit.constant(weight, origin, "weight")
        if bias is not None and bias is self.bias:
            inputs.append(self.node.inputs[2])
        elif bias is not None:
            wide = np.broadcast_to(bias, (self.outputs,)) if bias.ndim < 2 else bias
            inputs.append(edit.constant(wide, origin, "bias"))
        return inputs

    def rebuild(
        self,
        place: ir.Node,
        edit: Editor,
        *,
        value: ir.Value | None = None,
        weight: Array | None = None,
        bias: Array | None = None,
        attributes: Mapping[str, object] | None = None,
        merged: Sequence[ir.Node] = (),
    ) -> bool:
        """This op, changed as `inputs` says, in the place of `place`; False, and nothing done, when it cannot be."""
        inputs = self.inputs(place.outputs[0], edit, value=value, weight=weight, bias=bias)
        if inputs is None:
            return False
        edit.replace(place, self.node.op_type, inputs, {**self.node.attributes, **(attributes or {})}, merged=merged)
        return True


def linear(node: ir.Node) -> Linear | None:
    """The view of `node`, if it is linear with constant weights.

    Gemm only in its normal form (passes.dense): activation on the left, weights (out, in), no scalars.
    """
    if node.op_type == "MatMul":
        return _matmul(node)
    if node.op_type not in ("Conv", "ConvTranspose", "Gemm"):
        return None
    weight = canon.const(source(node, 1))
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if weight is None or canon.const(source(node)) is not None or (bias is not None and canon.const(bias) is None):
        return None
    if node.op_type == "Gemm" and not _plain_gemm(node):
        return None
    group = int(canon.attribute(node, "group", 1))
    return Linear(node, source(node), weight, canon.const(bias), 1, group, node.op_type == "ConvTranspose")


def _plain_gemm(node: ir.Node) -> bool:
    wanted = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}
    return all(canon.attribute(node, name) == value for name, value in wanted.items())


def _matmul(node: ir.Node) -> Linear | None:
    left, right = source(node, 0), source(node, 1)
    rank = len(canon.shape(node.outputs[0]))
    for value, other, inputs_first in ((left, right, True), (right, left, False)):
        weight = canon.const(other)
        if weight is not None and weight.ndim == 2 and canon.const(value) is None and len(canon.shape(value)) == rank:
            return Linear(node, value, weight, None, rank - 1 if inputs_first else rank - 2, inputs_first=inputs_first)
    return None
