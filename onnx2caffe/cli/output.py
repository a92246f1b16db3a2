"""Printing: plain text for pipes, colour and tables for terminals, and names from models made harmless."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from onnx2caffe.errors import Onnx2CaffeError

__all__ = ["aside", "complain", "error_json", "let_go", "printable", "progress", "say", "say_json", "table"]


def printable(text: str) -> str:
    """`text` without control characters, which could move a terminal's cursor or forge lines: they become escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


def say(text: str) -> None:
    """Print one line to standard output."""
    sys.stdout.write(printable(text) + "\n")


def aside(text: str) -> None:
    """Print lines to standard error. Where it takes none, what was done stays done: they go nowhere."""
    try:
        sys.stderr.write(_lines(text) + "\n")
    except OSError:
        let_go(sys.stderr)


def let_go(stream: TextIO) -> None:
    """Let what a stream does not take go nowhere, else Python complains at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    sys.stdout.write(json.dumps(value, indent=1, allow_nan=False) + "\n")


def complain(error: Onnx2CaffeError) -> None:
    """Print an error and its hint to standard error."""
    aside(f"error: {error.message}")
    if error.hint:
        aside(f"\nhint: {error.hint}")


def error_json(error: Onnx2CaffeError) -> dict[str, Any]:
    """An error as plain data."""
    return {"error": error.message, "hint": error.hint, "exit_code": error.exit_code}


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO | None = None, wrap: bool = False
) -> None:
    """Print a table: aligned columns, with lines and colour on a terminal; there `wrap` lets every column wrap."""
    stream = stream or sys.stdout
    safe = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *safe, strict=True)]
    if stream.isatty() and (wrap or sum(widths[_NAMES:]) + len(widths) + _ROOM < shutil.get_terminal_size().columns):
        _rich_table(header, safe, stream, wrap)
        return
    for row in (header, *safe):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        stream.write(line.rstrip() + "\n")


_NAMES = 2
"""The first columns hold names, which a narrow terminal shortens; figures it never does."""
_ROOM = 20
"""What names need at least; a terminal with less gets plain lines, which wrap and lose nothing."""


def _rich_table(header: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO, wrap: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, name in enumerate(header):
        if wrap or place == len(header) - 1:
            shown.add_column(name, overflow="fold", min_width=len(name))
        elif place < _NAMES:
            shown.add_column(name, overflow="ellipsis", no_wrap=True)
        else:
            shown.add_column(name, no_wrap=True, min_width=max(len(row[place]) for row in (header, *rows)))
    for row in rows:
        style = "red" if row[-1].startswith("differs") else ""
        shown.add_row(*(Text(cell, style) for cell in row))
    Console(file=stream).print(shown)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Shows on a terminal what is being done; says nothing into a pipe."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(Text(f"{printable(text)} …"))
