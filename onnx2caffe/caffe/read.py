"""Any prototxt, with or without its caffemodel, to a Net.

Caffe's own rules: old files (`input`, `input_dim`, V1 `layers`) are upgraded, layers are filtered for the TEST phase,
weights go by layer name. Where Caffe is silent this reader is not: a layer whose weights are in no file is an error,
unless its fillers say what they are (Caffe runs on with zeros), and so is a layer in place that Caffe computes wrongly.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from google.protobuf import text_format

from onnx2caffe.caffe.fillers import fill
from onnx2caffe.caffe.layers import LAYERS, Input, Layer, LayerError
from onnx2caffe.caffe.layers.base import Array, Shape
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.params import from_message
from onnx2caffe.caffe.proto import Message, message
from onnx2caffe.caffe.upgrade import upgraded
from onnx2caffe.caffe.wire import StoredBlob, parse_blob, read_weights
from onnx2caffe.errors import UnreadableFile, Unsupported

__all__ = ["ALIASES", "read_net"]

_ORDER = "the prototxt, which is text, comes before the caffemodel"
ALIASES = {"DepthwiseConvolution": "DepthwiseConv", "ConvolutionDepthwise": "DepthwiseConv"}
"""Other names of layer types, in forks of Caffe."""


def read_net(prototxt: Path, caffemodel: Path | None) -> Net:
    """Read a net as Caffe would load it in the TEST phase.

    `inputs` are the tops of the Input layers, `outputs` the blobs nobody reads, both in the order of the file. Without
    a caffemodel the weights are those of the fillers, or zeros: for shapes and parameters, not for numbers.

    Raises:
        UnreadableFile: not a prototxt or caffemodel, or Caffe would refuse the net.
        Unsupported: a layer type that this package does not know.

    """
    param = upgraded(_parse(prototxt))
    weights = None if caffemodel is None else read_weights(caffemodel)
    _check_types(prototxt, param)
    reading = _Reading(Net(param.name), weights)
    for layer in param.layer:
        try:
            reading.layer(layer)
        except ValueError as problem:
            raise UnreadableFile(f"{prototxt}: layer {layer.name!r} ({layer.type}): {problem}") from problem
    return reading.finished()


def _parse(path: Path) -> Message:
    try:
        return text_format.Parse(path.read_bytes(), message("NetParameter")())
    except OSError as problem:
        raise UnreadableFile(f"cannot read {path}: {problem.strerror}") from problem
    except text_format.ParseError as problem:
        raise UnreadableFile(f"{path} is not a prototxt: {str(problem) or 'binary data'}", _ORDER) from problem
    except UnicodeDecodeError as problem:
        raise UnreadableFile(f"{path} is not a prototxt: no text in UTF-8 at byte {problem.start}", _ORDER) from problem


def _check_types(path: Path, param: Message) -> None:
    """All unknown layer types at once."""
    unknown = Counter(p.type for p in param.layer if ALIASES.get(p.type, p.type) not in LAYERS)
    if unknown:
        listed = ", ".join(f"{name or '(none)'} ({count})" for name, count in sorted(unknown.items()))
        raise Unsupported(f"{path}: unknown layer types: {listed}")


class _Reading:
    """A net under construction; `ValueError`s say what Caffe would refuse."""

    def __init__(self, net: Net, weights: Mapping[str, Sequence[StoredBlob]] | None) -> None:
        self._net = net
        self._weights = weights
        self._weighted: set[str] = set()
        self._shared: set[str] = set()
        self._read: set[str] = set()
        """Blobs that somebody read since they were last written."""

    def layer(self, param: Message) -> None:
        """Add one layer."""
        shapes = [self._bottom(name) for name in param.bottom]
        layer = from_message(LAYERS[ALIASES.get(param.type, param.type)], param, len(param.top))
        if isinstance(layer, Input) and len(layer.shape) == 1:
            layer = Input(shape=layer.shape * len(param.top))
        self._check_sharing(param)
        layer.outline(shapes)
        if expected := layer.blob_shapes(shapes):
            layer = dataclasses.replace(layer, blobs=self._blobs(layer, param, expected))
        tops = layer.infer(shapes)
        if len(tops) != len(param.top):
            raise LayerError(f"has {len(param.top)} tops, makes {len(tops)}")
        for name in set(param.top) & set(param.bottom) & self._read:
            raise LayerError(f"runs in place on blob {name!r}, which an earlier layer reads")
        self._read.update(param.bottom)
        for name, shape in zip(param.top, tops, strict=True):
            self._top(layer, param, name, shape)
        self._net.layers.append(Placed(param.name, layer, tuple(param.bottom), tuple(param.top)))
        if isinstance(layer, Input):
            self._net.inputs += param.top

    def finished(self) -> Net:
        """The net, its outputs named."""
        self._net.outputs = [name for name in self._net.shapes if name not in self._read]
        return self._net

    def _bottom(self, name: str) -> Shape:
        if name not in self._net.shapes:
            raise LayerError(f"unknown bottom blob {name!r}")
        return self._net.shapes[name]

    def _top(self, layer: Layer, param: Message, name: str, shape: Shape) -> None:
        if name in self._net.shapes:
            if name not in param.bottom:
                raise LayerError(f"top blob {name!r} is produced by several layers")
            if not layer.in_place:
                raise LayerError("cannot run in place: Caffe refuses it or computes something else")
        self._net.shapes[name] = shape
        self._read.discard(name)

    def _check_sharing(self, param: Message) -> None:
        for spec in param.param:
            if spec.name in self._shared:
                raise LayerError(f"shares weight {spec.name!r} with another layer, which is not supported")
            if spec.name:
                self._shared.add(spec.name)

    def _blobs(self, layer: Layer, param: Message, expected: Sequence[Shape]) -> tuple[Array, ...]:
        if param.name in self._weighted:
            raise LayerError("another layer with weights has the same name")
        self._weighted.add(param.name)
        stored = (self._weights or {}).get(param.name) or [parse_blob(b.SerializeToString()) for b in param.blobs]
        if stored:
            return _fitted(stored, expected)
        filled = fill(layer, param, expected)
        if filled is not None:
            return filled
        if self._weights is None:
            return tuple(np.broadcast_to(np.float32(0), shape) for shape in expected)
        raise LayerError("the caffemodel has no weights for it (Caffe would run with its fillers, zeros for most)")


def _fitted(stored: Sequence[StoredBlob], expected: Sequence[Shape]) -> tuple[Array, ...]:
    if len(stored) != len(expected):
        raise LayerError(f"the file has {len(stored)} blobs for it, it needs {len(expected)}")
    for blob, shape in zip(stored, expected, strict=True):
        if not blob.fits(shape):
            raise LayerError(f"the file has a blob of shape {blob.shape} for it, it needs {shape}")
    return tuple(blob.values.reshape(shape) for blob, shape in zip(stored, expected, strict=True))
