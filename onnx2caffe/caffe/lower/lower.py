"""Canonical model -> Caffe net: every node through the alternatives of its op, all that cannot be gathered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.layers import Input
from onnx2caffe.caffe.lower.emitter import PROVISIONAL, Emitter
from onnx2caffe.caffe.lower.families import load_families
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import ALTERNATIVES, Refused
from onnx2caffe.caffe.names import Namer
from onnx2caffe.caffe.net import Blob, Net, Placed
from onnx2caffe.caffe.rules import Rules, unfit
from onnx2caffe.errors import Blocked, NotConvertible

__all__ = ["Lowered", "Names", "lower", "lower_part", "obstacles"]


@dataclass
class Lowered:
    """A lowered model: the net, the blob of every canonical value in it, and the recipes taken."""

    net: Net
    blobs: dict[ir.Value, Blob] = field(default_factory=dict)
    used: list[tuple[str, str, str]] = field(default_factory=list)
    """(node, key, variant), in order."""
    makers: dict[str, ir.Node] = field(default_factory=dict)
    """Layer name -> the node it was made for."""


@dataclass(frozen=True)
class Names:
    """Hands out blob and layer names; parts that share one have no name in common."""

    blob: Namer = field(default_factory=Namer)
    layer: Namer = field(default_factory=Namer)


def lower(model: ir.Model, target: Rules, chosen: Mapping[str, str] | None = None) -> Lowered:
    """Lower a canonical model for a target.

    Args:
        model: canonical (docs/architecture.md).
        target: its rules and its order of alternatives.
        chosen: recipe key -> variant, as the user asked.

    Raises:
        NotConvertible: names every node that has no lowering, with one reason per alternative.
    """
    graph = model.graph
    return lower_part(graph.name or "net", graph, graph.inputs, graph.outputs, target=target, chosen=chosen)


def lower_part(
    name: str,
    nodes: Iterable[ir.Node],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    *,
    target: Rules,
    chosen: Mapping[str, str] | None = None,
    names: Names | None = None,
) -> Lowered:
    """Lower a part of a canonical model: `nodes`, in topological order, between `inputs` and `outputs`.

    Raises:
        NotConvertible: as `lower`.

    """
    load_families()
    lowering = _Lowering(name, target, chosen or {}, names or Names())
    lowering.run(inputs, nodes)
    if lowering.blocked:
        raise NotConvertible(list(lowering.blocked.values()))
    return lowering.finished(outputs)


def obstacles(model: ir.Model, target: Rules, chosen: Mapping[str, str] | None = None) -> dict[ir.Node, Blocked]:
    """The nodes of a model that have no lowering, those that read an input the target cannot have among them."""
    load_families()
    lowering = _Lowering(model.graph.name or "net", target, chosen or {}, Names())
    lowering.run(model.graph.inputs, model.graph)
    found = {node: blocked for node, blocked in lowering.blocked.items() if isinstance(node, ir.Node)}
    for value, blocked in lowering.blocked.items():
        if isinstance(value, ir.Value):  # what is wrong with an input says more than what its readers make of it
            found |= {node: replace(blocked, node=canon.label(node), op=node.op_type) for node, _ in value.uses()}
    unseen = (node for node in model.graph if node not in found and lowering.feeds_on_unknown(node))
    behind = ("it reads what has no static shape",)
    return found | {node: Blocked(canon.label(node), node.op_type, behind) for node in unseen}


def _shapes(node: ir.Node) -> list[canon.Shape]:
    """The known shapes of a node's computed tensors, in order."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None and value.const_value is None]
    return [canon.shape(value) for value in values if value.shape is not None and value.shape.is_static()]


