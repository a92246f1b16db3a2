"""The consoles of a page: what it says one types and sees, run again.

In a fenced block of kind `console` a line `$ …` is a command (a here-document and lines behind a backslash belong to
it), what follows is all it prints, of both streams; a line `…` stands for any lines. What differs from machine to
machine is not compared: errors in scientific notation, versions, the folders of runtimes, the width of columns.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HERE = re.compile(r"<<'(\w+)'")
_VARIES = re.compile(
    r"\d(\.\d+)?e[-+]\d+|(?<=onnxruntime )[\d.]+|(?<=python )[\d.]+|(?<=gcc )[\d.]+"
    r"|(?<=, )\S+(?=/(onnxruntime|runtimes|python)$)"
)
_ELIDED = "…"


@dataclass
class Step:
    """A command, and the lines it is said to print."""

    command: str
    shown: list[str] = field(default_factory=list)


def steps(page: Path) -> Iterator[Step]:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield from _steps(iter(block.splitlines()))


def _steps(lines: Iterator[str]) -> Iterator[Step]:
    step: Step | None = None
    for line in lines:
        if not line.startswith("$ "):
            assert step is not None, f"{line!r} stands before any command"
            step.shown.append(line)
            continue
        if step:
            yield step
        step = Step(line.removeprefix("$ "))
        while step.command.endswith("\\"):
            step.command += "\n" + next(lines)
        if here := _HERE.search(step.command):
            while not step.command.endswith(f"\n{here[1]}"):
                step.command += "\n" + next(lines)
    if step:
        yield step


def printed(command: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What a command prints in a folder, whatever its exit code."""
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ran.stdout.rstrip("\n").split("\n") if ran.stdout else []


def fits(shown: Sequence[str], seen: Sequence[str]) -> bool:
    """Whether lines are those shown, `…` standing for any number of them."""
    if not shown:
        return not seen
    first, *rest = shown
    if first == _ELIDED:
        return any(fits(rest, seen[skipped:]) for skipped in range(len(seen) + 1))
    return bool(seen) and _plain(first) == _plain(seen[0]) and fits(rest, seen[1:])


def _plain(line: str) -> str:
    return " ".join(_VARIES.sub("#", line).split())
