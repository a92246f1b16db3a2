"""A part of a canonical model as an ONNX model of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.errors import Unsupported
from onnx2caffe.partition.cut import Part
from onnx2caffe.partition.wiring import read_by

__all__ = ["write_part"]

_MOST = 2**31 - 1
"""Bytes that protobuf reads at most."""

_OLDEST = 21
"""Opset 22 gave most operators a new version, for types alone, and onnxruntime has no kernels for some of these."""


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
        opset_imports={**model.graph.opset_imports, "": _opset(part.nodes)},
        name=path.stem,
    )
    alone = ir.Model(view.clone(), ir_version=model.ir_version, producer_name=model.producer_name)
    data: bytes = ir.to_proto(alone).SerializeToString(deterministic=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def _opset(nodes: Sequence[ir.Node]) -> int:
    """The oldest opset, of `_OLDEST` and newer ones, in which all nodes mean what they mean in the canonical one."""
    everything = [inner for node in nodes for inner in _with_subgraphs(node) if not inner.domain]
    opsets = range(_OLDEST, canon.OPSET)
    return next((opset for opset in opsets if all(_is_known(node, opset) for node in everything)), canon.OPSET)


def _with_subgraphs(node: ir.Node) -> Iterator[ir.Node]:
    yield node
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from ir.traversal.RecursiveGraphIterator(attribute.as_graph())


def _is_known(node: ir.Node, opset: int) -> bool:
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return False
    return len(node.inputs) <= schema.max_input and node.attributes.keys() <= schema.attributes.keys()