class _Lowering:
    def __init__(self, name: str, target: Rules, chosen: Mapping[str, str], names: Names) -> None:
        self._target = target
        self._chosen = chosen
        self._blob_name, self._layer_name = names.blob, names.layer
        self._lowered = Lowered(Net(name))
        self.blocked: dict[ir.Node | ir.Value, Blocked] = {}

    def run(self, inputs: Sequence[ir.Value], nodes: Iterable[ir.Node]) -> None:
        for value in inputs:
            self._input(value)
        for node in nodes:
            self._node(node)

    def finished(self, outputs: Sequence[ir.Value]) -> Lowered:
        for value in outputs:
            self._lowered.net.outputs.append(self._output(value).name)
        return self._lowered

    def _input(self, value: ir.Value) -> None:
        blob = Blob(self._blob_name(value.name or "input"), canon.shape(value))
        layer = Input(shape=(blob.shape,))
        if problem := self._unfit_input(value, blob.shape):
            reason = f"shape {list(blob.shape)}: {problem}"
            self.blocked[value] = Blocked(value.name or "", "graph input", (reason,))
        self._place([Placed(self._layer_name(blob.name), layer, (), (blob.name,))], {blob.name: blob.shape})
        self._lowered.net.inputs.append(blob.name)
        self._lowered.blobs[value] = blob

    def _unfit_input(self, value: ir.Value, shape: canon.Shape) -> str | None:
        if 0 in shape:
            return "Caffe has no blobs of size 0"
        return "Caffe has no strings" if value.dtype == ir.DataType.STRING else unfit(self._target, shape)

    def _node(self, node: ir.Node) -> None:
        if reason := node.meta.get("opaque"):
            self._block(node, str(reason))
            return
        if self.feeds_on_unknown(node):
            return
        label = self._label(node)
        emitter = Emitter(self._target, label, self._chosen)
        if node.op_type not in ALTERNATIVES:
            self._block(node, f"no Caffe layer computes {node.op_type}")
            return
        try:
            result = emitter.attempt(node.op_type, Op(node, self._lowered.blobs), emitter)
        except Refused as problem:
            self._block(node, *problem.reasons)
            return
        results = [result] if isinstance(result, Blob) else list(result)
        self._bind(node.outputs, results, emitter, node.name or label, node)
        self._lowered.used += [(node.name or label, *pair) for pair in emitter.used]

    def feeds_on_unknown(self, node: ir.Node) -> bool:
        """Whether an input's shape is unknown because of a node blocked before."""
        return any(v is not None and v.const_value is None and v not in self._lowered.blobs for v in node.inputs)

    def _block(self, node: ir.Node, *reasons: str) -> None:
        """Remember why; give the outputs blobs all the same, so that the nodes behind are judged too."""
        gist = self._target.gist(node.op_type, _shapes(node), reasons)
        self.blocked[node] = Blocked(canon.label(node), node.op_type, reasons, gist)
        for value in node.outputs:
            dims = value.shape
            if dims is not None and all(isinstance(d, int) for d in dims):
                self._lowered.blobs[value] = Blob(value.name or "", canon.shape(value))

    def _output(self, value: ir.Value) -> Blob:
        """The blob of a graph output; a constant one becomes a layer."""
        array = canon.const(value)
        if array is not None and value not in self._lowered.blobs:
            name = value.name or "constant"
            emitter = Emitter(self._target, name, self._chosen)
            try:
                blob = emitter.recipe("constant", array)
            except Refused as problem:
                raise NotConvertible([Blocked(name, "constant output", (str(problem),))]) from problem
            self._bind([value], [blob], emitter, name, None)
        return self._lowered.blobs[value]

    def _bind(
        self,
        values: Sequence[ir.Value],
        results: Sequence[Blob],
        emitter: Emitter,
        label: str,
        node: ir.Node | None,
    ) -> None:
        """Give result blobs the names of the node's outputs, and every layer and blob its final name."""
        wishes = {b.name: v.name for v, b in zip(values, results, strict=True) if v.name}
        prefix = len(emitter.prefix)
        final: dict[str, str] = {}
        for placed in emitter.placed:
            for top in placed.tops:
                final[top] = self._blob_name(wishes.get(top) or top.removeprefix(PROVISIONAL))
        layers = []
        last = {b.name for b in results}
        for placed in emitter.placed:
            wish = label if last & set(placed.tops) else label + placed.name[prefix:]
            layers.append(
                replace(
                    placed,
                    name=self._layer_name(wish),
                    bottoms=tuple(final.get(b, b) for b in placed.bottoms),
                    tops=tuple(final[t] for t in placed.tops),
                    sources=() if node is None else canon.sources(node),
                )
            )
        if node is not None:
            self._lowered.makers |= {placed.name: node for placed in layers}
        self._place(layers, {final[t]: s for t, s in emitter.shapes.items() if t in final})
        for value, blob in zip(values, results, strict=True):
            self._lowered.blobs[value] = replace(blob, name=final.get(blob.name, blob.name))

    def _place(self, layers: Sequence[Placed], shapes: Mapping[str, canon.Shape]) -> None:
        self._lowered.net.layers += layers
        self._lowered.net.shapes.update(shapes)

    @staticmethod
    def _label(node: ir.Node) -> str:
        return next((v.name for v in node.outputs if v.name), None) or node.name or node.op_type
