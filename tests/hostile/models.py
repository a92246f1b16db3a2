"""Small models in ONNX's text form, and ways to spoil them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

__all__ = ["external", "graph", "save", "tensor", "with_names"]


def graph(body: str, *, inputs: str = "float[1,3,8,8] x", outputs: str = "float y", opset: int = 13) -> onnx.ModelProto:
    """A model; an output may be declared without a shape."""
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {body}')
    for value in proto.graph.output:
        if not value.type.tensor_type.shape.dim:
            value.type.tensor_type.ClearField("shape")
    return proto


def save(proto: onnx.ModelProto, folder: Path, name: str = "m.onnx") -> Path:
    """Write a model without onnx's own checks; its path."""
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


def tensor(name: str, dims: list[int], data: bytes = b"", kind: int = TensorProto.FLOAT) -> TensorProto:
    """An initializer that claims what it likes."""
    return TensorProto(name=name, dims=dims, data_type=kind, raw_data=data)


def external(folder: Path, **entries: str) -> Path:
    """`y = x + w` with `w`, 4,096 floats, in `m.bin` beside the model, as `entries` claim it."""
    w = np.random.default_rng(0).standard_normal((4, 1024)).astype(np.float32)
    proto = graph("<float[4,1024] w = {0}> { y = Add(x, w) }", inputs="float[4,1024] x")
    (folder / "m.bin").write_bytes(w.tobytes())
    stored = tensor("w", [4, 1024])
    stored.ClearField("raw_data")
    stored.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "m.bin", **entries}.items():
        stored.external_data.add(key=key, value=value)
    proto.graph.initializer[0].CopyFrom(stored)
    return save(proto, folder)


def with_names(name: str) -> onnx.ModelProto:
    """Conv, Relu, and two readers of the Relu; `name` is that of a tensor, its node, an input and an output."""
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", [f"{name}in", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], [name], name=name),
        helper.make_node("Sigmoid", [name], ["s"], name=f"{name}/s"),
        helper.make_node("Tanh", [name], ["t"], name=f"{name}/t"),
        helper.make_node("Add", ["s", "t"], [f"{name}out"], name=f"{name}/a"),
    ]
    x = helper.make_tensor_value_info(f"{name}in", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info(f"{name}out", TensorProto.FLOAT, None)
    made = helper.make_graph(nodes, name, [x], [y], [w])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
