"""One forward walk over the user's nodes that builds the canonical model.

Each node is read by the upgrade registered for its op and version; shapes are inferred and constants folded as nodes
are built, so every upgrade sees static shapes. Functions, `If`s, loops and sequences disappear here: the walk goes into
them, turn by turn, and where a condition depends on data, into both branches, of which `Where` chooses. A node without
canonical form is kept as it is, *opaque*, with the reason.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import onnx
import onnx_ir as ir
from onnx import AttributeProto

from onnx2caffe import canon
from onnx2caffe.canon import UserTensor
from onnx2caffe.errors import UnreadableFile
from onnx2caffe.frontend import names
from onnx2caffe.frontend.builder import Builder, Opaque, Unsized, infer, widened
from onnx2caffe.frontend.files import Payloads
from onnx2caffe.frontend.reader import Entry, Reader
from onnx2caffe.frontend.structure import live, node_label
from onnx2caffe.frontend.unroll import UNROLLED, Body
from onnx2caffe.frontend.upgrade import INLINED, REASONS, UPGRADES
from onnx2caffe.frontend.upgrade.registry import Upgrade

__all__ = ["Scope", "Walk"]

_OLDEST = 6
"""Of opsets before it only the ops are read that this one still has."""

_DEPTH = 64
"""Functions nested deeper than this call each other."""

_UNROLLED = 1 << 15
"""Nodes in the bodies of loops and branches, counted at each turn: nested ones multiply."""

_NARROW = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE}
_ANY_ENTRY = {
    "Identity", "Loop", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceConstruct", "SequenceInsert",
}  # fmt: skip
"""Ops that hand on what they are given, whatever it is."""
_UNSIZED = {"NonMaxSuppression", "NonZero", "Unique"}
"""Ops of which every version that is read means what that of `canon.OPSET` means, but for defaults."""
_PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}

FunctionKey = tuple[str, str, str]


@dataclass
class Scope:
    """The names visible in a graph or function body.

    `source`: the user's node this body was inlined for; None for the user's own top-level graph.
    """

    opsets: Mapping[str, int]
    values: dict[str, Entry | None] = field(default_factory=dict)
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict)
    types: dict[str, ir.DataType] = field(default_factory=dict)
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    shapes: dict[str, onnx.TypeProto] = field(default_factory=dict)
    parent: Scope | None = None
    source: str | None = None
    label: str = ""
    depth: int = 0

    def within(self, caller: Scope, source: str, label: str) -> Scope:
        """This scope, as the body of the node `source` in `caller`; its values are named after `label`.

        Raises:
            UnreadableFile: functions call each other without end.

        """
        if caller.depth >= _DEPTH:
            raise UnreadableFile(f"{source!r} holds functions nested more than {_DEPTH} deep")
        self.source, self.label, self.depth = source, label, caller.depth + 1
        return self


class Walk:
    """Builds canonical nodes for the nodes of one model.

    `types` of a scope remember which of the user's tensors are float16, bfloat16 or float64 in the file; `half` tells
    whether a product is computed in 16 bits.
    """

    def __init__(
        self,
        builder: Builder,
        unique: names.Names,
        payloads: Payloads,
        functions: Mapping[FunctionKey, onnx.FunctionProto],
    ) -> None:
        self.half = False
        self._builder = builder
        self._unique = unique
        self._payloads = payloads
        self._functions = functions
        self._node_names = names.Names()
        self._unrolled = 0

    def lookup(self, name: str, scope: Scope) -> Entry | None:
        """What `name` stands for.

        Raises:
            UnreadableFile: nothing defines it, or its data is not what it claims.

        """
        at: Scope | None = scope
        while at is not None:
            if name in at.values:
                return at.values[name]
            if name in at.initializers:
                at.values[name] = self._initializer(at.initializers.pop(name), at)
                return at.values[name]
            at = at.parent
        raise UnreadableFile(f"the tensor {name!r} is read, but nothing computes it before")

    def type_of(self, name: str, scope: Scope) -> ir.DataType | None:
        """The narrow or double float type a name has in the user's file; None for all other types."""
        at: Scope | None = scope
        while at is not None:
            if name in at.values or name in at.initializers:
                return at.types.get(name)
            at = at.parent
        return None

    def nodes(self, protos: Sequence[onnx.NodeProto], scope: Scope) -> None:
        """Walk nodes in order and bind their outputs in `scope`."""
        for proto in protos:
            self._node(proto, scope)

    def _initializer(self, proto: onnx.TensorProto, scope: Scope) -> ir.Value:
        array = self._payloads.array(proto)
        dtype = ir.DataType(proto.data_type)
        if dtype in _NARROW:
            scope.types[proto.name] = dtype
        top = scope.source is None
        self._builder.at(proto.name if top else scope.label, ())
        value = self._builder.const(array, "value" if top else proto.name, dtype)
        if top:
            value.name = proto.name
            names.add_tensors(value, [UserTensor(proto.name, tuple(proto.dims))])
        return value

    def _node(self, proto: onnx.NodeProto, scope: Scope) -> None:
        label = scope.source or node_label(proto)
        origin = scope.label or next((name for name in proto.output if name), label)
        start = len(self._builder.nodes)
        inputs = [self.lookup(name, scope) if name else None for name in proto.input]
        self._builder.at(origin, (label,))
        try:
            results = self._results(proto, scope, inputs, label, origin)
        except Opaque as why:
            for node in self._builder.nodes[start:]:
                names.detach(node)
            del self._builder.nodes[start:]
            self._builder.at(origin, (label,))
            results = self._opaque(proto, scope, inputs, why)
        self._track_types(proto, scope)
        self._bind(proto, scope, results)
        self._name_nodes(proto, scope, start)

    def _results(
        self, proto: onnx.NodeProto, scope: Scope, inputs: Sequence[Entry | None], label: str, origin: str
    ) -> Sequence[Entry | None]:
        domain = _domain(proto)
        attributes = self._attributes(proto, scope)
        function = self._functions.get((domain, proto.op_type, proto.overload))
        if function is not None:
            known = {a.name: a for a in function.attribute_proto} | attributes
            body = Scope(_opsets(function.opset_import), attributes=known)
            return self._call(function, body.within(scope, label, origin), inputs, [bool(n) for n in proto.output])
        if domain == "" and proto.op_type == "If":
            return self._if(proto, scope, inputs, label, origin)
        version = _version(proto, domain, scope.opsets)
        upgrade: Upgrade | None = UPGRADES.get((domain, proto.op_type, version))
        if domain == "" and proto.op_type in UNROLLED:
            upgrade = partial(UNROLLED[proto.op_type], body=self._body("body", proto, scope, label, origin))
            attributes.pop("body")
        if upgrade is None:
            raise Opaque(_unknown(domain, proto.op_type, version, scope.opsets))
        if domain == "" and upgrade is INLINED:
            function, body = _schema_function(proto, version, attributes, inputs)
            return self._call(function, body.within(scope, label, origin), inputs, [bool(n) for n in proto.output])
        if proto.op_type not in _ANY_ENTRY:
            _need_static(inputs)
        reader = Reader(proto, version, inputs, attributes, self._payloads)
        try:
            results = upgrade(reader, self._builder)
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # values the op's schema does not rule out
            raise Opaque(f"its inputs or attributes do not fit {proto.op_type}-{version}: {error}") from error
        reader.finish()
        return [results] if isinstance(results, ir.Value) else list(results)

    def _attributes(self, proto: onnx.NodeProto, scope: Scope) -> dict[str, AttributeProto]:
        found: dict[str, AttributeProto] = {}
        for attribute in proto.attribute:
            if not attribute.ref_attr_name:
                found[attribute.name] = attribute
            elif attribute.ref_attr_name in scope.attributes:
                found[attribute.name] = _renamed(scope.attributes[attribute.ref_attr_name], attribute.name)
        return found

    def _call(
        self, function: onnx.FunctionProto, body: Scope, inputs: Sequence[Entry | None], wanted: Sequence[bool]
    ) -> list[Entry | None]:
        absent = [None] * (len(function.input) - len(inputs))
        body.values.update(zip(function.input, [*inputs, *absent], strict=False))
        kept, _ = live(function.node, [name for name, want in zip(function.output, wanted, strict=False) if want])
        self.nodes(kept, body)
        return [self.lookup(n, body) if want else None for n, want in zip(function.output, wanted, strict=False)]

    def _if(
        self, proto: onnx.NodeProto, scope: Scope, inputs: Sequence[Entry | None], label: str, origin: str
    ) -> list[Entry | None]:
        condition = inputs[0] if inputs else None
        if not isinstance(condition, ir.Value) or not _static(condition) or math.prod(canon.shape(condition)) != 1:
            raise Opaque("its condition is no single value")
        array = canon.const(condition)
        if array is not None:
            taken = "then_branch" if array.reshape(()) else "else_branch"
            return self._body(taken, proto, scope, label, origin)([])
        start = len(self._builder.nodes)
        both = ("then_branch", "else_branch")
        branches = [self._body(name, proto, scope, label, origin)([]) for name in both]
        if not all(map(_alike, *branches)) or any(map(canon.is_opaque, self._builder.nodes[start:])):
            raise Opaque("its condition depends on data")
        scalar = self._builder.reshape(condition, ())
        return [self._builder.op("Where", scalar, *map(self._as_value, pair)) for pair in zip(*branches, strict=True)]

    def _body(self, name: str, proto: onnx.NodeProto, scope: Scope, label: str, origin: str) -> Body:
        """What walks into the graph in an attribute of a node."""
        graph = next((a.g for a in proto.attribute if a.name == name), None)
        if graph is None:
            raise Opaque(f"it has no {name}")

        def walked(inputs: Sequence[Entry | None]) -> list[Entry | None]:
            self._unrolled += 1 + len(graph.node)
            if self._unrolled > _UNROLLED:
                raise Opaque(f"loops and branches of more than {_UNROLLED} nodes in all")
            inner = Scope(
                scope.opsets,
                values=dict(zip((value.name for value in graph.input), inputs, strict=True)),
                initializers={t.name: t for t in graph.initializer},
                attributes=scope.attributes,
                parent=scope,
            )
            self.nodes(graph.node, inner.within(scope, label, origin))
            return [self.lookup(output.name, inner) for output in graph.output]

        return walked

    def _opaque(
        self, proto: onnx.NodeProto, scope: Scope, inputs: Sequence[Entry | None], why: Opaque
    ) -> list[Entry | None]:
        given = self._attributes(proto, scope).values()
        attributes = _deserialised(given)
        for attribute in attributes:
            for graph in _subgraphs(attribute):
                self._link(graph, scope)
        values = [self._as_value(entry) for entry in inputs]
        node = ir.Node(_domain(proto), proto.op_type, values, attributes, num_outputs=len(proto.output))
        node.meta["opaque"] = why.reason
        node.meta["unsized"] = unsized = isinstance(why, Unsized) and not node.domain and node.op_type in _UNSIZED
        version = canon.OPSET if unsized else scope.opsets.get("", canon.OPSET)
        for value, name, inferred in zip(
            node.outputs, proto.output, _guess(proto, given, version, values), strict=True
        ):
            value.name = self._unique.new(name or "unused", "opaque") if name else ""
            self._declare(value, inferred if inferred.HasField("tensor_type") else scope.shapes.get(name))
        self._builder.keep(node)
        return list(node.outputs)

    @staticmethod
    def _declare(value: ir.Value, proto: onnx.TypeProto | None) -> None:
        if proto is None or not proto.HasField("tensor_type"):
            return
        tensor = proto.tensor_type
        if tensor.elem_type in onnx.TensorProto.DataType.values() and tensor.elem_type:
            value.type = ir.TensorType(widened(ir.DataType(tensor.elem_type)))
        if tensor.HasField("shape"):
            value.shape = ir.Shape([d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim])

    def _as_value(self, entry: Entry | None) -> ir.Value | None:
        if not isinstance(entry, tuple):
            return entry
        node = ir.Node("", "SequenceConstruct", entry, num_outputs=1)
        node.meta["opaque"] = "a sequence"
        node.outputs[0].name = self._unique.new(str(entry[0].name) if entry else "empty", "sequence")
        self._builder.keep(node)
        return node.outputs[0]

    def _link(self, graph: ir.Graph, scope: Scope) -> None:
        """Let a kept subgraph read the canonical values of the outer names it captures."""
        own = {*graph.inputs, *graph.initializers.values()}
        for node in graph:
            for index, value in enumerate(node.inputs):
                if value is not None and value.producer() is None and value not in own and value.name:
                    node.replace_input_with(index, self._as_value(self.lookup(value.name, scope)))
            for attribute in node.attributes.values():
                for inner in _subgraphs(attribute):
                    self._link(inner, scope)

    def _track_types(self, proto: onnx.NodeProto, scope: Scope) -> None:
        kinds = [self.type_of(name, scope) for name in proto.input if name]
        kind = next((k for k in kinds if k is not None), None)
        if proto.op_type == "Cast" and _domain(proto) == "":
            to = next((ir.DataType(a.i) for a in proto.attribute if a.name == "to"), None)
            kind = to if to in _NARROW else None
        elif proto.op_type == "Constant" and proto.attribute and proto.attribute[0].type == AttributeProto.TENSOR:
            to = ir.DataType(proto.attribute[0].t.data_type)
            kind = to if to in _NARROW else None
        if kind is None:
            return
        if proto.op_type in _PRODUCTS and kind != ir.DataType.DOUBLE:
            self.half = True
        scope.types.update(dict.fromkeys(filter(None, proto.output), kind))

    def _bind(self, proto: onnx.NodeProto, scope: Scope, results: Sequence[Entry | None]) -> None:
        for name, entry in zip(proto.output, results, strict=False):
            if not name:
                if isinstance(entry, ir.Value) and entry.producer() is not None and not canon.tensors(entry):
                    entry.name = ""
                continue
            if entry is None:
                raise UnreadableFile(f"{proto.op_type} {node_label(proto)!r} has no output {name!r}")
            scope.values[name] = entry
            if scope.source is None and isinstance(entry, ir.Value):
                self._name_value(entry, name)

    @staticmethod
    def _name_value(value: ir.Value, name: str) -> None:
        if not canon.tensors(value):
            value.name = name
        if _static(value):
            names.add_tensors(value, [UserTensor(name, canon.shape(value))])

    def _name_nodes(self, proto: onnx.NodeProto, scope: Scope, start: int) -> None:
        """The node of the user's own op type, else the last one made, takes the user's name; others `<name>__<op>`."""
        made = [node for node in self._builder.nodes[start:] if not node.name]
        if not made:
            return
        label = node_label(proto) if scope.source is None else f"{scope.source}__{node_label(proto)}"
        main = next((node for node in made if node.op_type == proto.op_type), made[-1])
        main.name = self._node_names.unique(label)
        for node in made:
            if node is not main:
                node.name = self._node_names.unique(f"{label}__{node.op_type.lower()}")


