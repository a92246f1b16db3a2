"""Canonical model -> Caffe net: every node through the alternatives of its op, all that cannot be gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.layers import Input, LayerError
from onnx2caffe.caffe.lower.emitter import PROVISIONAL, Emitter
from onnx2caffe.caffe.lower.families import load_families
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import ALTERNATIVES, Refused
from onnx2caffe.caffe.names import Namer
from onnx2caffe.caffe.net import Blob, Net, Placed
from onnx2caffe.caffe.rules import Rules
from onnx2caffe.errors import Blocked, NotConvertible

__all__ = ["Lowered", "lower"]


@dataclass
class Lowered:
    """A lowered model: the net, the blob of every canonical value in it, and the recipes taken."""

    net: Net
    blobs: dict[ir.Value, Blob] = field(default_factory=dict)
    used: list[tuple[str, str, str]] = field(default_factory=list)
    """(node, key, variant), in order."""


def lower(model: ir.Model, target: Rules, chosen: Mapping[str, str] | None = None) -> Lowered:
    """Lower a canonical model for a target.

    Args:
        model: canonical (docs/architecture.md).
        target: its rules and its order of alternatives.
        chosen: recipe key -> variant, as the user asked.

    Raises:
        NotConvertible: names every node that has no lowering, with one reason per alternative.
    """
    load_families()
    return _Lowering(model, target, chosen or {}).run()


class _Lowering:
    def __init__(self, model: ir.Model, target: Rules, chosen: Mapping[str, str]) -> None:
        self._graph = model.graph
        self._target = target
        self._chosen = chosen
        self._blob_name, self._layer_name = Namer(), Namer()
        self._lowered = Lowered(Net(self._graph.name or "net"))
        self._blocked: list[Blocked] = []

    def run(self) -> Lowered:
        for value in self._graph.inputs:
            self._input(value)
        for node in self._graph:
            self._node(node)
        if self._blocked:
            raise NotConvertible(self._blocked)
        for value in self._graph.outputs:
            self._lowered.net.outputs.append(self._output(value).name)
        return self._lowered

    def _input(self, value: ir.Value) -> None:
        blob = Blob(self._blob_name(value.name or "input"), canon.shape(value))
        layer = Input(shape=(blob.shape,))
        try:
            layer.infer([])
            if 0 in blob.shape:
                raise LayerError("Caffe has no blobs of size 0")
        except LayerError as problem:
            self._blocked.append(Blocked(value.name or "", "graph input", (f"shape {list(blob.shape)}: {problem}",)))
        self._place([Placed(self._layer_name(blob.name), layer, (), (blob.name,))], {blob.name: blob.shape})
        self._lowered.net.inputs.append(blob.name)
        self._lowered.blobs[value] = blob

    def _node(self, node: ir.Node) -> None:
        if reason := node.meta.get("opaque"):
            self._block(node, str(reason))
            return
        if self._feeds_on_unknown(node):
            return
        label = self._label(node)
        emitter = Emitter(self._target, label, self._chosen)
        if node.op_type not in ALTERNATIVES:
            self._block(node, f"no Caffe layer computes {node.op_type}")
            return
        try:
            result = emitter.attempt(node.op_type, Op(node, self._lowered.blobs), emitter)
        except Refused as problem:
            self._block(node, str(problem))
            return
        results = [result] if isinstance(result, Blob) else list(result)
        self._bind(node.outputs, results, emitter, node.name or label, canon.sources(node))
        self._lowered.used += [(node.name or label, *pair) for pair in emitter.used]

    def _feeds_on_unknown(self, node: ir.Node) -> bool:
        """Whether an input's shape is unknown because of a node blocked before."""
        return any(v is not None and v.const_value is None and v not in self._lowered.blobs for v in node.inputs)

    def _block(self, node: ir.Node, reason: str) -> None:
        """Remember why; give the outputs blobs all the same, so that the nodes behind are judged too."""
        names = canon.sources(node) or (node.name or self._label(node),)
        self._blocked.append(Blocked(", ".join(names), node.op_type, (reason,)))
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
            self._bind([value], [blob], emitter, name, ())
        return self._lowered.blobs[value]

    def _bind(
        self,
        values: Sequence[ir.Value],
        results: Sequence[Blob],
        emitter: Emitter,
        label: str,
        sources: tuple[str, ...],
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
                    sources=sources,
                )
            )
        self._place(layers, {final[t]: s for t, s in emitter.shapes.items() if t in final})
        for value, blob in zip(values, results, strict=True):
            self._lowered.blobs[value] = replace(blob, name=final.get(blob.name, blob.name))

    def _place(self, layers: Sequence[Placed], shapes: Mapping[str, canon.Shape]) -> None:
        self._lowered.net.layers += layers
        self._lowered.net.shapes.update(shapes)

    @staticmethod
    def _label(node: ir.Node) -> str:
        return next((v.name for v in node.outputs if v.name), None) or node.name or node.op_type
