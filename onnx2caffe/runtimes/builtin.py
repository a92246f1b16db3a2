"""The `builtin` runtime: a Caffe net as the ONNX its layers stand for, run by onnxruntime without optimisations.

Weights are fed like inputs: onnxruntime copies initializers, but reads fed arrays where they lie, of any total size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onnx2caffe.caffe.layers import LAYERS, Input
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.read import read_net
from onnx2caffe.canon import Shape
from onnx2caffe.errors import RuntimeCrash, UsageError
from onnx2caffe.runtimes import ort
from onnx2caffe.runtimes.base import Array, Feeds, NetFiles, Tap

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["Builtin"]

_OPSET, _IR_VERSION = 21, 10
"""The last opset at which onnxruntime has a kernel for every op that layers use (MaxRoiPool is gone at 22)."""
_FED = 1024
"""Constants of this many bytes or more are fed, smaller ones stand in the model."""


class Builtin:
    """Runs written nets without Caffe. Keeps the last net and the last session until `close`.

    `rewrite`: what becomes of a net that was read before it runs, e.g. its simulation in 8 bits.
    """

    name = "builtin"

    def __init__(self, rewrite: Callable[[Net], Net] = lambda net: net) -> None:
        self._rewrite = rewrite
        self._files: tuple[object, ...] = ()
        self._net = Net("")
        self._taps: tuple[Tap, ...] = ()
        self._program: _Program | None = None

    def version(self) -> str:
        """The onnxruntime behind it, e.g. "onnxruntime 1.32.0"."""
        return ort.version()

    def missing(self, types: Sequence[str]) -> list[str]:
        """Those of the layer types without a meaning here."""
        return sorted(set(types) - set(LAYERS))

    def run(self, files: NetFiles, feeds: Sequence[Feeds], taps: Sequence[Tap]) -> list[dict[Tap, Array]]:
        """Run the net once per feed (blob name -> array of the blob's size); the tapped values, float32.

        Raises:
            UnreadableFile: Caffe could not read the files either.
            Unsupported: a layer type without a meaning here.
            UsageError: a feed does not fit the net's inputs, or a tap names no blob or layer.
            RuntimeCrash: values that Caffe cannot run on either, e.g. an index beyond a table.

        """
        program = self._prepared(files, tuple(taps))
        return [program.run(self._net, feed) for feed in feeds]

    def close(self) -> None:
        """Free the net and the session."""
        self._files, self._net, self._taps, self._program = (), Net(""), (), None

    def _prepared(self, files: NetFiles, taps: tuple[Tap, ...]) -> _Program:
        state = tuple(_state(path) for path in (files.prototxt, files.caffemodel) if path.is_file())
        if state != self._files or not state:
            self.close()
            self._net = self._rewrite(read_net(files.prototxt, files.caffemodel))
            self._files = state
        if self._program is None or taps != self._taps:
            self._program = _translate(self._net, taps)
            self._taps = taps
        return self._program


def _state(path: Path) -> tuple[object, ...]:
    """What changes when a file is rewritten (two stat results compare equal within one second)."""
    found = path.stat()
    return path, found.st_ino, found.st_size, found.st_mtime_ns


@dataclass
class _Program:
    """A session, the constants it is fed with, and what each of its inputs and outputs stands for."""

    session: onnxruntime.InferenceSession
    constants: Mapping[str, Array]
    inputs: Mapping[str, str]
    outputs: Mapping[Tap, str]

    def run(self, net: Net, feed: Feeds) -> dict[Tap, Array]:
        if unknown := set(feed) - set(net.inputs):
            raise UsageError(f"the net has no input {min(unknown)!r}; it has {net.inputs}")
        values = {}
        for blob, name in self.inputs.items():
            if blob not in feed:
                raise UsageError(f"input {blob!r} is not fed")
            value, shape = np.asarray(feed[blob], np.float32), net.shapes[blob]
            if value.size != np.prod(shape):
                raise UsageError(f"input {blob!r} has shape {shape}, the value {value.shape}")
            values[name] = np.asarray(value.reshape(shape), order="C")
        try:
            results = self.session.run(list(self.outputs.values()), {**values, **self.constants})
        except Exception as problem:  # onnxruntime's exceptions have no base of their own
            raise RuntimeCrash(f"builtin: {problem}") from problem
        return dict(zip(self.outputs, results, strict=True))


def _translate(net: Net, taps: Sequence[Tap]) -> _Program:
    """The program that computes the taps.

    Raises:
        UsageError: a tap names no layer, or a blob that is not there yet.

    """
    builder = _Builder()
    current: dict[str, str] = {}
    wanted: dict[str, list[Tap]] = {}
    for tap in dict.fromkeys(taps):
        wanted.setdefault(tap.layer, []).append(tap)
    outputs = {}
    for placed in net:
        if isinstance(placed.layer, Input):
            tops: Sequence[str] = [builder.input(shape) for shape in placed.layer.shape]
        else:
            tops = placed.layer.as_onnx(builder, [current[b] for b in placed.bottoms])
        for blob, value in zip(placed.tops, tops, strict=True):
            current[blob] = value
            builder.shapes[value] = net.shapes[blob]
        outputs.update(_outputs(builder, current, wanted.pop(placed.name, [])))
    outputs.update(_outputs(builder, current, wanted.pop("", [])))
    if wanted:
        raise UsageError(f"the net has no layer {min(wanted)!r}")
    inputs = {blob: current[blob] for blob in net.inputs}
    session = ort.session(builder.model(outputs.values()))
    return _Program(session, builder.fed, inputs, {tap: outputs[tap] for tap in taps})


def _outputs(builder: _Builder, current: Mapping[str, str], taps: Sequence[Tap]) -> dict[Tap, str]:
    for tap in taps:
        if tap.blob not in current:
            place = f"layer {tap.layer!r}" if tap.layer else "the net"
            raise UsageError(f"there is no blob {tap.blob!r} after {place}")
    return {tap: builder.op("Identity", current[tap.blob]) for tap in taps}


@dataclass
class _Builder:
    """Collects ONNX nodes; handles are value names of its own making, so blob names never reach onnxruntime."""

    nodes: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)
    fed: dict[str, Array] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    count: int = 0

    def op(self, type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; its output's name, or a tuple of names."""
        from onnx import helper

        names = tuple(self._name() for _ in range(outputs))
        self.nodes.append(helper.make_node(type, [i or "" for i in inputs], names, **attributes))
        return names[0] if outputs == 1 else names

    def const(self, array: Array) -> str:
        """A constant; float arrays become float32."""
        from onnx import numpy_helper

        if array.dtype.kind == "f":
            array = np.asarray(array, np.float32)
        name = self._name()
        if array.nbytes < _FED:
            self.initializers.append(numpy_helper.from_array(array, name))
        else:
            self._declare(name, array)
            self.fed[name] = np.asarray(array, order="C")
        return name

    def shape(self, value: Any) -> Shape:
        """The static shape of a blob's value."""
        return self.shapes[value]

    def input(self, shape: Shape) -> str:
        """A net input."""
        name = self._name()
        self._declare(name, np.broadcast_to(np.float32(0), shape))
        return name

    def model(self, outputs: Iterable[str]) -> bytes:
        """The serialized model; onnxruntime infers the outputs' types."""
        import onnx
        from onnx import helper

        graph = helper.make_graph(
            self.nodes, "net", self.inputs, [onnx.ValueInfoProto(name=name) for name in outputs], self.initializers
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        serialized: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION).SerializeToString()
        return serialized

    def _declare(self, name: str, like: Array) -> None:
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(like.dtype), like.shape))

    def _name(self) -> str:
        self.count += 1
        return f"v{self.count}"
