"""From a file, or a ModelProto, to the canonical model."""

from __future__ import annotations

import hashlib
import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from onnx2caffe import canon
from onnx2caffe.canon import Note, Shape, UserTensor
from onnx2caffe.errors import UnreadableFile, Unsupported
from onnx2caffe.filekind import ONNX, need
from onnx2caffe.frontend import names
from onnx2caffe.frontend.builder import Builder, widened
from onnx2caffe.frontend.files import Payloads, map_file
from onnx2caffe.frontend.inputs import dims_of, fix_inputs
from onnx2caffe.frontend.structure import check_names, choose_outputs, computed, live, node_label, ordered
from onnx2caffe.frontend.walk import Scope, Walk
from onnx2caffe.frontend.wire import Damaged, without_payloads

__all__ = ["NEWEST_OPSET", "GivenNode", "Loaded", "TensorInfo", "from_proto", "load"]

NEWEST_OPSET = 28
"""The newest version of ai.onnx whose ops have been read (onnx 1.23)."""

_IR_VERSION = 10
"""Read by every onnxruntime that knows opset 23."""


@dataclass(frozen=True)
class TensorInfo:
    """One of the user's inputs or outputs: its fixed shape and its element type in the file (numpy's name)."""

    name: str
    shape: Shape
    dtype: str


@dataclass(frozen=True)
class GivenNode:
    """A node of the user's top-level graph as it stands in the file; absent inputs are ""."""

    name: str
    op: str
    inputs: tuple[str, ...]
    attributes: frozenset[str]


@dataclass(frozen=True)
class Loaded:
    """A canonical model and what is known about the user's file.

    `model`'s outputs hold the user's `outputs` one to one, in order (one value may stand for several: onnx-ir permits
    that), then those tensors of `kept` that are not among them. Its inputs are those of the user's `inputs` that the
    outputs depend on. `half`: a convolution or product is computed in 16 bits in the file. `given`: the file's
    own nodes of ai.onnx. `path` and `sha256` are None and "" for a model that came without a file.
    """

    model: ir.Model
    notes: list[Note]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    half: bool
    given: tuple[GivenNode, ...] = ()
    path: Path | None = None
    sha256: str = ""


def load(
    path: Path | str,
    *,
    input_shapes: Mapping[str, Shape] | None = None,
    outputs: Sequence[str] = (),
    kept: Sequence[str] = (),
) -> Loaded:
    """Read an ONNX file into canonical form.

    `input_shapes` fixes the shapes of inputs by name; `outputs` names tensors (or nodes) to end at instead of the
    graph's own outputs; `kept` names tensors (or nodes) that passes shall keep, where there are such. Weights stay in
    the memory-mapped file.

    Raises:
        UnreadableFile: no ONNX model, or a damaged one; external data missing, too short or outside the model's folder.
        UsageError: `input_shapes` or `outputs` do not fit the model.
        FreeDimension: an input dimension other than the batch is free.
        Unsupported: an opset beyond 28, or an input that is no tensor.

    """
    path = Path(path)
    data = _bytes(path)
    try:
        proto = onnx.ModelProto.FromString(without_payloads(data))
    except (Damaged, DecodeError) as error:
        raise UnreadableFile(f"{path} is no readable ONNX model: {error}") from error
    if not proto.HasField("graph") or not proto.opset_import:
        raise UnreadableFile(f"{path} is no ONNX model: it has no {'opset' if proto.HasField('graph') else 'graph'}")
    payloads = Payloads(path.parent, data)
    loaded = _loaded(proto, payloads, input_shapes or {}, outputs, kept)
    return replace(loaded, path=path, sha256=hashlib.sha256(data).hexdigest())


def from_proto(
    proto: onnx.ModelProto,
    *,
    base_dir: Path | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
    outputs: Sequence[str] = (),
) -> Loaded:
    """Like `load`, for a model in memory; its external data lies in `base_dir`."""
    return _loaded(proto, Payloads(base_dir), input_shapes or {}, outputs)


def _bytes(path: Path) -> bytes | mmap.mmap:
    try:
        need(path, ONNX)
        if path.exists() and not path.is_file():
            raise UnreadableFile(f"{path} is no regular file")
        data = map_file(path)
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not len(data):
        raise UnreadableFile(f"{path} is empty")
    return data


