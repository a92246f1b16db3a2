"""`onnx2caffe compare`: a table of tensors, then the first that differs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from onnx2caffe.cli.output import aside, progress, say, say_json, table
from onnx2caffe.cli.shown import caffe_advice, pictures, say_note, say_rows

if TYPE_CHECKING:
    from onnx2caffe.api import Comparison, Row

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Compare; 1 where a tensor differs."""
    from onnx2caffe import api
    from onnx2caffe.verify.report import to_json

    with progress() as tell:
        result = api.compare(
            arguments.model,
            arguments.prototxt,
            arguments.caffemodel,
            names=arguments.map,
            input_shapes=arguments.input_shape,
            runs=arguments.runs,
            inputs=arguments.input,
            pictures=pictures(arguments),
            caffe_python=arguments.caffe_python,
            caffe_run=not arguments.no_caffe_run,
            runtimes=arguments.runtime,
            save_inputs=arguments.save_inputs,
            progress=tell,
        )
    for note in result.notes:
        say_note(note)
    if arguments.json:
        notes = [note.text for note in result.notes]
        say_json({**to_json(result.proof), "unmapped": list(result.unmapped), "notes": notes})
    else:
        _say(result, arguments)
    return 0 if result.ok else 1


def _say(result: Comparison, arguments: argparse.Namespace) -> None:
    from onnx2caffe.verify.report import summary

    proof, what = result.proof, "blob" if arguments.prototxt else "value"
    _say_rows(result, arguments)
    if result.unmapped:
        count = len(result.unmapped)
        aside(f"note: no {what} was found for {count} of the model's tensors, e.g. {result.unmapped[0]!r}")
    if first := proof.first_difference:
        say(f"first that differs: {first.tensor!r}, layer {first.layer!r}")
    say(f"{summary(proof)}{'' if arguments.runtime else caffe_advice(proof, arguments)}")


def _say_rows(result: Comparison, arguments: argparse.Namespace) -> None:
    """Up to the first tensor that differs, or all; several runtimes that were asked for stand side by side."""
    from onnx2caffe.verify.report import rows_to_first_difference, side_by_side

    proof = result.proof
    rows: list[Row] = list(proof.rows if arguments.all else rows_to_first_difference(proof))
    left = len(proof.rows) - len(rows)
    if arguments.runtime and len(proof.runtimes) > 1:
        shown = {row.tensor for row in rows}
        rows = [row for row in proof.rows if row.tensor in shown]
        left = len({row.tensor for row in proof.rows} - shown)
        table(*side_by_side(rows, tuple(proof.runtimes)))
    else:
        say_rows(rows, each=arguments.all)
    if left:
        say(f"… {left} more rows after the first that differs: --all shows them")
