"""Where TVM's plan of memory goes wrong: scratch of a loop in the place of what the loop reads again.

The planner (`tir.usmp`) takes a buffer for read when the last statement that reads it has run. Inside a loop that
statement runs again: scratch that the loop fills after it may be given the same memory, and overwrites it. So the
worker has every buffer read once more at the end of its scope (workers/tvm_memory.py); this holds the C to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["overwriting", "without_last_reads"]

_FUNCTION = re.compile(r"^TVM_DLL int32_t (?P<name>\w+)\((?P<parameters>[^)]*)\) \{\n(?P<body>.*?)^\}", re.M | re.S)
_SCRATCH = re.compile(r"^(?P<indent> +)void\* (?P<name>\w+_let) = \(&\(\w*workspace\w*\[\d+\]\)\);")
_LAST_READ = re.compile(r"^ +(?:\(\(\w+\*\)\w+\)|\w+)\[0\];\n", re.M)
_TOP = 2
"""Spaces in front of a function's own statements."""


def overwriting(operators: str) -> Iterator[str]:
    """The functions of TVM's C in which scratch may lie where a loop still reads: nothing behind the loop does."""
    for function in _FUNCTION.finditer(operators):
        given = re.findall(r"(\w+)(?=,|$)", function["parameters"])
        if _is_unsafe([name for name in given if "workspace" not in name], function["body"].splitlines()):
            yield function["name"]


def _is_unsafe(outside: list[str], lines: list[str]) -> bool:
    scratch = [
        (number, m["name"], len(m["indent"])) for number, line in enumerate(lines) if (m := _SCRATCH.match(line))
    ]
    for number, name, indent in scratch:
        if indent > _TOP:
            end = next(i for i in range(number, len(lines)) if _indent(lines[i]) < indent)
            loop, behind = lines[number + 1 : end], lines[end:]
            first = min(_places(loop, name), default=len(loop))
            older = outside + [other for _, other, shallower in scratch if shallower < indent]
            gone = [other for other in older if not _places(behind, other)]
            if any((read := _places(loop, other)) and max(read) < first for other in gone):
                return True
    return False


def without_last_reads(operators: str) -> str:
    """The C without the statements that only read."""
    return _LAST_READ.sub("", operators)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _places(lines: list[str], name: str) -> list[int]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    return [number for number, line in enumerate(lines) if word.search(line)]
