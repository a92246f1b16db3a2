"""Quantisation taken out of a model: values stay real numbers where the file rounds them to integers.

QuantizeLinear gives q = clip(round(x/s) + z, q_min, q_max), DequantizeLinear s·(q − z). Without the rounding the pair
is clip(x, s·(q_min − z), s·(q_max − z)), and x itself where it can only lie inside (recipes §15). Between the two,
integers may be moved, compared and, centred on their zero points, go into products (ConvInteger, MatMulInteger).

A computed scale (DynamicQuantizeLinear) is taken from the tensor itself, so nothing is clipped; it cancels against the
factor behind the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon, ranges
from onnx2caffe.passes.base import Pass, PassResult
from onnx2caffe.passes.editor import Array, Editor
from onnx2caffe.passes.match import is_float, maker, only_reader, operands, scalar, source

__all__ = ["StripQdq"]

_MOVES = frozenset(
    {
        *("DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "GlobalMaxPool", "MaxPool", "ReduceMax"),
        *("ReduceMin", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split", "Tile", "Transpose"),
    }
)
"""Ops that hand on elements of their first input, chosen by place or by size, or means of them with fixed weights."""

_JOINS = frozenset({"Concat", "Max", "Min"})
"""The same for all inputs."""

_PRODUCTS = frozenset({"Conv", "MatMul"})


@dataclass(frozen=True)
class _Quantised:
    """What an integer tensor stands for: `integer = value/(scale·Π dynamic) + zero + offset`, before rounding.

    `scale` and `zero` are float64 and broadcast against `value`; `dynamic` and `offset` are numbers that the model
    computes.
    """

    value: ir.Value
    scale: Array
    zero: Array
    dynamic: tuple[ir.Value, ...] = ()
    offset: ir.Value | None = None

    def same_steps(self, other: _Quantised) -> bool:
        """Whether equal integers stand for equal numbers in both."""
        equal = np.array_equal(self.scale, other.scale) and np.array_equal(self.zero, other.zero)
        return equal and self.dynamic == other.dynamic and self.offset is other.offset

    @property
    def computed(self) -> bool:
        """Whether the model computes a scale or zero point."""
        return bool(self.dynamic) or self.offset is not None

    @property
    def uniform(self) -> bool:
        """Whether one scale and one zero point serve all elements, wherever they are moved."""
        return self.scale.ndim == 0 and self.zero.ndim == 0


class StripQdq(Pass):
    """QuantizeLinear and what undoes it disappear; where integers are needed as such, both stay.

    After the call `count` is the number of QuantizeLinear nodes that went, and `ranges` gives the least and greatest
    number that the file's integers can stand for, by the user's tensor name.
    """

    claim = "dequantise(quantise(x)) = clip(x) but for the rounding"
    approximate = True

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.ranges: dict[str, tuple[float, float]] = {}

    def call(self, model: ir.Model) -> PassResult:
        """Strip the whole graph in one walk."""
        before = _count(model.graph)
        walk = _Walk(Editor(model.graph))
        walk.run()
        self.count, self.ranges = before - _count(model.graph), walk.ranges()
        return PassResult(model, bool(self.count))


def _count(graph: ir.Graph) -> int:
    return sum(node.op_type == "QuantizeLinear" for node in graph)


@dataclass(frozen=True)
class _Limit:
    """The range of one QuantizeLinear; `clipped` is `x` within it."""

    node: ir.Node
    x: ir.Value
    clipped: ir.Value
    low: float
    high: float


class _Walk:
    def __init__(self, edit: Editor) -> None:
        self._edit = edit
        self._integers: dict[ir.Value, _Quantised] = {}
        self._floats: dict[ir.Value, _Quantised] = {}
        """Integers cast to float: mostly a product takes what is behind them."""
        self._limits: list[_Limit] = []
        self._made: list[ir.Value] = []

    def run(self) -> None:
        """Rewrite the graph."""
        rules = {
            "QuantizeLinear": self._quantize,
            "DequantizeLinear": self._dequantize,
            "Cast": self._cast,
            "Mul": self._rescale,
            **dict.fromkeys(_PRODUCTS, self._product),
            **dict.fromkeys(_MOVES | _JOINS | {"Pad"}, self._move),
        }
        for node in list(self._edit.graph):
            if node.graph is not None and not node.domain and not canon.is_opaque(node) and node.op_type in rules:
                rules[node.op_type](node)
        self._unrounded()
        for value in reversed(self._made):  # those that nobody came to read
            if (producer := value.producer()) is not None:
                self._edit.discard(producer)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """User tensor -> the range of its integers; a tensor quantised twice has the first one's."""
        found: dict[str, tuple[float, float]] = {}
        for limit in self._limits:
            if limit.node.graph is None:
                for tensor in (*canon.tensors(limit.x), *canon.tensors(limit.clipped)):
                    found.setdefault(tensor.name, (limit.low, limit.high))
        return found

    def _quantize(self, node: ir.Node) -> None:
        x, output = source(node), node.outputs[0]
        steps = _parameters(node)
        if steps is None or not is_float(x):
            return
        if not steps.computed:
            low, high = (steps.scale * (end - steps.zero) for end in _ends(canon.dtype(output)))
            clipped = self._clipped(node, x, low, high, steps.scale / 2)
            self._limits.append(_Limit(node, x, clipped, float(low.min()), float(high.max())))
            steps = replace(steps, value=clipped)
        self._integers[output] = steps

    def _clipped(self, node: ir.Node, x: ir.Value, low: Array, high: Array, half: Array) -> ir.Value:
        """`x` within bounds; itself when it lies there, or within the half step that rounding brings back."""
        known = ranges.of(x)
        if known.lo >= (low - half).max() and known.hi <= (high + half).min():
            return x
        bounds = [self._constant(bound, node, what) for bound, what in ((low, "low"), (high, "high"))]
        if low.ndim == 0:
            return self._add(node, "Clip", [x, *bounds], "clipped")
        return self._add(node, "Min", [self._add(node, "Max", [x, bounds[0]], "raised"), bounds[1]], "clipped")

    def _dequantize(self, node: ir.Node) -> None:
        steps, own = self._integers.get(source(node)), _parameters(node)
        if steps is None or own is None:
            return
        if steps.same_steps(own):
            self._edit.forward(node.outputs[0], steps.value)
        elif not steps.computed and not own.computed:
            self._put(node, steps.value, own.scale / steps.scale, own.scale * (steps.zero - own.zero))

    def _cast(self, node: ir.Node) -> None:
        """Integers as other integers (behind a product), or as floats."""
        steps = self._integers.get(source(node))
        if steps is not None:
            kind = self._floats if is_float(node.outputs[0]) else self._integers
            kind[node.outputs[0]] = steps

    def _factor(self, value: ir.Value) -> _Quantised | None:
        """What a factor of an integer product stands for: integers as floats, less their zero point."""
        if (steps := self._floats.get(value)) is not None:
            return None if np.any(steps.zero) or steps.offset is not None else steps
        subtraction = maker(value, "Sub")
        steps = None if subtraction is None else self._floats.get(source(subtraction))
        if subtraction is None or steps is None or not steps.uniform:
            return None
        zero = source(subtraction, 1)
        cast = maker(zero, "Cast")
        if steps.offset is None:
            centred = scalar(zero) == float(steps.zero)
        else:
            centred = cast is not None and source(cast) is steps.offset
        return replace(steps, zero=np.zeros(()), offset=None) if centred else None

    def _product(self, node: ir.Node) -> None:
        """The product of what the integers stand for; it is integers itself where the file casts it to them."""
        factors = [self._factor(source(node, i)) for i in (0, 1)]
        known = [steps for steps in factors if steps is not None]
        pairs = list(zip(factors, node.inputs, strict=False))
        fixed = all(steps is not None or canon.const(value) is not None for steps, value in pairs)
        cast = only_reader(node.outputs[0])
        if not known or not fixed or len(node.inputs) > len(factors) or cast is None:
            return
        if cast.op_type != "Cast" or is_float(cast.outputs[0]):
            return
        inputs = [value if steps is None else steps.value for steps, value in pairs]
        (value,) = self._edit.copy(node, node.op_type, inputs, node.attributes, shapes=[canon.shape(node.outputs[0])])
        self._made.append(value)
        scale = np.asarray(np.prod([steps.scale for steps in known]))
        dynamic = tuple(number for steps in known for number in steps.dynamic)
        self._integers[cast.outputs[0]] = _Quantised(value, scale, np.zeros(()), dynamic)

    def _rescale(self, node: ir.Node) -> None:
        """A product of integers times its computed scales."""
        for value, factor in operands(node):
            steps = self._floats.get(value)
            rest = None if steps is None or not steps.dynamic else _without(factor, steps.dynamic)
            if steps is None or rest is None or canon.shape(value) != canon.shape(node.outputs[0]):
                continue
            result = steps.value
            for number in rest:
                result = self._add(node, "Mul", [result, number], "rescaled")
            self._put(node, result, 1 / steps.scale, np.zeros(()))
            return

    def _move(self, node: ir.Node) -> None:
        """The same movement of what the integers stand for."""
        steps = self._integers.get(source(node))
        if steps is None or not steps.uniform or (len(node.outputs) > 1 and node.op_type != "Split"):
            return
        inputs = self._moved_inputs(node, steps)
        if inputs is None:
            return
        shapes = [canon.shape(output) for output in node.outputs]
        moved = self._edit.copy(node, node.op_type, inputs, node.attributes, shapes=shapes)
        for output, value in zip(node.outputs, moved, strict=True):
            value.type = steps.value.type
            self._made.append(value)
            self._integers[output] = replace(steps, value=value)

    def _moved_inputs(self, node: ir.Node, steps: _Quantised) -> list[ir.Value | None] | None:
        if node.op_type in _JOINS:
            parts = [self._integers.get(source(node, i)) for i in range(len(node.inputs))]
            same = [part.value for part in parts if part is not None and part.same_steps(steps)]
            return list(same) if len(same) == len(parts) else None
        if canon.attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
            return None  # it brings a number of its own
        inputs = [steps.value, *node.inputs[1:]]
        if node.op_type == "Pad":
            given = inputs[2] if len(inputs) > 2 else None
            number = 0.0 if given is None else scalar(given)
            if number is None or steps.computed:
                return None
            inputs[2:3] = [self._constant(steps.scale * (number - steps.zero), node, "value")]
        return inputs

    def _unrounded(self) -> None:
        """Integers that are still read as floats, or are the model's outputs: whoever needs integers rounds."""
        for value, steps in reversed([*self._integers.items(), *self._floats.items()]):
            node = value.producer()
            wanted = (value.is_graph_output() and not value.uses()) or value in self._floats
            if node is not None and node.graph is not None and wanted and not steps.computed:
                self._put(node, steps.value, 1 / steps.scale, steps.zero)

    def _put(self, node: ir.Node, value: ir.Value, factor: Array, shift: Array) -> None:
        """Let factor·value + shift take the place of `node`'s output."""
        if np.all(factor == 1) and not np.any(shift):
            self._edit.forward(node.outputs[0], value)
            return
        scaled = self._add(node, "Mul", [value, self._constant(factor, node, "factor")], "scaled")
        new = self._edit.replace(node, "Add", [scaled, self._constant(shift, node, "shift")])
        new.outputs[0].type = value.type

    def _add(self, before: ir.Node, op: str, inputs: Sequence[ir.Value], what: str) -> ir.Value:
        value = self._edit.add(before, op, inputs, {}, shape=canon.shape(inputs[0]), what=what)
        self._made.append(value)
        return value

    def _constant(self, array: Array, node: ir.Node, what: str) -> ir.Value:
        return self._edit.constant(np.asarray(array, np.float32), node.outputs[0], what)


