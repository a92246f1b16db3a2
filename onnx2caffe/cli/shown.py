"""What several commands say and ask alike."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from onnx2caffe.cli.output import aside, printable, table

if TYPE_CHECKING:
    from onnx2caffe.api import Note, Pictures, Proof, Row

__all__ = ["caffe_advice", "pictures", "say_note", "say_rows"]


_NODES = 3
"""Of a note; --json and map.json have all."""


def pictures(arguments: argparse.Namespace) -> Pictures:
    """How picture files become input values."""
    from onnx2caffe.api import Pictures

    return Pictures(arguments.mean, arguments.std, arguments.scale, arguments.rgb)


def say_note(note: Note) -> None:
    """Say a note, on standard error; of many nodes the first, but for warnings."""
    shown = note.nodes if note.level == "warning" else note.nodes[:_NODES]
    rest = f" … {len(note.nodes)} in all" if len(shown) < len(note.nodes) else ""
    nodes = f" ({', '.join(shown)}{rest})" if shown else ""
    aside(printable(f"{note.level}: {note.text}{nodes}"))


def say_rows(rows: list[Row], each: bool) -> None:
    """A table of the rows; a tensor that is equal in every runtime has one line, unless `each` is wanted."""
    from onnx2caffe.verify.report import COLUMNS, cells, merged

    if rows:
        table(COLUMNS, [cells(row) for row in (rows if each else merged(rows))])


def caffe_advice(proof: Proof, arguments: argparse.Namespace) -> str:
    """The end of a summary where a real Caffe was wanted and there is none."""
    if "pycaffe" in proof.runtimes or arguments.no_caffe_run:
        return ""
    return "; no pycaffe here, `onnx2caffe setup pycaffe` makes one"
