"""What is in a model, and what stands in its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from onnx2caffe import canon
from onnx2caffe.assembly import summary
from onnx2caffe.caffe.lower.lower import lower, obstacles
from onnx2caffe.canon import Note, Shape
from onnx2caffe.errors import Blocked, NotConvertible, UnreadableFile, Unsupported
from onnx2caffe.filekind import ONNX, need
from onnx2caffe.frontend import load
from onnx2caffe.partition.plan import Wishes, partitioned
from onnx2caffe.passes import pipeline
from onnx2caffe.stages import blamed
from onnx2caffe.targets import by_name
from onnx2caffe.targets.base import Target

__all__ = ["Declared", "Inspection", "inspect"]


@dataclass(frozen=True)
class Declared:
    """An input or output as the user's file declares it; free dimensions by their symbol, or "?"."""

    name: str
    dims: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class Inspection:
    """A model at a glance.

    `ops`: how often each op occurs in the file. `shapes`: of the user's tensors, as far as a conversion keeps them.
    `blocked`: the nodes that stop a conversion; `reason`: what stops it before its nodes are looked at. Where the
    target leaves nodes to the CPU, `summary` says what would run where, `illegal` names the nodes it cannot have.
    """

    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    opsets: Mapping[str, int]
    ops: Mapping[str, int]
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    summary: str = ""
    illegal: tuple[Blocked, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    reason: str = ""

    @property
    def convertible(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.blocked and not self.reason


def inspect(path: Path, target: str = "nnie", input_shapes: Mapping[str, Shape] | None = None) -> Inspection:
    """Look at a model and try to lower it, writing nothing.

    Raises:
        UnreadableFile: not an ONNX file.
        UsageError: no such target.

    """
    rules = by_name(target)
    seen = _declared(path)
    try:
        loaded = load(path, input_shapes=input_shapes or {})
        shapes = {t.name: t.shape for value in _values(loaded.model) for t in canon.tensors(value)}
        seen = replace(seen, shapes=shapes, notes=tuple(loaded.notes))
        with blamed(loaded):
            pipeline.run(loaded.model, pipeline.pipeline(rules.exit))
            return _partitioned(seen, loaded.model, rules) if rules.partition else _whole(seen, loaded.model, rules)
    except NotConvertible as problem:
        return replace(seen, blocked=problem.blocked)
    except Unsupported as problem:
        return replace(seen, reason="\n".join(filter(None, (problem.message, problem.hint))))


def _whole(seen: Inspection, model: ir.Model, target: Target) -> Inspection:
    lower(model, target)
    return seen


def _partitioned(seen: Inspection, model: ir.Model, target: Target) -> Inspection:
    illegal = tuple(obstacles(model, target).values())
    plan = partitioned(model, target, Wishes("auto", head=target.exit == "nnie"))
    return replace(seen, summary=summary(plan, target.name), illegal=illegal)


def _values(model: ir.Model) -> Iterator[ir.Value]:
    yield from model.graph.inputs
    for node in model.graph:
        yield from node.outputs


def _declared(path: Path) -> Inspection:
    need(path, ONNX)
    try:
        model = onnx.load(str(path), "protobuf", load_external_data=False)
    except (OSError, DecodeError) as problem:
        raise UnreadableFile(f"cannot read {path} as ONNX: {problem}") from problem
    constants = {tensor.name for tensor in model.graph.initializer}
    return Inspection(
        inputs=tuple(_declaration(v) for v in model.graph.input if v.name not in constants),
        outputs=tuple(_declaration(v) for v in model.graph.output),
        opsets={entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        ops=dict(Counter(node.op_type for node in model.graph.node).most_common()),
    )


def _declaration(value: onnx.ValueInfoProto) -> Declared:
    tensor = value.type.tensor_type
    dims = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim)
    kind = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)) if tensor.elem_type else "?"
    return Declared(value.name, dims, kind)