def _domain(proto: onnx.NodeProto) -> str:
    return "" if proto.domain == "ai.onnx" else proto.domain


def _opsets(imports: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}


def _version(proto: onnx.NodeProto, domain: str, opsets: Mapping[str, int]) -> int:
    if domain:
        return 1
    opset = opsets.get("", canon.OPSET)
    schema = _schema(proto.op_type, opset)
    if schema is None:
        raise Opaque(f"ai.onnx {opset} has no op {proto.op_type}")
    if schema.deprecated and (domain, proto.op_type, schema.since_version) not in UPGRADES:
        raise Opaque(f"{proto.op_type} is deprecated in ai.onnx {opset}")
    if not schema.min_input <= len(proto.input) <= schema.max_input or len(proto.output) > schema.max_output:
        raise Opaque(f"{len(proto.input)} inputs and {len(proto.output)} outputs do not fit {proto.op_type}")
    return int(schema.since_version)


@cache
def _schema(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None


def _unknown(domain: str, op_type: str, version: int, opsets: Mapping[str, int]) -> str:
    if domain:
        return (
            f"the domain {domain!r} is unknown here"
            if domain not in {d for d, _, _ in UPGRADES}
            else (f"{domain}.{op_type} is unknown here")
        )
    if any(op == op_type and d == "" for d, op, _ in UPGRADES):
        opset = opsets.get("", canon.OPSET)
        help_ = "; onnx.version_converter may bring the model to a newer one" if opset < _OLDEST else ""
        return f"version {version} of {op_type} (ai.onnx {opset}) has not been read{help_}"
    return REASONS.get(op_type, f"{op_type} has no canonical form")


def _deserialised(attributes: Iterable[AttributeProto]) -> list[ir.Attr]:
    logger = logging.getLogger("onnx_ir")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it warns of a subgraph's outer names, which are linked afterwards
    try:
        return [ir.serde.deserialize_attribute(attribute) for attribute in attributes]
    except ir.serde.SerdeError as error:
        raise UnreadableFile(f"an attribute cannot be read: {' '.join(str(error).split())}") from error
    finally:
        logger.setLevel(level)


def _need_static(inputs: Sequence[Entry | None]) -> None:
    for entry in inputs:
        for value in entry if isinstance(entry, tuple) else (entry,):
            if value is not None and not _static(value):
                raise Opaque(f"its input {value.name!r} has no static shape")


def _alike(a: Entry | None, b: Entry | None) -> bool:
    """Whether both are tensors of one type."""
    if not isinstance(a, ir.Value) or not isinstance(b, ir.Value) or not _static(a) or not _static(b):
        return False
    return canon.dtype(a) == canon.dtype(b) and canon.shape(a) == canon.shape(b)


def _static(value: ir.Value) -> bool:
    return value.dtype is not None and value.shape is not None and all(isinstance(d, int) for d in value.shape)


def _renamed(attribute: AttributeProto, name: str) -> AttributeProto:
    if attribute.name == name:
        return attribute
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.name = name
    return copy


def _guess(
    proto: onnx.NodeProto, attributes: Collection[AttributeProto], version: int, values: Sequence[ir.Value | None]
) -> list[onnx.TypeProto]:
    unknown = [onnx.TypeProto()] * len(proto.output)
    if _domain(proto) or any(a.HasField("g") or a.graphs for a in attributes):
        return unknown
    try:
        return infer(proto.op_type, values, len(proto.output), attributes, version)
    except Opaque:
        return unknown


def _schema_function(
    proto: onnx.NodeProto, version: int, attributes: Mapping[str, AttributeProto], inputs: Sequence[Entry | None]
) -> tuple[onnx.FunctionProto, Scope]:
    """The function body in ONNX's own schema of an op, and the scope it runs in."""
    schema = onnx.defs.get_schema(proto.op_type, version, "")
    function = onnx.FunctionProto()
    if schema.has_function:  # type: ignore[attr-defined]  # missing in onnx's stubs
        function.CopyFrom(schema.function_body)
    else:
        node = onnx.NodeProto()
        node.CopyFrom(proto)
        del node.attribute[:]
        node.attribute.extend(attributes.values())
        types = [_serialised_type(entry) for entry in inputs]
        body = schema.get_context_dependent_function(  # type: ignore[attr-defined]  # missing in onnx's stubs
            node.SerializeToString(), types
        )
        function.ParseFromString(body)
    defaults = {
        name: a.default_value
        for name, a in schema.attributes.items()
        if a.default_value.type != AttributeProto.UNDEFINED
    }
    return function, Scope(_opsets(function.opset_import) or {"": version}, attributes={**defaults, **attributes})


def _serialised_type(entry: Entry | None) -> bytes:
    if not isinstance(entry, ir.Value):
        return b""
    return bytes(onnx.helper.make_tensor_type_proto(canon.dtype(entry), canon.shape(entry)).SerializeToString())


def _subgraphs(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []
