"""A program: the list of TVM calls that a model becomes, in no dialect's own objects, for a worker to make a module of.

`to_json` and the constants' arrays are all a worker gets (runtimes/workers/tvm_program.py reads it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnx2caffe.canon import Shape

__all__ = ["ELEMENTS", "Array", "Call", "Constant", "Input", "Program", "Reference", "Type"]

Array = np.ndarray[Any, Any]

ELEMENTS = frozenset(
    {"bool", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
"""Element types that both dialects' arrays hold and compute with."""

Reference = Mapping[str, int]
"""{"input": n}, {"constant": n} or {"call": n}, with "item" for one result of a call that has several."""


@dataclass(frozen=True)
class Type:
    """What a tensor is: numpy's name of its element type, and its shape; -1 is a size that depends on data."""

    dtype: str
    shape: Shape


@dataclass(frozen=True)
class Input:
    """An input of the module: its name there (an identifier) and its type."""

    name: str
    type: Type


@dataclass(frozen=True)
class Constant:
    """A constant: weights have a name, by which the module takes them; small ones stand in the module, named ""."""

    name: str
    array: Array


@dataclass(frozen=True)
class Call:
    """A call of a TVM operator.

    `fn`: its Python name below `tvm.relay` or `tvm.relax.op`. `args`, `attrs`: references, numbers, texts, and lists of
    these. `types`: what it must give; `several`: as a tuple. `node`: the name of the ONNX node it was made for.
    """

    fn: str
    args: Sequence[Any]
    attrs: Mapping[str, Any]
    types: Sequence[Type]
    several: bool
    node: str


@dataclass
class Program:
    """Calls in order, what they start from and what they give."""

    inputs: list[Input] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    outputs: list[Reference] = field(default_factory=list)

    @property
    def arrays(self) -> list[Array]:
        """The constants' arrays, which go beside the JSON."""
        return [constant.array for constant in self.constants]

    @property
    def is_sized(self) -> bool:
        """Whether all outputs have sizes that are known before it runs."""
        made = (self.calls[at["call"]].types[at.get("item", 0)] for at in self.outputs if "call" in at)
        return all(-1 not in one.shape for one in made)

    def without_unread(self) -> Program:
        """The same without the constants that no call reads and that are no output: a weight beside its transposed."""
        arguments = [[call.args, [*call.attrs.values()]] for call in self.calls]
        read = sorted({at["constant"] for at in _references([arguments, self.outputs]) if "constant" in at})
        numbers = {old: new for new, old in enumerate(read)}

        def renumbered(at: Reference) -> Reference:
            return {"constant": numbers[at["constant"]]} if "constant" in at else at

        calls = [_with(call, renumbered) for call in self.calls]
        constants = [self.constants[number] for number in read]
        return replace(self, constants=constants, calls=calls, outputs=_changed(self.outputs, renumbered))

    def alone(self, number: int) -> Program:
        """A program of one of the calls, whose inputs are what inputs and other calls give it."""
        call = self.calls[number]
        given: list[Reference] = []
        for at in _references([call.args, [*call.attrs.values()]]):
            if "constant" not in at and at not in given:
                given.append(at)
        inputs = [Input(f"x{place}", self._type(at)) for place, at in enumerate(given)]
        call = _with(call, lambda at: {"input": given.index(at)} if at in given else at)
        items = [{"item": item} for item in range(len(call.types))] if call.several else [{}]
        outputs: list[Reference] = [{"call": 0, **item} for item in items]
        return Program(inputs, self.constants, [call], outputs).without_unread()

    def _type(self, at: Reference) -> Type:
        return self.inputs[at["input"]].type if "input" in at else self.calls[at["call"]].types[at.get("item", 0)]

    def to_json(self) -> dict[str, Any]:
        """All but the arrays, as plain data."""
        return {
            "inputs": [{"name": i.name, "dtype": i.type.dtype, "shape": i.type.shape} for i in self.inputs],
            "constants": [{"name": c.name} for c in self.constants],
            "calls": [
                {
                    "fn": call.fn,
                    "args": list(call.args),
                    "attrs": dict(call.attrs),
                    "types": [(t.dtype, t.shape) for t in call.types],
                    "several": call.several,
                }
                for call in self.calls
            ],
            "outputs": [dict(reference) for reference in self.outputs],
        }


def _references(argument: Any) -> Iterator[Reference]:
    """The references that stand in arguments."""
    if isinstance(argument, Mapping):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _references(item)


def _changed(argument: Any, change: Callable[[Reference], Reference]) -> Any:
    """Arguments with other references."""
    if isinstance(argument, Mapping):
        return change(argument)
    return [_changed(item, change) for item in argument] if isinstance(argument, list | tuple) else argument


def _with(call: Call, change: Callable[[Reference], Reference]) -> Call:
    """A call with other references."""
    attrs = {name: _changed(value, change) for name, value in call.attrs.items()}
    return replace(call, args=_changed(call.args, change), attrs=attrs)
