"""One function per command: arguments to the API, results to the terminal; the exit code is returned."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx2caffe.cli.output import aside, complain, error_json, progress, say, say_json, table
from onnx2caffe.cli.shown import caffe_advice, pictures, say_note, say_rows
from onnx2caffe.errors import Onnx2CaffeError, UsageError, said_once

if TYPE_CHECKING:
    from onnx2caffe.api import Conversion
    from onnx2caffe.operators import Operator, Operators, Recipe

__all__ = ["COMMANDS"]


def _convert(arguments: argparse.Namespace) -> int:
    models: list[str] = arguments.models
    if len(models) > 1 and arguments.name:
        raise UsageError("--name is for one model", "the files of several models are named after them")
    stems = [Path(model).stem for model in models]
    if len(set(stems)) < len(stems):
        raise UsageError("two of the models have the same name", "convert them into different folders")
    codes, reports = [], []
    for model in models:
        try:
            conversion = _convert_one(model, arguments)
        except Onnx2CaffeError as problem:
            if len(models) == 1 or arguments.debug:
                raise
            aside(f"{model}:")
            complain(problem)
            codes.append(problem.exit_code)
            reports.append({"model": model, **error_json(problem)})
            continue
        reports.append({"model": model, **_conversion_json(conversion)})
        if not arguments.json:
            _say_conversion(conversion, arguments)
    if arguments.json:
        say_json(reports[0] if len(models) == 1 else reports)
    return max(codes, default=0)


def _convert_one(model: str, arguments: argparse.Namespace) -> Conversion:
    from onnx2caffe import api

    with progress() as tell:
        return api.convert(
            model,
            arguments.output_dir,
            name=arguments.name or "",
            target=arguments.target,
            input_shapes=arguments.input_shape,
            outputs=arguments.output,
            keep_bn=arguments.keep_bn,
            strip_qdq=arguments.strip_qdq,
            bgr=arguments.bgr,
            proof=not arguments.no_proof,
            caffe_run=not arguments.no_caffe_run,
            inputs=arguments.input,
            pictures=pictures(arguments),
            caffe_python=arguments.caffe_python,
            recipes=arguments.recipe,
            partition=arguments.partition,
            tail=arguments.tail,
            cuts=arguments.cut,
            renames=arguments.rename,
            require_segments=arguments.require_segments,
            min_nnie_macs=arguments.min_nnie_macs,
            cpu=arguments.cpu,
            report=arguments.report,
            hp=arguments.hp,
            single_wk=arguments.single_wk,
            cpu_c=arguments.cpu_c,
            rules=arguments.rules,
            save_intermediate=arguments.save_intermediate,
            force=arguments.force,
            check=arguments.debug,
            progress=tell,
        )


def _say_conversion(conversion: Conversion, arguments: argparse.Namespace) -> None:
    for note in conversion.notes:
        say_note(note)
    for path in (*conversion.files, conversion.map_file):
        say(f"wrote {path}")
    if conversion.summary:
        say(conversion.summary)
    proof = conversion.proof
    if proof is None:
        say(f"not proved: {conversion.layers} layers, never run (--no-proof)")
        return
    from onnx2caffe.verify.report import summary

    outputs = {port.name for port in conversion.outputs}
    say_rows([row for row in proof.rows if arguments.verbose or row.tensor in outputs], each=arguments.verbose)
    say(f"{summary(proof)}{caffe_advice(proof, arguments)}")


def _conversion_json(conversion: Conversion) -> dict[str, Any]:
    from onnx2caffe.verify.report import to_json

    return {
        "prototxt": str(conversion.prototxt),
        "caffemodel": str(conversion.caffemodel),
        "map": str(conversion.map_file),
        "inputs": [asdict(port) for port in conversion.inputs],
        "outputs": [asdict(port) for port in conversion.outputs],
        "files": [str(path) for path in conversion.files],
        "layers": conversion.layers,
        "segments": conversion.segments,
        "share": conversion.share,
        "cpu_nodes": conversion.cpu_nodes,
        "summary": conversion.summary,
        "notes": [asdict(note) for note in conversion.notes],
        "proof": to_json(conversion.proof) if conversion.proof else None,
    }


def _tvm(arguments: argparse.Namespace) -> int:
    from onnx2caffe.cli.tvm import run

    return run(arguments)


def _compare(arguments: argparse.Namespace) -> int:
    from onnx2caffe.cli.compare import run

    return run(arguments)


def _check(arguments: argparse.Namespace) -> int:
    from onnx2caffe.cli.check import run

    return run(arguments)


def _setup(arguments: argparse.Namespace) -> int:
    from onnx2caffe.runtimes.setup import install

    for name in arguments.runtimes:
        python = install(name, apt=arguments.apt, jobs=arguments.jobs, force=arguments.force)
        say(f"{name}: {python}")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from onnx2caffe import api

    states = api.doctor(arguments.caffe_python)
    if arguments.json:
        say_json([asdict(state) for state in states])
        return 0
    for state in states:
        say(f"{state.name:8}  {f'found: {state.version}, {state.where}' if state.found else 'not found'}")
        if state.missing_layers:
            say(f"          lacks the layer types {', '.join(state.missing_layers)}")
        if state.hint:
            say(f"          {state.hint}")
    return 0


def _ops(arguments: argparse.Namespace) -> int:
    from onnx2caffe import api

    found = api.ops(*arguments.names)
    if arguments.json:
        say_json(asdict(found))
        return 0
    if not arguments.names:
        _say_overview(found)
        return 0
    if found.operators:
        header = ("op", "opsets", *found.targets, *found.dialects, "limits", "tests")
        table(header, list(map(_operator_cells, found.operators)), wrap=True)
    if found.operators and found.recipes:
        say("")
    if found.recipes:
        rows = [cells for recipe in found.recipes for cells in _variant_cells(recipe)]
        table(("op or recipe", "variant", *found.targets, "what it does"), rows)
    return 0


def _say_overview(found: Operators) -> None:
    """All ops and recipes, a line each."""
    places = (*found.targets, *found.dialects)
    table(("op", *places), [(o.name, *map(o.state, places)) for o in found.operators])
    say("")
    rows = [(r.key, ", ".join(r.order[found.targets[-1]])) for r in found.recipes if len(r.variants) > 1]
    table(("recipe", f"variants, as {found.targets[-1]} tries them"), rows)
    say("")
    say("`onnx2caffe ops NAME` tells what becomes of an op and why not, and what each variant does")


def _operator_cells(entry: Operator) -> list[str]:
    name = f"{entry.name} read as {entry.read_as}" if entry.read_as else entry.name
    becomes = ("; ".join(shown) for shown in entry.columns(tuple(entry.becomes)))
    return [name, entry.opsets, *becomes, "; ".join(entry.limits), entry.rows]


def _variant_cells(recipe: Recipe) -> Iterator[list[str]]:
    for variant in recipe.variants:
        places = (str(names.index(variant.name) + 1) for names in recipe.order.values())
        yield [recipe.key, variant.name, *places, variant.does + (" (approximate)" if variant.approximate else "")]


def _inspect(arguments: argparse.Namespace) -> int:
    from onnx2caffe import api

    seen = api.inspect(arguments.model, target=arguments.target, input_shapes=arguments.input_shape)
    if arguments.json:
        say_json({**asdict(seen), "convertible": seen.convertible})
        return 0
    for what, ports in (("input", seen.inputs), ("output", seen.outputs)):
        for port in ports:
            say(f"{what}  {port.name}  {'×'.join(map(str, port.dims)) or 'scalar'}  {port.dtype}")
    say(f"opsets  {', '.join(f'{domain} {version}' for domain, version in seen.opsets.items())}")
    say(f"ops  {', '.join(f'{op} {count}' for op, count in seen.ops.items())}")
    if arguments.verbose:
        table(("tensor", "shape"), [(name, "×".join(map(str, s)) or "scalar") for name, s in seen.shapes.items()])
    for note in seen.notes:
        say_note(note)
    if seen.convertible:
        say(f"nothing stops a conversion to target {arguments.target}")
    if seen.summary:
        say(seen.summary)
    for line in said_once(seen.illegal):
        say(f"on the CPU  {line}")
    for line in (*said_once(seen.blocked), *seen.reason.splitlines()):
        say(f"blocks  {line}")
    return 0


def _completion(arguments: argparse.Namespace) -> int:
    from onnx2caffe.cli.completion import script

    for line in script(arguments.shell).splitlines():
        say(line)
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "convert": _convert,
    "tvm": _tvm,
    "compare": _compare,
    "check": _check,
    "setup": _setup,
    "doctor": _doctor,
    "ops": _ops,
    "inspect": _inspect,
    "completion": _completion,
}
"""Command name -> what runs it."""