def _parameters(node: ir.Node) -> _Quantised | None:
    """Scale and zero point of a QuantizeLinear or DequantizeLinear; None for blocks and for types but integers."""
    x, scale = source(node), source(node, 1)
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    integers = node.outputs[0] if node.op_type == "QuantizeLinear" else x
    if canon.attribute(node, "block_size", 0) or not canon.dtype(integers).is_integer():
        return None
    steps, offset = canon.const(scale), canon.const(zero)
    if steps is None and canon.shape(scale) not in ((), (1,)):
        return None
    numbers = np.ones(()) if steps is None else _spread(steps, node)
    if not (np.isfinite(numbers).all() and np.all(numbers > 0)):
        return None
    return _Quantised(
        x,
        numbers,
        np.zeros(()) if offset is None else _spread(offset, node),
        (scale,) if steps is None else (),
        zero if offset is None else None,
    )


def _ends(dtype: ir.DataType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    signed = bool(dtype.is_signed())
    return -signed << (dtype.bitwidth - 1), (1 << (dtype.bitwidth - signed)) - 1


def _spread(parameter: Array, node: ir.Node) -> Array:
    """A parameter, or one per index of the node's axis, broadcastable against its tensor."""
    wide = parameter.astype(np.float64)
    if wide.size == 1:
        return wide.reshape(())
    axis = canon.attribute(node, "axis")
    return wide.reshape([-1 if i == axis else 1 for i in range(len(canon.shape(node.outputs[0])))])


def _without(factor: ir.Value, scales: Sequence[ir.Value]) -> list[ir.Value] | None:
    """The factors of a product of numbers besides `scales`; None when those are not all among them."""
    waiting, found = [factor], []
    while waiting:
        value = waiting.pop()
        multiplication = None if value in scales else maker(value, "Mul")
        if multiplication is None:
            found.append(value)
        else:
            waiting.extend(v for v in multiplication.inputs if v is not None)
    for scale in scales:
        if scale not in found:
            return None
        found.remove(scale)
    return found
