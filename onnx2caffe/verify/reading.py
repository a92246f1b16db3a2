"""Another reading of the user's file as the yardstick, where a conversion is asked to compute something else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

from onnx2caffe import canon
from onnx2caffe.canon import UserTensor
from onnx2caffe.runtimes.base import Array, Feeds
from onnx2caffe.runtimes.ort import Reference
from onnx2caffe.verify.measure import Distance, distance

__all__ = ["farthest", "write_reading"]


def write_reading(model: ir.Model, path: Path) -> None:
    """Write a canonical model so that each tensor of the user's that it holds has the user's name and shape in it.

    Weights go into a file beside it, so that their size does not matter.
    """
    ir.save(model, path, external_data=f"{path.stem}.data")
    proto = onnx.load(str(path), "protobuf", load_external_data=False)
    held = {value.name: _others(value) for node in model.graph for value in node.outputs}
    nodes = list(proto.graph.node)
    del proto.graph.node[:], proto.graph.output[:]
    for value in model.graph.inputs:
        proto.graph.node.extend(_aliases(proto.graph, value.name or "", _others(value)))
    for node in nodes:
        proto.graph.node.append(node)
        for name in node.output:
            proto.graph.node.extend(_aliases(proto.graph, name, held.get(name, [])))
    onnx.save(proto, str(path))


def _others(value: ir.Value) -> list[UserTensor]:
    """The user's tensors in a value that do not have its name."""
    return [tensor for tensor in canon.tensors(value) if tensor.name != value.name]


def _aliases(graph: onnx.GraphProto, name: str, tensors: Sequence[UserTensor]) -> list[onnx.NodeProto]:
    nodes = []
    for tensor in tensors:
        shape = f"{tensor.name}__shape"
        graph.initializer.append(numpy_helper.from_array(np.array(tensor.shape, np.int64), shape))
        nodes.append(helper.make_node("Reshape", [name, shape], [tensor.name], allowzero=int(0 in tensor.shape)))
    return nodes


def farthest(file: Path, reading: Path, runs: Sequence[Feeds], outputs: Sequence[str]) -> tuple[str, Distance] | None:
    """The output in which two models lie farthest apart on any of the runs, and how far; None without a common one.

    Integers are compared as their readers round them.

    Raises:
        NoReference: onnxruntime cannot run one of them.

    """
    one, other = Reference(file, outputs), Reference(reading, outputs)
    common = [name for name in outputs if name in {*one.tensors} & {*other.tensors}]
    found = [
        (name, distance(value, _like(value, second[name])))
        for feeds in runs
        for first, second in [(one.run(feeds, common), other.run(feeds, common))]
        for name, value in first.items()
    ]
    return max(found, key=lambda pair: pair[1].relative, default=None)


def _like(reference: Array, value: Array) -> Array:
    return value if reference.dtype.kind == "f" else np.rint(value)
