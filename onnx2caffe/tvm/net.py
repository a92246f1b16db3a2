"""What emitters write into: a program under construction, and the words that both dialects have under other names."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.nodeview import NodeView, Refused
from onnx2caffe.tvm.program import ELEMENTS, Array, Call, Constant, Program, Reference, Type

__all__ = ["Net", "Op", "Value"]


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a program. `array`: its value where it is constant."""

    reference: Reference
    type: Type
    array: Array | None = None

    @property
    def shape(self) -> Shape:
        """Its shape."""
        return self.type.shape

    @property
    def dtype(self) -> str:
        """Numpy's name of its element type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """The number of its axes."""
        return len(self.shape)


class Op(NodeView):
    """A canonical node together with the program's values of its inputs."""

    def __init__(self, node: ir.Node, net: Net, values: dict[ir.Value, Value]) -> None:
        super().__init__(node)
        self._net = net
        self._values = values

    def value(self, index: int = 0) -> Value:
        """Input `index`, which must be there."""
        value = self.node.inputs[index]
        assert value is not None
        if value not in self._values:
            array = canon.const(value)
            assert array is not None, f"{value.name!r} was not emitted"
            self._values[value] = self._net.const(array, value.name or "")
        return self._values[value]

    def optional(self, index: int) -> Value | None:
        """Input `index`, or None where it is absent."""
        return self.value(index) if self.has(index) else None

    @property
    def values(self) -> list[Value]:
        """All inputs of a variadic op."""
        return [self.value(i) for i in range(len(self))]

    @property
    def types(self) -> list[Type]:
        """What the outputs must be; -1 is a size that depends on data."""
        return [Type(canon.dtype(v).numpy().name, canon.sizes(v)) for v in self.node.outputs]


