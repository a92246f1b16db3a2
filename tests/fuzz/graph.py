"""A graph under construction: tensors with static shapes, nodes added only where they are legal and small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, shape_inference

__all__ = ["Draw", "Graph", "Maker", "Shape", "Unfit"]

Draw = Callable[[st.SearchStrategy[Any]], Any]
Shape = tuple[int, ...]
MOST_ELEMENTS = 4096
MOST_AXES = 6
IR_VERSION = 8
_ILLEGAL = (onnx.defs.SchemaError, onnx.checker.ValidationError, shape_inference.InferenceError, RuntimeError)


class Unfit(Exception):
    """The drawn node is not legal here, or its result would be empty or large."""


@dataclass
class Graph:
    """Nodes so far, and the shapes of their tensors: floats, which makers pick from, and others, by element type."""

    draw: Draw
    opset: int
    shapes: dict[str, Shape] = field(default_factory=dict)
    others: dict[str, tuple[int, Shape]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    _names: int = 0

    def name(self, what: str) -> str:
        self._names += 1
        return f"{what}{self._names}"

    def int(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def ints(self, count: int, low: int, high: int) -> list[int]:
        return [self.int(low, high) for _ in range(count)]

    def one(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def rarely(self) -> bool:
        return self.int(0, 3) == 3

    def some(self, options: Iterable[Any], most: int = 9) -> list[Any]:
        """At least one of the options, in order."""
        options = list(options)
        if not options:
            raise Unfit
        kept = self.draw(st.sets(st.sampled_from(options), min_size=1, max_size=most))
        return [o for o in options if o in kept]

    def permutation(self, count: int) -> list[int]:
        return list(self.draw(st.permutations(range(count))))

    def need(self, *facts: object) -> None:
        """Give the node up unless all the facts hold."""
        if not all(facts):
            raise Unfit

    def pick(self, *ranks: int) -> str:
        """A float tensor of one of the ranks (default: any), later ones more often."""
        fitting = [n for n, s in self.shapes.items() if not ranks or len(s) in ranks]
        self.need(fitting)
        return self.one(*fitting[-4:], *fitting)

    def fitting(self, shape: Shape) -> str:
        """A float tensor of this shape."""
        return self.one(*(n for n, s in self.shapes.items() if s == shape))

    def axis(self, x: str, since: int = 11) -> int:
        """An axis of a tensor, counted from the end where the opset allows (from `since` on) and chance wills."""
        rank = len(self.shapes[x])
        self.need(rank)
        return self.int(-rank if self.opset >= since else 0, rank - 1)

    def constant(self, array: Any) -> str:
        """An initializer, or now and then a Constant node."""
        tensor = numpy_helper.from_array(np.asarray(array), self.name("c"))
        self.constants[tensor.name] = tensor
        if self.int(0, 9) == 9:
            node = helper.make_node("Constant", [], [tensor.name], value=tensor, name=self.name("n"))
            self.nodes.append(node)
        return tensor.name

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def indices(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int, positive: bool = False) -> str:
        return self.constant(self.noise(*shape, positive=positive))

    def noise(self, *shape: int, positive: bool = False) -> np.ndarray:
        array = np.random.default_rng(self.int(0, 999)).standard_normal(shape)
        return np.asarray(np.abs(array) + 0.3 if positive else array, np.float32)

    def add(self, op: str, *inputs: str, outputs: int = 1, shape: Shape | None = None, **attributes: Any) -> str:
        """Append a node and return its first output. `shape`: the result's, where onnx infers none."""
        return self.many(op, *inputs, outputs=outputs, shape=shape, **attributes)[0]

    def many(self, op: str, *inputs: str, outputs: int = 1, shape: Shape | None = None, **attributes: Any) -> list[str]:
        """Append a node and return all its outputs.

        Raises:
            Unfit: it is not legal, its results have no static shapes, or they are empty or large.

        """
        names = [self.name("t") for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, name=self.name("n"), **attributes)
        found = self._infer(node) if shape is None else {names[0]: (TensorProto.FLOAT, shape)}
        for _, dims in found.values():
            self.need(min(dims, default=1) > 0, int(np.prod(dims)) <= MOST_ELEMENTS, len(dims) <= MOST_AXES)
        self.nodes.append(node)
        for name, (kind, dims) in found.items():
            if kind == TensorProto.FLOAT:
                self.shapes[name] = dims
            else:
                self.others[name] = kind, dims
        return names

    def over(self, op: str, x: str, axes: Sequence[int], since: int, **attributes: Any) -> str:
        """An op whose axes became an input at opset `since`."""
        if self.opset >= since:
            return self.add(op, x, self.indices(*axes), **attributes)
        return self.add(op, x, axes=list(axes), **attributes)

    def clip(self, x: str, low: float, high: float) -> str:
        if self.opset >= 11:
            return self.add("Clip", x, self.number(low), self.number(high))
        return self.add("Clip", x, min=low, max=high)

    def halved(self, x: str, axis: int, first: int) -> list[str]:
        """A tensor split in two behind `first` places of an axis."""
        sizes = first, self.shapes[x][axis] - first
        if self.opset >= 13:
            return self.many("Split", x, self.indices(*sizes), outputs=2, axis=axis)
        return self.many("Split", x, outputs=2, axis=axis, split=sizes)

    def scaled(self, x: str, scales: Sequence[float], mode: str) -> str:
        """A tensor resized by factors, as the opset has it."""
        if self.opset < 9:
            return self.add("Upsample", x, mode=mode, scales=list(scales))
        factors = self.constant(np.array(scales, np.float32))
        if self.opset < 11:
            return self.add("Upsample" if self.opset < 10 else "Resize", x, factors, mode=mode)
        roi = self.constant(np.zeros(0, np.float32)) if self.opset < 13 else ""
        transform = {"coordinate_transformation_mode": "asymmetric"} if mode == "nearest" else {}
        rounding = {"nearest_mode": "floor"} if mode == "nearest" else {}
        return self.add("Resize", x, roi, factors, mode=mode, **transform, **rounding)

    def _infer(self, node: onnx.NodeProto) -> dict[str, tuple[int, Shape]]:
        known = {n: self.constants[n] for n in node.input if n in self.constants}
        types = {
            n: helper.make_tensor_type_proto(TensorProto.FLOAT, self.shapes[n]) for n in node.input if n in self.shapes
        }
        types |= {n: helper.make_tensor_type_proto(*self.others[n]) for n in node.input if n in self.others}
        types |= {n: helper.make_tensor_type_proto(c.data_type, list(c.dims)) for n, c in known.items()}
        opsets = [helper.make_opsetid("", self.opset)]
        try:
            schema = onnx.defs.get_schema(node.op_type, self.opset)
            found = shape_inference.infer_node_outputs(
                schema, node, types, known, opset_imports=opsets, ir_version=IR_VERSION
            )
        except _ILLEGAL as problem:
            raise Unfit from problem
        return {name: self._tensor(proto) for name, proto in found.items()}

    def _tensor(self, proto: onnx.TypeProto) -> tuple[int, Shape]:
        tensor = proto.tensor_type
        self.need(tensor.HasField("shape"), all(d.HasField("dim_value") for d in tensor.shape.dim))
        return tensor.elem_type, tuple(d.dim_value for d in tensor.shape.dim)


Maker = Callable[[Graph], object]
