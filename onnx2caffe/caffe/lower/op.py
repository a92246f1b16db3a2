"""What a lowering sees of an ONNX node: attributes, constants, and blobs for computed inputs."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnx2caffe.caffe.net import Blob
from onnx2caffe.nodeview import NodeView, Refused

__all__ = ["Op"]


class Op(NodeView):
    """A canonical node together with the blobs that hold its computed inputs."""

    def __init__(self, node: ir.Node, blobs: Mapping[ir.Value, Blob]) -> None:
        super().__init__(node)
        self._blobs = blobs

    def blob(self, index: int = 0) -> Blob:
        """The blob of a computed input.

        Raises:
            Refused: the input is constant or absent.

        """
        value = self.node.inputs[index] if self.has(index) else None
        if value is None or value not in self._blobs:
            raise Refused(f"input {index} must be computed in the net")
        return self._blobs[value]
