"""Where the source method stops before it converts anything: it looks at the model as given.

Its other branches (which form MatMul takes, which resize Upsample becomes) are the emitters'.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.errors import Blocked, NotConvertible
from onnx2caffe.frontend import GivenNode, Loaded

__all__ = ["check"]

_HINT = "docs/method.md has the stops of the method; --output TENSOR ends the model in front of these nodes"
_UPSAMPLED_RANK = 5


def check(loaded: Loaded) -> None:
    """Look at every MatMul and Upsample of a loaded model.

    Raises:
        NotConvertible: names all nodes at which the method stops.

    """
    shapes = _shapes(loaded)
    scales = _scales(loaded)
    blocked = []
    for node in loaded.given:
        reasons = list(_reasons(node, shapes, scales))
        if reasons:
            blocked.append(Blocked(node.name, node.op, tuple(reasons)))
    if blocked:
        raise NotConvertible(blocked, _HINT)


def _reasons(node: GivenNode, shapes: dict[str, Shape], scales: dict[str, list[float]]) -> Iterator[str]:
    if node.op not in ("MatMul", "Upsample"):
        return
    count = len([name for name in node.inputs if name])
    count += node.op == "Upsample" and "scales" in node.attributes  # opset 7 and 8
    if count != 2:
        yield f"it has {count} input{'s' * (count != 1)} where ONNX defines 2"
    if node.op == "Upsample":
        rank = len(shapes.get(node.inputs[0], ())) if node.inputs else 0
        if rank == _UPSAMPLED_RANK:
            yield "its input has 5 axes; ONNX has that, but the method resizes the two axes of a picture"
        factors = scales.get(node.name, [])
        if any(factor != 1 for factor in factors[:2]):
            yield f"its scales {factors} change the batch or the channels; ONNX has that, the method stops"


def _shapes(loaded: Loaded) -> dict[str, Shape]:
    graph = loaded.model.graph
    values = [*graph.inputs, *(value for node in graph for value in node.outputs)]
    return {tensor.name: tensor.shape for value in values for tensor in canon.tensors(value)}


def _scales(loaded: Loaded) -> dict[str, list[float]]:
    """The scales of what the user's Upsample nodes were read as, by node."""
    found: dict[str, list[float]] = {}
    for node in loaded.model.graph:
        scales = canon.const(node.inputs[2]) if node.op_type == "Resize" and not canon.is_opaque(node) else None
        if scales is not None:
            found |= {source: scales.tolist() for source in canon.sources(node)}
    return found
