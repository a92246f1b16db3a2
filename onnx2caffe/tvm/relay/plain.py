"""Relay for C without a runtime: what TVM's C would ask its runtime for, or has no memory for, is said otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Value
from onnx2caffe.tvm.program import Reference, Type
from onnx2caffe.tvm.relay.net import RelayNet

__all__ = ["PlainNet"]

_MOST_COMPARISONS = 2**24
"""What is sorted by comparing each with each: 4096 elements, or many short rows."""

_SORTING = frozenset({"argsort", "sort", "topk"})
"""Operators that are functions of TVM's runtime."""

_TRUTHS = frozenset({"equal", "greater", "greater_equal", "less", "less_equal", "not_equal"}) | {
    f"logical_{word}" for word in ("and", "not", "or", "xor")
}
"""Operators that give truths, and are called as numpy calls them."""

_CHOICES: Mapping[str, Callable[[RelayNet, Value], tuple[Value, Value]]] = {
    "logical_and": lambda net, x: (x, net.const(np.array(False))),
    "logical_or": lambda net, x: (net.const(np.array(True)), x),
    "logical_xor": lambda net, x: (net("logical_not", x, dtype="bool"), x),
}
"""What the operators give where one side is known: if it is true, if it is false."""


class PlainNet(RelayNet):
    """A Relay program under construction, of which TVM can write plain C."""

    takes_unsized = False

    def __init__(self) -> None:
        super().__init__()
        self._folded: set[int] = set()
        """The calls that TVM will compute while it builds."""

    def __call__(
        self, fn: str, *args: Any, shape: Sequence[int] | None = None, dtype: str | None = None, **attrs: Any
    ) -> Value:
        """A constant truth is computed here, and stands as a byte where it chooses: C has no constant truths."""
        arrays = [arg.array for arg in args if isinstance(arg, Value)]
        if fn in _TRUTHS and all(array is not None for array in arrays):
            return self.const(getattr(np, fn)(*arrays))
        if fn in _CHOICES and any(array is not None for array in arrays):
            known, x = args if arrays[0] is not None else reversed(args)
            return self("where", known, *_CHOICES[fn](self, x), shape=shape, dtype="bool")
        if fn == "where" and arrays[0] is not None:
            args = (self.const(arrays[0].astype(np.uint8)), *args[1:])
        return super().__call__(fn, *args, shape=shape, dtype=dtype, **attrs)

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """A constant truth is repeated here."""
        if x.array is not None and x.dtype == "bool":
            return self.const(np.ascontiguousarray(np.broadcast_to(x.array, shape)))
        return super().broadcast(x, shape)

    def _add(
        self, fn: str, args: Sequence[Any], attrs: Mapping[str, Any], types: Sequence[Type], several: bool
    ) -> Reference:
        if fn in _SORTING:
            raise Refused(f"plain C has no runtime, whose function {fn} is")
        tensors = [value for value in _flat(args) if isinstance(value, Value)]
        known = [value.array is not None or value.reference.get("call") in self._folded for value in tensors]
        truths = [k for k, value in zip(known, tensors, strict=True) if value.rank and value.dtype == "bool"]
        if any(truths) and not all(known):
            raise Refused(f"TVM's C has no memory for constant truths, which {fn} reads")
        reference = super()._add(fn, args, attrs, types, several)
        if all(known):
            self._folded.add(reference["call"])
        return reference

    def top(self, x: Value, count: int, axis: int, largest: bool) -> list[Value]:
        """An element's place is the number of those before it; sums pick the elements of the first places."""
        size = x.shape[axis]
        if (comparisons := math.prod(x.shape) * size) > _MOST_COMPARISONS:
            raise Refused(
                f"plain C has no runtime that sorts, and each of {size} elements against each are {comparisons} "
                f"comparisons (at most {_MOST_COMPARISONS})"
            )
        before, behind = x.shape[:axis], x.shape[axis + 1 :]
        square, picks = (*before, size, size, *behind), (*before, count, size, *behind)
        own, other = (self.reshape(x, (*before, *pair, *behind)) for pair in ((size, 1), (1, size)))
        rows, columns = (self._numbers(size, one, x.rank + 1) for one in (axis, axis + 1))
        beats = self("greater" if largest else "less", other, own, shape=square, dtype="bool")
        alike = self("equal", other, own, shape=square, dtype="bool")
        earlier = self("where", alike, columns, self.like(size, columns), shape=square, dtype=columns.dtype)
        first = self("logical_or", beats, self("less", earlier, rows, dtype="bool"), dtype="bool")
        place = self("sum", self.cast(first, "int32"), axis=[axis + 1], shape=x.shape)
        place = self.reshape(place, (*before, 1, size, *behind))
        chosen = self("equal", place, self._numbers(count, axis, x.rank + 1), shape=picks, dtype="bool")
        return [self._picked(chosen, other, axis), self.cast(self._picked(chosen, columns, axis), "int64")]

    def _numbers(self, count: int, along: int, rank: int) -> Value:
        return self.const(np.arange(count, dtype=np.int32).reshape([count if a == along else 1 for a in range(rank)]))

    def _picked(self, chosen: Value, x: Value, axis: int) -> Value:
        """The sum over axis + 1 of what is chosen."""
        kept = self("where", chosen, x, self.like(0, x), dtype=x.dtype)
        return self("sum", kept, axis=[axis + 1], shape=(*kept.shape[: axis + 1], *kept.shape[axis + 2 :]))


def _flat(args: Sequence[Any]) -> Iterator[Any]:
    for arg in args:
        yield from _flat(arg) if isinstance(arg, list | tuple) else [arg]
