"""A part of a canonical model as an ONNX model of its own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx_ir as ir

from onnx2caffe.errors import Unsupported
from onnx2caffe.partition.cut import Part
from onnx2caffe.partition.wiring import read_by

__all__ = ["write_part"]

_MOST = 2**31 - 1
"""Bytes that protobuf reads at most."""


def write_part(part: Part, model: ir.Model, path: Path) -> str:
    """Write the nodes of a part of `model`, with the initializers they need; tensors keep their names.

    Returns the file's sha256 as hex digits.

    Raises:
        Unsupported: its weights do not fit one ONNX file.

    """
    read = dict.fromkeys(value for node in part.nodes for value in read_by(node))
    initializers = [value for value in read if value.is_initializer() and value.graph is model.graph]
    size = sum(value.const_value.nbytes for value in initializers if value.const_value is not None)
    if size > _MOST:
        raise Unsupported(f"the part that stays ONNX has {size} bytes of weights; a file holds {_MOST}")
    view = ir.GraphView(
        part.inputs,
        part.outputs,
        nodes=part.nodes,
        initializers=initializers,
        opset_imports=model.graph.opset_imports,
        name=path.stem,
    )
    alone = ir.Model(view.clone(), ir_version=model.ir_version, producer_name=model.producer_name)
    data: bytes = ir.to_proto(alone).SerializeToString(deterministic=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()
