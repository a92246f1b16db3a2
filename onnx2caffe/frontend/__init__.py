"""From an ONNX file to the canonical model (docs/architecture.md, "The canonical model")."""

from __future__ import annotations

from onnx2caffe.frontend.load import NEWEST_OPSET, GivenNode, Loaded, TensorInfo, from_proto, load

__all__ = ["NEWEST_OPSET", "GivenNode", "Loaded", "TensorInfo", "from_proto", "load"]
