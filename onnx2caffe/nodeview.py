"""What an exit sees of an ONNX node: attributes, constants, shapes. Each exit adds its own handles of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape

__all__ = ["NodeView", "Refused"]


class Refused(Exception):
    """A way to express a node does not apply here; the text says why (attribute and value, or the target's rule).

    Of several ways, each with its reason, `reasons` has them all.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__("; or ".join(reasons))
        self.reasons = reasons


class NodeView:
    """A canonical node."""

    def __init__(self, node: ir.Node) -> None:
        self.node = node
        self.type = node.op_type

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's plain value (canonical nodes have all of them explicit)."""
        return canon.attribute(self.node, name, default)

    def __len__(self) -> int:
        """The number of inputs, absent trailing ones not counted."""
        return len(self.node.inputs)

    def has(self, index: int) -> bool:
        """Whether input `index` is there."""
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    def const(self, index: int) -> np.ndarray[Any, Any] | None:
        """The array of a constant input; None for a computed or absent one."""
        return canon.const(self.node.inputs[index]) if self.has(index) else None

    def need_const(self, index: int, what: str) -> np.ndarray[Any, Any]:
        """The array of an input that must be constant.

        Raises:
            Refused: it is computed, or absent.

        """
        array = self.const(index)
        if array is None:
            raise Refused(f"{what} (input {index}) must be constant")
        return array

    def shape(self, index: int = 0) -> Shape:
        """The static shape of input `index`."""
        value = self.node.inputs[index]
        assert value is not None
        return canon.shape(value)

    def dtype(self, index: int = 0) -> ir.DataType:
        """The element type of input `index`."""
        value = self.node.inputs[index]
        assert value is not None
        return canon.dtype(value)

    @property
    def outputs(self) -> list[Shape]:
        """The static shapes of the outputs."""
        return [canon.shape(v) for v in self.node.outputs]

    @property
    def reduced(self) -> list[int]:
        """The axes that a Reduce* node reduces: input 1, none = all unless noop_with_empty_axes."""
        given = self.need_const(1, "axes").tolist() if self.has(1) else []
        if given or self.attribute("noop_with_empty_axes", 0):
            return [int(axis) for axis in given]
        return list(range(len(self.shape())))

    def wanted(self, index: int) -> bool:
        """Whether output `index` exists and something reads it (a node or the graph's outputs)."""
        if index >= len(self.node.outputs):
            return False
        value = self.node.outputs[index]
        return bool(value.name) and (bool(list(value.uses())) or value.is_graph_output())
