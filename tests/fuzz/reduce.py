"""Makes a failing model small: fewer outputs, fewer nodes, inputs instead of what is in front of the failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
from onnx import ModelProto, TensorProto, shape_inference

__all__ = ["reduced"]


def reduced(model: ModelProto, fails: Callable[[ModelProto], bool]) -> ModelProto:
    """The smallest model found by leaving things out of `model` for which `fails` still holds."""
    while True:
        smaller = next((candidate for candidate in _candidates(model) if fails(candidate)), None)
        if smaller is None:
            return model
        model = smaller


def _candidates(model: ModelProto) -> Iterator[ModelProto]:
    """Models one step smaller, most promising first."""
    typed = shape_inference.infer_shapes(model, data_prop=True).graph
    values = {v.name: v for v in (*typed.value_info, *typed.input, *typed.output)}
    made = [o for node in model.graph.node for o in node.output]
    outputs = [o.name for o in model.graph.output]
    if len(outputs) > 1:
        yield from (_cut(model, values, [], [name]) for name in outputs)
        yield from (_cut(model, values, [], [o for o in outputs if o != name]) for name in outputs)
    inner = [name for name in made if name in values and name not in outputs]
    floats = [name for name in inner if values[name].type.tensor_type.elem_type == TensorProto.FLOAT]
    yield from (_cut(model, values, [name], outputs) for name in reversed(floats))
    yield from (_cut(model, values, [], [name]) for name in inner)
    for position, node in enumerate(model.graph.node):
        if node.op_type == "Identity":
            continue
        yield from (_bypassed(model, position, i) for i in node.input if i and _alike(values, i, node.output[0]))


def _alike(values: dict[str, onnx.ValueInfoProto], a: str, b: str) -> bool:
    return a in values and b in values and values[a].type == values[b].type


def _cut(model: ModelProto, values: dict[str, onnx.ValueInfoProto], starts: list[str], ends: list[str]) -> ModelProto:
    """The part of the model between further inputs and these outputs."""
    result = ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    wanted, kept = set(ends), []
    for node in reversed(graph.node):
        if wanted & (set(node.output) - set(starts)):
            kept.append(node)
            wanted.update(node.input)
    nodes = kept[::-1]
    inputs = [i for i in graph.input if i.name in wanted] + [values[s] for s in starts if s in wanted]
    constants = [c for c in graph.initializer if c.name in wanted]
    for field, items in (("node", nodes), ("input", inputs), ("initializer", constants)):
        graph.ClearField(field)
        getattr(graph, field).extend(items)
    graph.ClearField("output")
    graph.output.extend(values[e] for e in ends)
    return result


def _bypassed(model: ModelProto, position: int, source: str) -> ModelProto:
    """The model without a node, its readers reading one of its inputs."""
    result = ModelProto()
    result.CopyFrom(model)
    gone = result.graph.node[position].output[0]
    result.graph.node[position].CopyFrom(onnx.helper.make_node("Identity", [source], [gone], name="bypass"))
    return result
