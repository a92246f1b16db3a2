"""The user's own file as the yardstick: its values, the noise of its values, and the order of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

import onnx

from onnx2caffe.errors import NoReference
from onnx2caffe.runtimes.base import Array, Feeds
from onnx2caffe.runtimes.ort import Reference
from onnx2caffe.verify.measure import Sample, shaken
from onnx2caffe.verify.rounding import round_otherwise

__all__ = ["UserModel"]

_SHAKE = 1e-6
_ROUGH_SHAKE = 1e-4


class UserModel:
    """The user's file in onnxruntime.

    `tensors`: inner ones to know; an input among them says nothing. `outputs`: to know whatever they are, also an
    input or a constant. `half`: the file computes in float16, so its float32 reading is the fine yardstick.
    """

    def __init__(
        self, source: Path | bytes, tensors: Sequence[str], outputs: Sequence[str] = (), half: bool = False
    ) -> None:
        self._source = source
        self._half = half
        computed = {name for node in self._graph.node for name in node.output}
        wanted = [*(name for name in tensors if name in computed), *outputs]
        self._fine = Reference(source, wanted, widen=half)
        self._coarse = Reference(source, wanted) if half else None
        self._rounded = [
            Reference(source, wanted, widen=half, rewrite=partial(round_otherwise, mirrored=mirrored))
            for mirrored in (False, True)
        ]

    @cached_property
    def known(self) -> frozenset[str]:
        """The tensors that can be compared: the model's outputs and the wanted ones.

        Raises:
            NoReference: onnxruntime cannot load the file.

        """
        return frozenset(self._fine.tensors)

    @cached_property
    def _graph(self) -> onnx.GraphProto:
        """Nodes and inputs of the file, without its weights."""
        if isinstance(self._source, bytes):
            graph = onnx.load_from_string(self._source).graph
        else:
            graph = onnx.load(str(self._source), "protobuf", load_external_data=False).graph
        return onnx.GraphProto(node=graph.node, input=graph.input)

    @cached_property
    def order(self) -> dict[str, int]:
        """Every tensor's place in the file's own topological order, inputs first."""
        names = [value.name for value in self._graph.input]
        names += [name for node in self._graph.node for name in node.output if name]
        return {name: place for place, name in enumerate(dict.fromkeys(names))}

    def sample(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Sample]:
        """The tensors on one input, with the runs that show their own noise."""
        plain = self._fine.run(feeds, names)
        optimised = self._fine.run(feeds, names, optimise=True)
        nearby = self._fine.run(shaken(feeds, _SHAKE), names)
        whole = [name for name in names if plain[name].dtype.kind != "f"]
        rough = self._fine.run(shaken(feeds, _ROUGH_SHAKE), whole) if whole else {}
        return {n: Sample(plain[n], optimised[n], nearby[n], rough.get(n)) for n in names}

    def rounded(self, feeds: Feeds, names: Sequence[str]) -> dict[str, tuple[Array, ...]]:
        """The tensors with every computed float rounded a little otherwise, two ways: noise that shaken inputs hide.

        Asked for only where a tensor seems to differ: it takes sessions. Empty where onnxruntime cannot run it.
        """
        try:
            runs = [reference.run(feeds, names) for reference in self._rounded] if names else []
        except NoReference:
            return {}
        return {name: tuple(run[name] for run in runs) for name in names}

    def as_written(self, feeds: Feeds, names: Sequence[str]) -> Mapping[str, Array]:
        """For a half model the tensors of the file as it is; empty for others, whose sample is just that."""
        return self._coarse.run(feeds, names) if self._coarse and names else {}

    def nearest_before(self, tensor: str, among: set[str]) -> tuple[str, ...]:
        """Those of `among` that are met first on the ways from a tensor back to the inputs."""
        makers = {name: node for node in self._graph.node for name in node.output}
        found: dict[str, None] = {}
        seen, front = {tensor}, [tensor]
        while front:
            node = makers.get(front.pop())
            for name in node.input if node else ():
                if name in among:
                    found[name] = None
                elif name and name not in seen:
                    seen.add(name)
                    front.append(name)
        return tuple(sorted(found, key=lambda name: self.order.get(name, 0)))
