"""What approximate recipes compute, as ONNX: the yardstick where a user asked for other numbers than the model's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.decompose.resize import axis_maps, tent
from onnx2caffe.frontend.evaluate import NotEvaluable
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.match import narrow, source

__all__ = ["LoseBorders"]


class LoseBorders(NodePass):
    """Linear enlargement by a plain Deconvolution: border places have only the weight of the neighbours there are.

    `sources`: the user's nodes that become such.
    """

    claim = "none: the outermost rows and columns become smaller"
    approximate = True
    ops = frozenset({"Resize"})

    def __init__(self, sources: Iterable[str]) -> None:
        self._sources = frozenset(sources)

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Multiply by the weights."""
        weights = _border_weights(node) if self._sources.intersection(canon.sources(node)) else None
        if weights is None:
            return False
        output, shape = node.outputs[0], canon.shape(node.outputs[0])
        (exact,) = edit.copy(node, "Resize", node.inputs, node.attributes, shapes=[shape])
        edit.replace(node, "Mul", [exact, edit.constant(narrow(weights), output, "weights")])
        return True


def _border_weights(node: ir.Node) -> Array | None:
    """The sum of the tents at every place of a map; None where an axis is no enlargement by tents."""
    attributes = {name: canon.attribute(node, name) for name in node.attributes}
    scales = canon.const(node.inputs[2]) if len(node.inputs) > 2 else None
    try:
        maps = axis_maps(canon.shape(source(node)), canon.shape(node.outputs[0]), attributes, scales)
    except NotEvaluable:
        return None
    tents = [tent(one.matrix) for one in maps[2:]]
    if not all(one.identity for one in maps[:2]):
        return None
    weights = [1 / found.factors for found in tents if found is not None]
    return reduce(np.multiply.outer, weights) if len(weights) == len(tents) else None
