"""Canonical model → program of a dialect: every node through its emitter, all that cannot be gathered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.errors import Blocked, NotConvertible
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.families import load_families
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.program import ELEMENTS, Input, Program, Type
from onnx2caffe.tvm.registry import emitter
from onnx2caffe.tvm.relax.net import RelaxNet
from onnx2caffe.tvm.relay.net import RelayNet
from onnx2caffe.tvm.relay.plain import PlainNet

__all__ = ["Emitted", "emit"]

_NETS: dict[str, type[Net]] = {"relay": RelayNet, "relax": RelaxNet}
_HINT = "--output TENSOR ends the model in front of them"


@dataclass
class Emitted:
    """A program, the value in it of every canonical value, and the calls [first, stop) made for each node."""

    program: Program
    values: dict[ir.Value, Value] = field(default_factory=dict)
    calls: dict[ir.Node, tuple[int, int]] = field(default_factory=dict)

    def maker(self, value: ir.Value) -> str:
        """The TVM operators that compute a value, in order."""
        node = value.producer()
        if node is None or node not in self.calls:
            return "input"
        return " · ".join(call.fn for call in self.program.calls[slice(*self.calls[node])]) or node.op_type


def emit(model: ir.Model, dialect: str, *, plain_c: bool = False) -> Emitted:
    """The program of a canonical model; `plain_c`: one whose C, which Relay has, needs no runtime.

    Raises:
        NotConvertible: names every node that has no emitter, or that its emitter refuses.

    """
    load_families()
    emitting = _visited(model, dialect, PlainNet() if plain_c else _NETS[dialect]())
    if emitting.blocked:
        raise NotConvertible(emitting.blocked, _hint(model, dialect, plain_c))
    return emitting.finished(model.graph.outputs)


def _visited(model: ir.Model, dialect: str, net: Net) -> _Emitting:
    emitting = _Emitting(dialect, net)
    for value in model.graph.inputs:
        emitting.input(value)
    for node in model.graph:
        emitting.visit(node)
    return emitting


def _hint(model: ir.Model, dialect: str, plain_c: bool) -> str:
    """The ways round what is blocked: a library instead of C, and another dialect, only where they have all of it."""
    ways = {"--target with a machine instead of c": dialect} if plain_c else {}
    ways |= {f"--dialect {other}": other for other in _NETS if other != dialect and not plain_c}
    having = [way for way, other in ways.items() if not _visited(model, other, _NETS[other]()).blocked]
    return "; ".join([_HINT, *(f"{way} has them" for way in having)])


class _Emitting:
    def __init__(self, dialect: str, net: Net) -> None:
        self._dialect, self._net = dialect, net
        self._emitted = Emitted(self._net.program)
        self.blocked: list[Blocked] = []

    def input(self, value: ir.Value) -> None:
        if reason := _strange(value, self._net.castable):
            self.blocked.append(Blocked(value.name or "", "graph input", (reason,)))
            return
        name = self._net.identifier(value.name or "input")
        program = self._net.program
        program.inputs.append(Input(name, Type(canon.dtype(value).numpy().name, canon.shape(value))))
        reference = {"input": len(program.inputs) - 1}
        self._emitted.values[value] = Value(reference, program.inputs[-1].type)

    def visit(self, node: ir.Node) -> None:
        """Emit a node; what reads a blocked one is not visited, its types may be unknown."""
        known = self._emitted.values
        if any(v is not None and v.const_value is None and v not in known for v in node.inputs):
            return
        function = emitter(self._dialect, node.op_type)
        taken = canon.is_unsized(node) and function and self._net.takes_unsized
        if reason := _inner(node) if taken else node.meta.get("opaque", ""):
            self._block(node, reason)
            return
        read = self._net.castable if node.op_type == "Cast" else ELEMENTS
        reasons = [_strange(v, read) for v in node.inputs if v in known] + [_strange(v, ELEMENTS) for v in node.outputs]
        if reason := next(filter(None, reasons), ""):
            self._block(node, reason)
            return
        if function is None:
            self._block(node, f"there is no emitter for {node.op_type} in {self._dialect}")
            return
        self._net.node = canon.label(node)
        start = len(self._net.program.calls)
        op = Op(node, self._net, known)
        try:
            result = function(op, self._net)
        except Refused as problem:
            self._block(node, str(problem))
            return
        self._bind(op, [result] if isinstance(result, Value) else list(result))
        self._emitted.calls[node] = (start, len(self._net.program.calls))

    def _bind(self, op: Op, results: Sequence[Value | None]) -> None:
        for index, (value, result) in enumerate(zip(op.node.outputs, results, strict=True)):
            if result is None:  # nobody reads it
                continue
            if value.name and not _fits(result.type, op.types[index]):
                raise TypeError(f"the emitter of {op.type} gives {result.type}, ONNX has {op.types[index]}")
            self._emitted.values[value] = result

    def _block(self, node: ir.Node, reason: str) -> None:
        self.blocked.append(Blocked(canon.label(node), node.op_type, (reason,)))

    def finished(self, outputs: Sequence[ir.Value]) -> Emitted:
        for value in outputs:
            if value not in self._emitted.values:
                array = canon.const(value)
                assert array is not None, f"{value.name!r} was not emitted"
                self._emitted.values[value] = self._net.const(array, value.name or "")
            self._net.program.outputs.append(self._emitted.values[value].reference)
        self._emitted.program = self._net.program.without_unread()
        return self._emitted


def _fits(found: Type, wanted: Type) -> bool:
    """Whether a type is the wanted one; it may know sizes that ONNX leaves to data."""
    if (found.dtype, len(found.shape)) != (wanted.dtype, len(wanted.shape)):
        return False
    return all(want in (-1, size) for size, want in zip(found.shape, wanted.shape, strict=True))


def _inner(node: ir.Node) -> str:
    """What stops a node of unknown sizes inside a net; "" at its end."""
    readers = {use.node: None for value in node.outputs for use in value.uses()}
    return f"{node.meta['opaque']}, and {', '.join(map(canon.label, readers))} reads it" if readers else ""


def _strange(value: ir.Value, elements: Collection[str]) -> str:
    """What stops a value whose elements are none of those that TVM's arrays can hold here; "" for others."""
    kind = canon.dtype(value).numpy().name
    return "" if kind in elements else f"TVM has no arrays of {kind}"
