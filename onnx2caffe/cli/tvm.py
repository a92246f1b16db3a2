"""`onnx2caffe tvm`: what was written, then the comparison."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from onnx2caffe.cli.output import progress, say, say_json
from onnx2caffe.cli.shown import pictures, say_note, say_rows

if TYPE_CHECKING:
    from onnx2caffe.api import TvmExport

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Export; every failure is an exception."""
    from onnx2caffe import api

    with progress() as tell:
        export = api.export_tvm(
            arguments.model,
            arguments.output_dir,
            name=arguments.name or "",
            dialect=arguments.dialect,
            target=arguments.target,
            cc=arguments.cc,
            input_shapes=arguments.input_shape,
            outputs=arguments.output,
            opt_level=arguments.opt_level,
            compile=arguments.compile,
            compare=arguments.compare,
            inputs=arguments.input,
            pictures=pictures(arguments),
            save_intermediate=arguments.save_intermediate,
            force=arguments.force,
            check=arguments.debug,
            progress=tell,
        )
    if arguments.json:
        say_json({"model": arguments.model, **_json(export)})
    else:
        _say(export, arguments.verbose)
    return 0


def _say(export: TvmExport, verbose: bool) -> None:
    for note in export.notes:
        say_note(note)
    for path in (*export.files.values(), export.map_file):
        say(f"wrote {path}")
    if export.proof is None:
        say(f"not compared: {export.calls} operator{'s' * (export.calls != 1)}, never run (--no-compare)")
        return
    from onnx2caffe.verify.report import summary

    outputs = {port.name for port in export.outputs}
    say_rows([row for row in export.proof.rows if verbose or row.tensor in outputs], each=verbose)
    say(summary(export.proof))


def _json(export: TvmExport) -> dict[str, Any]:
    from onnx2caffe.verify.report import to_json

    return {
        "dialect": export.dialect,
        "files": {what: str(path) for what, path in export.files.items()},
        "map": str(export.map_file),
        "inputs": [asdict(port) for port in export.inputs],
        "outputs": [asdict(port) for port in export.outputs],
        "calls": export.calls,
        "notes": [asdict(note) for note in export.notes],
        "proof": to_json(export.proof) if export.proof else None,
    }
