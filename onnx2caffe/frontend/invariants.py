"""Check that a model is canonical: after loading and after every pass, in tests and with --debug."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.errors import Onnx2CaffeError

__all__ = ["GONE", "NotCanonical", "check", "violations"]

GONE = {
    "CastLike", "CenterCropPad", "Compress", "Constant", "Dropout", "EyeLike", "Flatten", "GlobalLpPool", "Identity",
    "Shape", "Size", "Squeeze", "Unsqueeze", "Upsample",
}  # fmt: skip
_WIDE = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE}
_CONSTANT_INPUTS = {
    "Reshape": (1,), "Slice": (1, 2, 3, 4), "Split": (1,), "Pad": (1,), "Tile": (1,), "Expand": (1,), "Clip": (1, 2),
    "Resize": (1, 2, 3), "TopK": (1,), "CumSum": (1,), "OneHot": (1,), "Trilu": (1,),
    **{f"Reduce{kind}": (1,) for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum",
                                          "SumSquare")},
}  # fmt: skip


class NotCanonical(Onnx2CaffeError):
    """A pass or the frontend made a model that is not canonical: a fault of this program (`violations` lists all)."""

    def __init__(self, violations: list[str]) -> None:
        self.violations = tuple(violations)
        super().__init__("\n".join(["the model is not canonical:", *(f"  {v}" for v in violations)]))


def check(model: ir.Model) -> None:
    """Check all properties of the canonical model.

    Raises:
        NotCanonical: with every violation found.

    """
    found = list(violations(model))
    if found:
        raise NotCanonical(found)


def violations(model: ir.Model) -> Iterator[str]:
    """Each way in which `model` is not canonical, in words."""
    graph = model.graph
    if graph.opset_imports.get("") != canon.OPSET:
        yield f"opset {graph.opset_imports.get('')}, not {canon.OPSET}"
    if model.functions:
        yield "it has functions"
    yield from _graph(graph)
    for node in graph:
        for problem in _opaque(node) if canon.is_opaque(node) else _node(node):
            yield f"{node.op_type} {node.name!r}: {problem}"


def _graph(graph: ir.Graph) -> Iterator[str]:
    known: set[ir.Value] = {*graph.inputs, *graph.initializers.values()}
    seen_nodes: set[str | None] = set()
    seen_values: set[str | None] = {v.name for v in known}
    read = set(graph.outputs)
    for node in graph:
        if node.name in seen_nodes or not node.name:
            yield f"node name {node.name!r} is empty or there twice"
        seen_nodes.add(node.name)
        for value in node.inputs:
            if value is not None and value not in known:
                yield f"{node.name!r} reads {value.name!r} before it is computed"
            if value is not None:
                read.add(value)
        for value in node.outputs:
            known.add(value)
            if value.name and value.name in seen_values:
                yield f"value name {value.name!r} is there twice"
            seen_values.add(value.name)
    for node in graph:
        if not any(value in read or value.uses() for value in node.outputs):
            yield f"{node.op_type} {node.name!r} is dead"
    for value in graph.initializers.values():
        if value.const_value is None:
            yield f"initializer {value.name!r} has no data"
        elif value not in read and not value.uses():
            yield f"initializer {value.name!r} is dead"
    for value in graph.outputs:
        if value not in known:
            yield f"output {value.name!r} is not computed"
    yield from _user_tensors(known)


def _user_tensors(values: set[ir.Value]) -> Iterator[str]:
    owner: dict[str, ir.Value] = {}
    for value in values:
        for tensor in canon.tensors(value):
            if tensor.name in owner and owner[tensor.name] is not value:
                yield f"user tensor {tensor.name!r} is in two values"
            owner[tensor.name] = value
    for value in values:
        if value.name in owner and owner[value.name] is not value:
            yield f"value {value.name!r} has the name of a user tensor that another value holds"


def _opaque(node: ir.Node) -> Iterator[str]:
    if not isinstance(node.meta["opaque"], str) or not node.meta["opaque"]:
        yield "it is opaque without a reason"


def _node(node: ir.Node) -> Iterator[str]:
    if node.domain:
        yield f"domain {node.domain!r}"
        return
    if node.op_type in GONE:
        yield "the canonical model has no such op"
    yield from _attributes(node)
    for value in (*node.inputs, *(v for v in node.outputs if v.name)):
        if value is None:
            continue
        if value.shape is None or value.dtype is None or not all(isinstance(d, int) for d in value.shape):
            yield f"{value.name!r} has no static type: {value.dtype} {value.shape}"
        elif value.dtype in _WIDE:
            yield f"{value.name!r} is {value.dtype.name}"
    for index in _CONSTANT_INPUTS.get(node.op_type, ()):
        value = node.inputs[index] if index < len(node.inputs) else None
        if value is not None and canon.const(value) is None:
            yield f"input {index} ({value.name!r}) is not constant"
    yield from _special(node)


def _attributes(node: ir.Node) -> Iterator[str]:
    try:
        schema = onnx.defs.get_schema(node.op_type, canon.OPSET, "")
    except onnx.defs.SchemaError:
        yield f"no op of opset {canon.OPSET}"
        return
    for name in node.attributes:
        if name not in schema.attributes:
            yield f"attribute {name} does not exist"
    axis = canon.attribute(node, "axis")
    if isinstance(axis, int) and axis < 0:
        yield f"axis {axis} is negative"


def _special(node: ir.Node) -> Iterator[str]:
    if node.op_type == "Reshape":
        target = canon.const(node.inputs[1])
        if target is not None and tuple(target.tolist()) != canon.shape(node.outputs[0]):
            yield f"target {target.tolist()} is not the output's shape {canon.shape(node.outputs[0])}"
    if canon.attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        yield "auto_pad is not resolved"
    if node.op_type in {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"}:
        for name in ("kernel_shape", "strides", "pads", "dilations"):
            if name not in node.attributes:
                yield f"{name} is not written out"
    if node.op_type == "Resize":
        scales, sizes = (node.inputs[i] if i < len(node.inputs) else None for i in (2, 3))
        arrays = [canon.const(v) for v in (scales, sizes) if v is not None]
        given = [a.size for a in arrays if a is not None]
        if given != [len(canon.shape(node.outputs[0]))]:
            yield "it needs one of scales or sizes, for all axes"
    if node.op_type == "Pad":
        pads = canon.const(node.inputs[1])
        if pads is not None and pads.size != 2 * len(canon.shape(node.outputs[0])):
            yield "pads are not given for all axes"
