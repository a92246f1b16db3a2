"""A map for nets that other tools wrote: which blob holds which of the user's tensors, by names, order and the user."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from onnx2caffe.caffe.net import Net
from onnx2caffe.canon import Shape
from onnx2caffe.errors import UsageError, near
from onnx2caffe.mapfile import CaffeSegment, ExportMap, Place, Port, Promise

__all__ = ["UserGraph", "map_foreign"]

_HEAVY = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True)
class UserGraph:
    """The facts of a user's file that a comparison needs, read without its weights."""

    inputs: tuple[Port, ...]
    outputs: tuple[str, ...]
    makers: Mapping[str, str]
    """Tensor -> the name of the node that makes it, in topological order."""
    heavy: tuple[str, ...]
    """What convolutions and products make: their dtype is the one the model computes in."""

    @classmethod
    def of(cls, path: Path, shapes: Mapping[str, Shape], net: Net | None) -> UserGraph:
        """Read a file; free dimensions come from `shapes`, else from the net's inputs.

        Raises:
            UsageError: a dimension stays free.

        """
        graph = onnx.load(str(path), "protobuf", load_external_data=False).graph
        constants = {tensor.name for tensor in graph.initializer}
        values = [value for value in graph.input if value.name not in constants]
        blobs = _input_blobs([v.name for v in values], net) if net else {}
        inputs = []
        for value in values:
            given = shapes.get(value.name) or (net.shapes[blobs[value.name]] if net and value.name in blobs else None)
            inputs.append(_port(value, given))
        computing = [node for node in graph.node if node.op_type != "Constant"]
        makers = {name: node.name for node in computing for name in node.output if name}
        heavy = tuple(node.output[0] for node in graph.node if node.op_type in _HEAVY)
        return cls(tuple(inputs), tuple(value.name for value in graph.output), makers, heavy)


def _port(value: onnx.ValueInfoProto, given: Shape | None) -> Port:
    dims = _dims(value)
    if given is not None and len(given) == len(dims) and all(d in (None, g) for d, g in zip(dims, given, strict=True)):
        dims = list(given)
    shape = tuple(d for d in dims if d is not None)
    if len(shape) < len(dims):
        raise UsageError(
            f"input {value.name!r} leaves dimensions free: {_written(value)}",
            f"--input-shape {value.name}:{','.join('N' if d is None else str(d) for d in dims)}",
        )
    return Port(value.name, shape, str(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)))


def _dims(value: onnx.ValueInfoProto) -> list[int | None]:
    """The sizes, None for a free one, for which Paddle writes -1."""
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in dims]


def _written(value: onnx.ValueInfoProto) -> str:
    dims = zip(value.type.tensor_type.shape.dim, _dims(value), strict=True)
    return f"[{', '.join(d.dim_param or ('?' if size is None else str(size)) for d, size in dims)}]"


def _input_blobs(names: Sequence[str], net: Net) -> dict[str, str]:
    """Input tensor -> input blob: by name, the rest by their order."""
    found = {name: name for name in names if name in net.inputs}
    left = [name for name in names if name not in found]
    free = [blob for blob in net.inputs if blob not in found.values()]
    return found | dict(zip(left, free, strict=False))


def map_foreign(
    graph: UserGraph, net: Net, files: tuple[str, str], shapes: Mapping[str, Shape], chosen: Mapping[str, str]
) -> ExportMap:
    """Map a net onto the user's tensors.

    A tensor's blob is the one the user chose, else the one of its name, else the top of the layer named like the tensor
    or like the node that makes it; the model's outputs are also matched by order. A blob that several layers write is
    read right after the one that bears the name of the tensor or its node, else after the first.

    Args:
        graph: the user's file.
        net: the net as read from its prototxt.
        files: names of prototxt and caffemodel.
        shapes: the ONNX shapes of the tensors.
        chosen: tensor -> blob, as the user said.

    Raises:
        UsageError: an unknown name in `chosen`, inputs that do not fit, or nothing to compare.

    """
    _check_chosen(chosen, net, shapes)
    inputs = _input_blobs([port.name for port in graph.inputs], net)
    for port in graph.inputs:
        if port.name not in inputs or math.prod(net.shapes[inputs[port.name]]) != math.prod(port.shape):
            have = ", ".join(f"{blob} {list(net.shapes[blob])}" for blob in net.inputs) or "none"
            raise UsageError(f"input {port.name!r} {list(port.shape)} fits no input of the net: {have}")
    promises = {
        name: Promise(0, blob, shapes[name], layer) for name, blob, layer in _matches(graph, net, shapes, chosen)
    }
    if not promises:
        raise UsageError(
            "no blob of the net bears the name of a tensor of the model",
            f"say which is which: --map BLOB=TENSOR; the net ends in {', '.join(map(repr, net.outputs))}, "
            f"the model in {', '.join(map(repr, graph.outputs))}",
        )
    outputs = [name for name in graph.outputs if name in promises]
    segment = CaffeSegment(
        *files,
        {port.name: Place(inputs[port.name], port.shape) for port in graph.inputs},
        {name: Place(promises[name].blob, shapes[name]) for name in outputs},
    )
    return ExportMap(
        tool="",
        target="",
        source_file="",
        source_sha256="",
        files={},
        inputs=graph.inputs,
        outputs=[Port(name, shapes[name], "float32") for name in outputs],
        segments=[segment],
        tensors=promises,
    )


def _check_chosen(chosen: Mapping[str, str], net: Net, shapes: Mapping[str, Shape]) -> None:
    for tensor, blob in chosen.items():
        if blob not in net.shapes:
            raise UsageError(f"--map {blob}={tensor}: the net has no blob {blob!r}", near(blob, net.shapes))
        if tensor not in shapes:
            raise UsageError(f"--map {blob}={tensor}: the model has no tensor {tensor!r}", near(tensor, shapes))


def _matches(
    graph: UserGraph, net: Net, shapes: Mapping[str, Shape], chosen: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """(tensor, blob, layer after which to read it) of every tensor that has a blob."""
    layers = {placed.name: placed.tops[0] for placed in net if len(placed.tops) == 1}
    writers: dict[str, list[str]] = {}
    for placed in net:
        for top in placed.tops:
            writers.setdefault(top, []).append(placed.name)
    by_order = dict(zip(graph.outputs, net.outputs, strict=False)) if len(graph.outputs) == len(net.outputs) else {}
    for tensor, node in graph.makers.items():
        if tensor not in shapes:
            continue
        if tensor in chosen:
            yield tensor, chosen[tensor], ""
        elif tensor in net.shapes:
            several = writers.get(tensor, ())
            own = next((layer for layer in (tensor, node) if layer in several), *several[:1])
            yield tensor, tensor, own if len(several) > 1 else ""
        elif tensor in layers:
            yield tensor, layers[tensor], tensor
        elif node in layers:
            yield tensor, layers[node], node
        elif tensor in by_order:
            yield tensor, by_order[tensor], ""