def _loaded(
    proto: onnx.ModelProto,
    payloads: Payloads,
    input_shapes: Mapping[str, Shape],
    asked: Sequence[str],
    kept: Sequence[str] = (),
) -> Loaded:
    graph = proto.graph
    check_names((node for function in proto.functions for node in function.node), [graph])
    opsets = _opsets(proto)
    nodes = ordered(graph)
    outputs = choose_outputs(graph, asked)
    every = [*outputs, *(name for name in computed(nodes, kept) if name not in outputs)]
    nodes, needed = live(nodes, every)
    sparse = [t.values.name for t in graph.sparse_initializer if t.values.name in needed]
    if sparse:
        raise Unsupported(f"the initializer {sparse[0]!r} is sparse", "store it as a dense tensor")
    constants = {t.name for t in graph.initializer}
    user_inputs = [i for i in graph.input if i.name not in constants]
    fixed, notes = fix_inputs(user_inputs, input_shapes, needed)

    unique = names.Names(_user_names(graph))
    builder = Builder(unique)
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    walk = Walk(builder, unique, payloads, functions)
    scope = Scope(opsets, initializers={t.name: t for t in graph.initializer})
    scope.shapes = {v.name: v.type for v in (*graph.value_info, *graph.output)}
    values = {name: _input(name, dtype, shape) for name, (dtype, shape) in fixed.items()}
    scope.values.update(values)
    scope.types.update({name: dtype for name, (dtype, _) in fixed.items() if widened(dtype) != dtype})
    walk.nodes(nodes, scope)

    results = [_output(walk, name, scope) for name in every]
    model = _model(graph.name, [values[i.name] for i in user_inputs if i.name in needed], results, builder.nodes)
    for kind in sorted({dtype.numpy().name for dtype in scope.types.values()}):
        notes.append(Note("note", f"{kind} tensors are read as float32"))
    infos = tuple(_info(walk, scope, name, value) for name, value in zip(outputs, results, strict=False))
    notes.extend(_declared_otherwise(graph, infos))
    return Loaded(
        model,
        notes,
        tuple(TensorInfo(i.name, fixed[i.name][1], fixed[i.name][0].numpy().name) for i in user_inputs),
        infos,
        walk.half,
        tuple(_given(node) for node in graph.node if node.domain in ("", "ai.onnx")),
    )


def _given(node: onnx.NodeProto) -> GivenNode:
    return GivenNode(node_label(node), node.op_type, tuple(node.input), frozenset(a.name for a in node.attribute))


def _opsets(proto: onnx.ModelProto) -> dict[str, int]:
    found = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}
    version = found.get("", NEWEST_OPSET)
    if version < 1:
        raise Unsupported(f"the model uses opset {version} of ai.onnx; there is none before 1")
    if version > NEWEST_OPSET:
        raise Unsupported(
            f"the model uses opset {version} of ai.onnx; {NEWEST_OPSET} is the newest tested here",
            f"export it with opset {NEWEST_OPSET} or older, or update onnx2caffe",
        )
    return found


def _user_names(graph: onnx.GraphProto) -> set[str]:
    found = {v.name for v in (*graph.input, *graph.output, *graph.initializer)}
    for node in graph.node:
        found.update(node.output)
    return found


def _input(name: str, dtype: ir.DataType, shape: Shape) -> ir.Value:
    value = ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(widened(dtype)))
    names.add_tensors(value, [UserTensor(name, shape)])
    return value


def _output(walk: Walk, name: str, scope: Scope) -> ir.Value:
    value = walk.lookup(name, scope)
    if not isinstance(value, ir.Value):
        raise Unsupported(f"output {name!r} is a sequence or an optional, not a tensor")
    return value


def _info(walk: Walk, scope: Scope, name: str, value: ir.Value) -> TensorInfo:
    dtype = walk.type_of(name, scope) or value.dtype or ir.DataType.FLOAT
    shape = tuple(d if isinstance(d, int) else -1 for d in value.shape) if value.shape is not None else ()
    return TensorInfo(name, shape, dtype.numpy().name)


def _declared_otherwise(graph: onnx.GraphProto, outputs: Sequence[TensorInfo]) -> Iterator[Note]:
    """A note for each output that the file declares in another shape than it computes it in."""
    declared = {value.name: value for value in graph.output if value.type.HasField("tensor_type")}
    makers = {name: node_label(node) for node in graph.node for name in node.output}
    for info in outputs:
        dims = dims_of(declared[info.name]) if info.name in declared else None
        if dims is not None and not _fits(dims, info.shape):
            text = f"output {info.name!r} is declared [{', '.join(map(str, dims))}], but computed {list(info.shape)}"
            yield Note("note", text, (makers[info.name],) if info.name in makers else ())


def _fits(declared: Sequence[int | str], shape: Shape) -> bool:
    """Whether a shape (-1: data decides) is one that is declared."""
    pairs = zip(declared, shape, strict=False)
    return len(declared) == len(shape) and all(d == s or isinstance(d, str) or s == -1 for d, s in pairs)


def _model(name: str, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], built: Sequence[ir.Node]) -> ir.Model:
    nodes = _needed(built, outputs)
    inputs = [v for v in inputs if math.prod(canon.shape(v)) or v.uses() or v in outputs]
    constants: dict[str, ir.Value] = {}
    for value in (*(v for node in nodes for v in node.inputs), *outputs):
        if value is not None and value.const_value is not None and value.producer() is None:
            constants.setdefault(value.name or "", value)
    opsets = {"": canon.OPSET} | {node.domain: 1 for node in nodes if node.domain}
    graph = ir.Graph(
        inputs, outputs, nodes=nodes, initializers=list(constants.values()), opset_imports=opsets, name=name or "graph"
    )
    return ir.Model(graph, ir_version=_IR_VERSION, producer_name="onnx2caffe")


def _needed(built: Sequence[ir.Node], outputs: Sequence[ir.Value]) -> list[ir.Node]:
    """The nodes that `outputs` depend on; the others let go of their inputs."""
    wanted = {value.producer() for value in outputs}
    kept: list[ir.Node] = []
    for node in reversed(built):
        if node in wanted:
            kept.append(node)
            wanted.update(value.producer() for value in _read(node))
        else:
            names.detach(node)
    return kept[::-1]


def _read(node: ir.Node) -> list[ir.Value]:
    """The values a node reads, those of its subgraphs too."""
    found = [value for value in node.inputs if value is not None]
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph().all_nodes():
                found.extend(value for value in inner.inputs if value is not None)
    return found
