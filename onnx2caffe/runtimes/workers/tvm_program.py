"""A program as the workers read it (JSON of onnx2caffe/tvm/program.py), and what both dialects' workers share.

A reference is {"input": n}, {"constant": n} or {"call": n}, with "item" for one result of a call that has several.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["CallFault", "Type", "bare", "last_words", "looked_up", "mismatch", "resolved", "saved"]

Type = tuple[str, tuple[int, ...]]
"""Element type and shape; -1 is a size that depends on data."""

_LONGEST = 600

_COMMAND = "Command line: "
"""What TVM writes after the words of a compiler that failed."""


class CallFault(Exception):
    """TVM does not take call `number` of a program, or gives it another type than the program says."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


def resolved(argument: Any, value: Callable[[dict[str, int]], Any]) -> Any:
    """An argument with `value(reference)` in place of every reference; lists become tuples."""
    if isinstance(argument, dict):
        return value(argument)
    if isinstance(argument, list):
        return tuple(resolved(item, value) for item in argument)
    return argument


def looked_up(root: Any, name: str) -> Any:
    """The function of a dotted name below `root`."""
    for part in name.split("."):
        root = getattr(root, part)
    return root


def mismatch(expected: list[Any], found: list[Type]) -> str:
    """What to say where TVM infers other types than a call's own; "" where they agree."""
    wanted = [(dtype, tuple(shape)) for dtype, shape in expected]
    return "" if wanted == found else f"TVM infers {found}, expected {wanted}"


def saved(weights: Mapping[str, Any], save: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    """TVM's file of named arrays, in the order of `weights`; `save`: TVM's own writer, whose order changes by chance.

    It comes in pieces, none of them much larger than an array. The file: eight bytes of magic, eight reserved, the
    names and the arrays as lists, each headed by its length; a name is headed by its length too.
    """
    names = [name.encode() for name in weights]
    count = struct.pack("<Q", len(names))
    headed = [struct.pack("<Q", len(name)) + name for name in names]
    yield b"".join([save({})[:16], count, *headed, count])
    for name, (text, array) in zip(names, weights.items(), strict=True):
        yield memoryview(save({text: array}))[40 + len(name) :]


def bare() -> dict[str, Any]:
    """How to link for a board, whose C library may be older than the compiler's: without one, hence without versions.

    The program that loads the library brings libc and libm.
    """
    return {"options": ["-nodefaultlibs"], "add_files": ["-lgcc"]}


def last_words(problem: Exception) -> str:
    """What an error of TVM says, without its stack; of a compiler that failed, all that it said."""
    text, of_a_compiler, command = str(problem).partition(_COMMAND)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if of_a_compiler:
        return " ".join(lines if lines[1:] else [*lines, f"{command.split()[0]} fails and says nothing"])[:_LONGEST]
    telling = [line for line in lines if "Check failed" in line or "Error" in line] or lines
    text = telling[-1] if telling else type(problem).__name__
    return text[:_LONGEST]
