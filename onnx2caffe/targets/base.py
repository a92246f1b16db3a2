"""What a target is: rules for single layers, the order of alternatives, and writer options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx2caffe.caffe.finish import finish
from onnx2caffe.caffe.layers.base import Layer, Shape
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.rename import forgotten, renamed
from onnx2caffe.canon import Note

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A Caffe that the written files must load in.

    `types`: layer types it has. `fields`: (type, field) pairs it does not know although it has the type. `preferred`:
    recipe key -> variants to try first. `exit`: whose passes it takes (see `passes/pipeline.py`). `partition`: leave to
    ONNX what the target cannot have, unless told otherwise. `max_segments`: how many nets a model may become;
    `max_inputs`, `max_outputs`: how many one may have.
    """

    name: str
    types: frozenset[str]
    unknown_fields: frozenset[tuple[str, str]] = frozenset()
    preferred: Mapping[str, Sequence[str]] = field(default_factory=dict)
    exit: str = "caffe"
    partition: bool = False
    max_segments: int = 8
    max_inputs: int = 2**31
    max_outputs: int = 2**31

    def refuses(self, layer: Layer, bottoms: Sequence[Shape], tops: Sequence[Shape]) -> str | None:
        """Why this target cannot have the layer, or None."""
        if layer.type not in self.types:
            return f"target {self.name} has no layer {layer.type}"
        for type_, name in self.unknown_fields:
            if type_ == layer.type and getattr(layer, name) is not None:
                return f"target {self.name} does not know {layer.param_field}.{name}"
        return None

    def gist(self, op: str, shapes: Sequence[Shape], reasons: Sequence[str]) -> str:
        """What to read of the reasons, one per alternative, why a node has no lowering: each once."""
        return "; or ".join(dict.fromkeys(reasons))

    def order(self, key: str) -> Sequence[str]:
        """The variants of a recipe to try first on this target."""
        return self.preferred.get(key, ())

    def finish(self, net: Net, names: Mapping[str, str]) -> Net:
        """The net to write; `names`: output blob -> the name the user wants for it."""
        finished = finish(net, self)
        return forgotten(self.dressed(finished, names), net.shapes, finished)

    def dressed(self, net: Net, names: Mapping[str, str]) -> Net:
        """A finished net with the names, and in the form, that the target likes."""
        return renamed(net, names)

    def faults(self, net: Net) -> Sequence[tuple[str, str]]:
        """What rules about whole nets find in a finished one: layer and reason."""
        return ()

    def remarks(self, nets: Sequence[Net]) -> Sequence[Note]:
        """What the user should know about finished nets that the target is not known to refuse."""
        return ()
