"""The one before/after check of all pass tests: numbers, shapes, names, provenance and the canonical invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx import helper, numpy_helper, shape_inference

from onnx2caffe import canon
from onnx2caffe.canon import UserTensor
from onnx2caffe.frontend import invariants
from onnx2caffe.passes.base import Pass
from onnx2caffe.passes.pipeline import run

Array = np.ndarray[Any, Any]
Node = tuple[Any, ...]

__all__ = ["before_after", "build", "compare", "counts", "i64", "infer_all", "noise"]


def i64(*numbers: int) -> Array:
    return np.array(numbers, dtype=np.int64)


def noise(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def build(inputs: Mapping[str, Sequence[int]], nodes: Sequence[Node], outputs: Sequence[str]) -> ir.Model:
    """A canonical model from (op, inputs, outputs, attributes) rows; an array among the inputs becomes an initializer.

    A −1 in a Reshape's target is resolved. An array used by identity in several places is one shared initializer.
    """
    initializers: dict[int, onnx.TensorProto] = {}
    kept = []
    protos = []
    for index, (op, operands, results, *rest) in enumerate(nodes):
        names = []
        for operand in [operands] if isinstance(operands, str) else operands:
            if isinstance(operand, np.ndarray):
                kept.append(operand)
                tensor = numpy_helper.from_array(operand, f"c{len(initializers)}")
                names.append(initializers.setdefault(id(operand), tensor).name)
            else:
                names.append(operand or "")
        made = [results] if isinstance(results, str) else list(results)
        protos.append(helper.make_node(op, names, made, name=f"n{index}_{op}", **(rest[0] if rest else {})))
    graph = helper.make_graph(
        protos,
        "g",
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        list(initializers.values()),
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", canon.OPSET)], ir_version=10)
    model = ir.from_proto(shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True))
    for node in model.graph:
        node.meta["sources"] = (node.name,)
        if node.op_type == "Reshape":
            target = node.inputs[1]
            assert target is not None
            target.const_value = ir.tensor(i64(*canon.shape(node.outputs[0])))
    for value in [*model.graph.inputs, *(v for node in model.graph for v in node.outputs)]:
        value.meta["tensors"] = (UserTensor(value.name or "", canon.shape(value)),)
    return model


def counts(model: ir.Model) -> dict[str, int]:
    return dict(Counter(node.op_type for node in model.graph))


def infer_all(model: ir.Model, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every value of the model, run in onnxruntime without optimisations."""
    proto = ir.to_proto(model)
    produced = [value.name for node in model.graph for value in node.outputs if value.name]
    if not produced:
        return dict(feeds)
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in produced)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {**feeds, **dict(zip(produced, session.run(produced, dict(feeds)), strict=True))}


def check_invariants(model: ir.Model) -> None:
    assert list(invariants.violations(model)) == []
    for node in model.graph:
        assert canon.sources(node), f"{node.name} ({node.op_type}) stands for no node of the user"


def compare(model: ir.Model, before: Mapping[str, Array], feeds: Mapping[str, Array], rtol: float = 2e-6) -> None:
    """Every value that claims to hold a user's tensor holds it, in C order; every value has the shape it states."""
    after = infer_all(model, feeds)
    for value in [*model.graph.inputs, *(v for node in model.graph for v in node.outputs)]:
        got = after[value.name or ""]
        assert got.shape == canon.shape(value), f"{value.name} has shape {got.shape}, states {canon.shape(value)}"
        for tensor in canon.tensors(value):
            wanted = before[tensor.name]
            assert wanted.shape == tensor.shape
            scale = max(float(np.max(np.abs(wanted), initial=0.0)), 1e-6)
            np.testing.assert_allclose(
                got.reshape(wanted.shape), wanted, rtol=0, atol=rtol * scale, err_msg=tensor.name
            )


def before_after(
    model: ir.Model,
    passes: Sequence[Pass],
    expect: Mapping[str, int] | None = None,
    *,
    seed: int = 0,
    rtol: float = 2e-6,
) -> ir.Model:
    """Run the passes; the model must compute the same and, when given, consist of the `expect`ed ops."""
    generator = np.random.default_rng(seed)
    feeds = {
        value.name or "": generator.standard_normal(canon.shape(value)).astype(np.float32) * 2
        for value in model.graph.inputs
    }
    before = infer_all(model, feeds)
    names = [value.name for value in model.graph.outputs]
    run(model, passes)
    check_invariants(model)
    assert len(model.graph.outputs) == len(names)
    for name, value in zip(names, model.graph.outputs, strict=True):
        assert name in {tensor.name for tensor in canon.tensors(value)}
    compare(model, before, feeds, rtol)
    if expect is not None:
        assert counts(model) == dict(expect)
    return model