class Net(abc.ABC):
    """A program under construction, for the node at hand.

    `net(fn, *args, **attrs)` adds a call. Its result has the shape that its tensor arguments broadcast to and the first
    one's element type, unless `shape` and `dtype` say otherwise; the worker stops where TVM infers something else.
    """

    index_dtype = "int64"
    """What argmax and argmin give."""

    castable = ELEMENTS
    """Element types that inputs may have; those beyond ELEMENTS only to be cast from."""

    takes_unsized = True
    """Whether results may have sizes that depend on data."""

    def __init__(self) -> None:
        self.program = Program()
        self.node = ""
        self._names: set[str] = set()
        self._constants: dict[tuple[int, Sequence[int], Type], Value] = {}
        """By their place in memory: a weight that is transposed there and back is the user's again."""

    def __call__(
        self, fn: str, *args: Any, shape: Sequence[int] | None = None, dtype: str | None = None, **attrs: Any
    ) -> Value:
        """The one result of a call."""
        tensors = [arg for arg in args if isinstance(arg, Value)]
        result = Type(
            tensors[0].dtype if dtype is None else dtype,
            np.broadcast_shapes(*(t.shape for t in tensors)) if shape is None else tuple(shape),
        )
        return Value(self._add(fn, args, attrs, [result], several=False), result)

    def many(self, fn: str, *args: Any, types: Sequence[Type], **attrs: Any) -> list[Value]:
        """The results of a call that gives a tuple."""
        reference = self._add(fn, args, attrs, types, several=True)
        return [Value({**reference, "item": i}, one) for i, one in enumerate(types)]

    def _add(
        self, fn: str, args: Sequence[Any], attrs: Mapping[str, Any], types: Sequence[Type], several: bool
    ) -> Reference:
        plain = {name: _plain(value) for name, value in attrs.items()}
        self.program.calls.append(Call(fn, [_plain(arg) for arg in args], plain, types, several, self.node))
        return {"call": len(self.program.calls) - 1}

    def const(self, array: Array | float, name: str = "") -> Value:
        """A constant: an array, or a number as a float32 scalar. Scalars stand in the module, others are weights."""
        array = np.asarray(array, None if isinstance(array, np.ndarray | np.generic) else np.float32)
        kind = Type(array.dtype.name, array.shape)
        if kind.dtype not in ELEMENTS:
            raise Refused(f"TVM has no arrays of {kind.dtype}")
        if not array.size:  # which Relax cannot write to a file
            return Value(self._add("zeros", (list(kind.shape), kind.dtype), {}, [kind], several=False), kind, array)
        place = array.ctypes.data, array.strides, kind
        if place not in self._constants:
            label = self.identifier(name or f"{self.node}_const") if array.ndim else ""
            self.program.constants.append(Constant(label, array))
            self._constants[place] = Value({"constant": len(self.program.constants) - 1}, kind, array)
        return self._constants[place]

    def like(self, number: float, value: Value) -> Value:
        """A scalar constant of a value's element type."""
        return self.const(np.array(number, value.dtype))

    def identifier(self, name: str) -> str:
        """A name that is an identifier in C, Python and Relay, and used nowhere else in the program."""
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
        plain = f"t_{plain}" if not plain[:1].isalpha() else plain
        found, count = plain, 1
        while found in self._names:
            count += 1
            found = f"{plain}_{count}"
        self._names.add(found)
        return found

    # The words. Those of constants are computed here.

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """`x` in C order with another shape."""
        if x.shape == tuple(shape):
            return x
        if x.array is not None:
            return self.const(x.array.reshape(shape))
        return self("reshape", x, list(shape), shape=shape)

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """Axis `perm[i]` of `x` becomes axis i."""
        if list(perm) == list(range(x.rank)):
            return x
        if x.array is not None:
            return self.const(x.array.transpose(perm))
        return self._transpose(x, list(perm), [x.shape[axis] for axis in perm])

    def cast(self, x: Value, dtype: str) -> Value:
        """`x` with another element type, as TVM casts."""
        if x.dtype == dtype:
            return x
        if x.array is not None:
            return self.const(x.array.astype(dtype))
        return self._cast(x, dtype)

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """`x` repeated to `shape`."""
        if x.shape == tuple(shape):
            return x
        return self("broadcast_to", x, list(shape), shape=shape)

    def take(self, x: Value, indices: Value, axis: int) -> Value:
        """`x` at `indices` (0 … size - 1) of an axis."""
        if x.array is not None and indices.array is not None:
            return self.const(np.take(x.array, indices.array, axis))
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        return self("take", x, indices, shape=shape, axis=axis)

    def arg_max(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        """The index (int64) of the first largest element along an axis."""
        return self._first("argmax", x, axis, keepdims)

    def arg_min(self, x: Value, axis: int, keepdims: bool = False) -> Value:
        """The index (int64) of the first smallest element along an axis."""
        return self._first("argmin", x, axis, keepdims)

    def _first(self, fn: str, x: Value, axis: int, keepdims: bool) -> Value:
        """TVM says -1 where no element beats the least number of the type."""
        shape = (*x.shape[:axis], *[1] * keepdims, *x.shape[axis + 1 :])
        found = self(fn, x, axis, keepdims, shape=shape, dtype=self.index_dtype)
        return self.cast(self("maximum", found, self.like(0, found)), "int64")

    def absolute(self, x: Value) -> Value:
        """|x|, without the operator that TVM's generator of C lacks."""
        return x if np.dtype(x.dtype).kind in "bu" else self("maximum", x, self("negative", x))

    def greater(self, a: Value, b: Value) -> Value:
        """The greater of two numbers, NaN where one of them is."""
        return self._extreme("maximum", a, b)

    def lesser(self, a: Value, b: Value) -> Value:
        """The lesser of two numbers, NaN where one of them is."""
        return self._extreme("minimum", a, b)

    def relu(self, x: Value) -> Value:
        """The greater of 0 and x; TVM's own loses a NaN (facts/tvm.md T10)."""
        return self.greater(self.like(0, x), x)

    def _extreme(self, fn: str, a: Value, b: Value) -> Value:
        """TVM takes the second operand where the two do not compare, so a constant comes first: it is no NaN."""
        first, second = (b, a) if a.array is None and b.array is not None else (a, b)
        found = self(fn, first, second)
        if np.dtype(a.dtype).kind != "f" or (first.array is not None and not np.isnan(first.array).any()):
            return found
        return self.unless_nan(first, found)

    def unless_nan(self, x: Value, found: Value) -> Value:
        """`found`, but NaN where `x` is."""
        return self("where", self("isnan", x, dtype="bool"), x, found, dtype=x.dtype)

    def conv(self, fn: str, x: Value, weight: Value, shape: Shape, **attrs: Any) -> Value:
        """A convolution of any kind, its weight with the kernel behind two axes of channels."""
        return self(fn, x, weight, shape=shape, **attrs)

    @abc.abstractmethod
    def _transpose(self, x: Value, perm: list[int], shape: list[int]) -> Value: ...

    @abc.abstractmethod
    def _cast(self, x: Value, dtype: str) -> Value: ...

    @abc.abstractmethod
    def add_bias(self, x: Value, bias: Value) -> Value:
        """`x` plus a number for each of its channels (axis 1)."""

    @abc.abstractmethod
    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Values one after another along an axis."""

    @abc.abstractmethod
    def slice(self, x: Value, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> Value:
        """`x[start:stop:step]` on every axis, all positive and inside."""

    @abc.abstractmethod
    def pad(self, x: Value, before: Sequence[int], after: Sequence[int], mode: str, value: float) -> Value:
        """`x` extended on every axis; `mode` as ONNX says: constant, reflect, edge."""

    @abc.abstractmethod
    def top(self, x: Value, count: int, axis: int, largest: bool) -> list[Value]:
        """The largest or smallest elements along an axis in order, equal ones as they come, and their int64 indices."""

    @abc.abstractmethod
    def order(self, x: Value, axis: int, descending: bool = False) -> Value:
        """Where (int64) the elements along an axis stand, from the least to the greatest; equal ones as they come."""

    @abc.abstractmethod
    def first(self, x: Value, count: Value, axis: int) -> Value:
        """The first elements along an axis; how many, the one element of `count` (int64) says."""

    @abc.abstractmethod
    def viewed(self, x: Value, dtype: str) -> Value:
        """The same bits as numbers of another type."""

    @abc.abstractmethod
    def best_boxes(self, boxes: Value, scores: Value, most: int, threshold: Value) -> Value:
        """A row (batch, class, box) for each box chosen, the best of a class first, at most so many of each.

        `boxes` [batch, N, 4] are corners; `scores` [batch, classes, N], of which those above 0.5 count; a box that
        shares with a better one as much as `threshold` (not 0) is not chosen.
        """

    @abc.abstractmethod
    def round_half_even(self, x: Value) -> Value:
        """`x` rounded to whole numbers, halves to the even one."""

    @abc.abstractmethod
    def matmul(self, a: Value, b: Value) -> Value:
        """The matrix product of numpy.matmul."""


def _plain(argument: Any) -> Any:
    """An argument as JSON has it."""
    if isinstance(argument, Value):
        return dict(argument.reference)
    if isinstance(argument, list | tuple):
        return [_plain(item) for item in argument]
    if isinstance(argument, np.generic):
        return argument.item()
    return argument
