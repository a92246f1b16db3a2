"""The planes of a picture in the other order: what a camera delivers beside what the model was trained on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.errors import Unsupported, UsageError
from onnx2caffe.passes.base import Pass, PassResult, Repeat
from onnx2caffe.passes.channels import AbsorbChannelOrder
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.mean import InputsFirst

__all__ = ["TurnPlanes"]

_PLANES = 3


class TurnPlanes(Pass):
    """The planes of inputs are turned in front, and turned back in the weights behind.

    `inputs` are those of the user's; their channels are axis 1, or the last one.
    """

    claim = "W·x = W[:, p]·Gather(x, p), for p = (2, 1, 0)"

    def __init__(self, inputs: Sequence[str]) -> None:
        super().__init__()
        self._inputs = tuple(dict.fromkeys(inputs))

    def call(self, model: ir.Model) -> PassResult:
        """Turn each of the inputs.

        Raises:
            UsageError: no input of that name, or none with three channels.
            Unsupported: the weights behind it cannot take the order in.

        """
        inputs = [_input(model, name) for name in self._inputs]
        before = {node for node in model.graph if node.op_type == "Gather"}
        for value in inputs:
            _interpose(model.graph, value, "rgb")
        Repeat([InputsFirst(), AbsorbChannelOrder()]).call(model)
        if left := [node for node in model.graph if node.op_type == "Gather" and node not in before]:
            raise Unsupported(*_refusal(left[0]))
        for value in inputs:
            _interpose(model.graph, value, "bgr")
        return PassResult(model, bool(inputs))


def _input(model: ir.Model, name: str) -> ir.Value:
    inputs = {value.name: value for value in model.graph.inputs}
    if name not in inputs:
        raise UsageError(f"--bgr {name}: no input of that name", f"inputs: {', '.join(map(str, inputs))}")
    if not inputs[name].uses():
        raise UsageError(f"--bgr {name}: nothing reads it", "leave it out")
    return inputs[name]


def _channels(value: ir.Value) -> int:
    """Along which axis a picture has its planes."""
    shape = canon.shape(value)
    for axis in (1, 3):
        if len(shape) == 4 and shape[axis] == _PLANES:
            return axis
    raise UsageError(
        f"--bgr {value.name}: its shape is {list(shape)}",
        "it is for pictures of three planes, [1, 3, H, W] or [1, H, W, 3]",
    )


def _refusal(left: ir.Node) -> tuple[str, str]:
    value = left.outputs[0]
    readers = dict.fromkeys(canon.label(use.node) for use in value.uses())
    return (
        f"--bgr: the order of planes cannot go into weights where {', '.join(readers)} "
        f"read{'s' * (len(readers) == 1)} them: a convolution over all three should follow",
        "leave --bgr out and deliver the planes in the model's order",
    )


def _interpose(graph: ir.Graph, value: ir.Value, what: str) -> None:
    """Let all that read `value` read it with its planes turned."""
    edit = Editor(graph)
    order = edit.constant(np.arange(_PLANES)[::-1].copy(), value, "order")
    edit.interpose("Gather", value, [order], {"axis": _channels(value)}, what)
