"""A program: the list of TVM calls that a model becomes, in no dialect's own objects, for a worker to make a module of.

`to_json` and the constants' arrays are all a worker gets (runtimes/workers/tvm_program.py reads it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        read = sorted({*_constants([[c.args, list(c.attrs.values())] for c in self.calls]), *_constants(self.outputs)})
        numbers = {old: new for new, old in enumerate(read)}
        calls = [
            replace(
                call,
                args=_renumbered(call.args, numbers),
                attrs={name: _renumbered(value, numbers) for name, value in call.attrs.items()},
            )
            for call in self.calls
        ]
        constants = [self.constants[number] for number in read]
        return replace(self, constants=constants, calls=calls, outputs=_renumbered(self.outputs, numbers))

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


def _constants(argument: Any) -> Iterator[int]:
    """The numbers of the constants that stand in arguments."""
    if isinstance(argument, Mapping) and "constant" in argument:
        yield argument["constant"]
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _constants(item)


def _renumbered(argument: Any, numbers: Mapping[int, int]) -> Any:
    """Arguments with other numbers for their constants."""
    if isinstance(argument, Mapping):
        return {"constant": numbers[argument["constant"]]} if "constant" in argument else argument
    return [_renumbered(item, numbers) for item in argument] if isinstance(argument, list | tuple) else argument
