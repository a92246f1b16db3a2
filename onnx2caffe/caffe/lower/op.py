"""What a lowering sees of an ONNX node: attributes, constants, and blobs for computed inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.lower.registry import Refused
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape

__all__ = ["Op"]


class Op:
    """A canonical node together with the blobs that hold its computed inputs."""

    def __init__(self, node: ir.Node, blobs: Mapping[ir.Value, Blob]) -> None:
        self.node = node
        self.type = node.op_type
        self._blobs = blobs

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

    def blob(self, index: int = 0) -> Blob:
        """The blob of a computed input.

        Raises:
            Refused: the input is constant or absent.

        """
        value = self.node.inputs[index] if self.has(index) else None
        if value is None or value not in self._blobs:
            raise Refused(f"input {index} must be computed in the net")
        return self._blobs[value]

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

    def wanted(self, index: int) -> bool:
        """Whether output `index` exists and something reads it (a node or the graph's outputs)."""
        if index >= len(self.node.outputs):
            return False
        value = self.node.outputs[index]
        return bool(value.name) and (bool(list(value.uses())) or value.is_graph_output())
