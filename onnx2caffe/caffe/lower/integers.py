"""Integer arithmetic with one constant operand as a table: between known bounds every function is one (Embed).

Caffe has float32 only; what rounds or wraps there is exact when looked up.
"""

from __future__ import annotations

import numpy as np

from onnx2caffe import canon, ranges
from onnx2caffe.caffe.layers import Embed
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import power
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import expand
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob
from onnx2caffe.frontend.evaluate import NotEvaluable, run

__all__: list[str] = []

_LARGEST = 4096
"""Entries of the largest table. More are indices into a whole map: post-processing, which the host does."""


@lowers(
    *("Add", "Sub", "Mul", "Div", "Mod"),
    *("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"),
    variant="table",
)
def _by_table(op: Op, net: Emitter) -> Blob:
    """The node itself, evaluated on every number its computed input can be (recipes 11.7)."""
    index = 0 if op.const(0) is None else 1
    x = op.blob(index)
    numbers = _numbers(op, index)
    entries = _evaluated(op, index, numbers).astype(np.float32).reshape(-1, 1)
    layer = Embed(num_output=1, input_dim=len(numbers), bias_term=False, blobs=(entries,))
    found = net(layer, power(net, x, shift=-float(numbers[0])))
    return expand(net, reshape(net, found, x.shape), op.outputs[0])


def _numbers(op: Op, index: int) -> Array:
    """All values of the computed input.

    Raises:
        Refused: it is no integer tensor, or nothing bounds it well enough.

    """
    value = op.node.inputs[index]
    known, dtype = ranges.of(value), op.dtype(index)
    if not dtype.is_integer() or known.hi - known.lo >= _LARGEST:
        raise Refused(
            f"{op.type} of {dtype.name} is integer arithmetic, which Caffe has only as a table of at most {_LARGEST} "
            f"entries; known of its input is {known.lo:g} … {known.hi:g}"
        )
    return np.arange(int(known.lo), int(known.hi) + 1).astype(dtype.numpy())


def _evaluated(op: Op, index: int, numbers: Array) -> Array:
    inputs: list[Array | None] = [numbers]
    if len(op) == 2:
        other = op.need_const(1 - index, "the other operand")
        if (other != other.flat[0]).any():
            raise Refused("the constant operand must be one number")
        inputs.insert(1 - index, other.reshape(-1)[:1])
    if op.type in ("Div", "Mod") and not inputs[1].all():  # type: ignore[union-attr]
        raise Refused(f"{op.type} by zero")
    attributes = {name: canon.attribute(op.node, name) for name in op.node.attributes}
    try:
        (result,) = run(op.type, attributes, inputs)
    except NotEvaluable as problem:
        raise Refused(f"{op.type}: {problem}") from problem
    return result
