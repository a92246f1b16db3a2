"""The package as functions: what the command line does, with dataclasses as results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from onnx2caffe import checking, comparison, driver, inventory, operators, tvm_driver
from onnx2caffe.canon import Note, Shape
from onnx2caffe.checking import CheckOptions, Report
from onnx2caffe.comparison import CompareOptions, Comparison
from onnx2caffe.driver import Conversion, Options
from onnx2caffe.errors import UsageError
from onnx2caffe.inventory import Inspection
from onnx2caffe.operators import Operators
from onnx2caffe.runtimes.doctor import RuntimeStatus, examine
from onnx2caffe.runtimes.setup import install
from onnx2caffe.targets.nnie.markers import Marks
from onnx2caffe.targets.nnie.rules import Finding
from onnx2caffe.tvm_driver import TvmExport, TvmOptions
from onnx2caffe.verify.inputs import Pictures
from onnx2caffe.verify.measure import Judgement, Verdict
from onnx2caffe.verify.scores import Proof, Row

__all__ = [
    "Comparison",
    "Conversion",
    "Finding",
    "Inspection",
    "Judgement",
    "Note",
    "Operators",
    "Pictures",
    "Proof",
    "Report",
    "Row",
    "RuntimeStatus",
    "TvmExport",
    "Verdict",
    "check",
    "compare",
    "convert",
    "doctor",
    "export_tvm",
    "inspect",
    "ops",
    "setup",
]

AnyPath = str | os.PathLike[str]


def _check_several(**given: Sequence[str]) -> None:
    """A text is a sequence of letters, which nobody means."""
    for name, value in given.items():
        if isinstance(value, str):
            raise UsageError(f"{name}={value!r} is one name, where several are meant", f"{name}=[{value!r}]")


def _path(path: AnyPath | None) -> Path | None:
    return None if path is None else Path(path)


def _silent(_: str) -> None:
    pass


def convert(
    model: AnyPath,
    folder: AnyPath | None = None,
    *,
    name: str = "",
    target: str = "nnie",
    input_shapes: Mapping[str, Shape] | None = None,
    outputs: Sequence[str] = (),
    keep_bn: bool = False,
    strip_qdq: bool = False,
    bgr: Sequence[str] = (),
    proof: bool = True,
    caffe_run: bool = True,
    inputs: Sequence[str] = (),
    pictures: Pictures | None = None,
    caffe_python: AnyPath | None = None,
    recipes: Mapping[str, str] | None = None,
    partition: bool | None = None,
    tail: str = "",
    cuts: Sequence[str] = (),
    renames: Mapping[str, str] | None = None,
    require_segments: int | None = None,
    min_nnie_macs: float = 0.0,
    cpu: Sequence[str] = (),
    report: Sequence[str] = (),
    hp: Sequence[str] = (),
    single_wk: bool = False,
    cpu_c: bool = False,
    rules: AnyPath | None = None,
    save_intermediate: AnyPath | None = None,
    force: bool = False,
    check: bool = False,
    progress: Callable[[str], None] = _silent,
) -> Conversion:
    """Convert an ONNX file to `folder/name.prototxt`, `.caffemodel` and `.map.json`, proved by numbers.

    Args:
        model: the ONNX file.
        folder: where to write; default: a folder in the working directory named after the model.
        name: of the files; default: the model's.
        target: "nnie", "caffe" or "bvlc".
        input_shapes: shapes for inputs that leave dimensions free.
        outputs: inner tensors at which the net shall end.
        keep_bn: keep BatchNorm layers instead of folding them into convolutions.
        strip_qdq: keep real numbers where the model rounds them to integers (QuantizeLinear and its kin).
        bgr: inputs for R, G, B planes whose net shall take B, G, R; the turn stays ONNX in front (target nnie).
        proof: run the written files against the model before they are moved into place.
        caffe_run: let the proof use a real Caffe too, where there is one.
        inputs: `NAME=FILE` (.npy, .png, .jpg) or `NAME=VALUE`, further inputs for the proof.
        pictures: how picture files become input values.
        caffe_python: a Python that has `caffe`.
        recipes: recipe key -> variant (see `ops`).
        partition: leave to ONNX what the target cannot have; None: the target's choice, False: refuse.
        tail: where the Caffe part ends: "auto" before the arithmetic that decodes boxes, "none" after the last layer
            with weights, "full" as late as possible; "": the target's choice.
        cuts: tensors, nodes or layers behind which everything stays ONNX.
        renames: output tensor -> its blob's name.
        require_segments: how many Caffe nets it must become.
        min_nnie_macs: the least share (0 … 1) of the multiply-accumulates that must run on Caffe nets.
        cpu: tensors, nodes or layers marked `_cpu` for nnie_mapper, in a prototxt beside the plain one.
        report: those whose blob is marked `_report`.
        hp: those marked `_hp`.
        single_wk: write several nets as one prototxt too, with Custom layers between them.
        cpu_c: write what stays ONNX as C for the board's CPU too; needs Relay (see `setup`).
        rules: TOML that overrides or adds rules of nnie_mapper (docs/nnie-rules.md); what they refuse is not written.
        save_intermediate: a folder for the model as it is read, after every pass that changes it, and at the end.
        force: write beside files that no export put there.
        check: check the model's invariants after every pass.
        progress: told what happens, in a few words.

    Raises:
        Onnx2CaffeError: one of its kinds, see `onnx2caffe.errors`; nothing is written then.

    """
    _check_several(outputs=outputs, bgr=bgr, inputs=inputs, cuts=cuts, cpu=cpu, report=report, hp=hp)
    options = Options(
        folder=_path(folder),
        name=name,
        target=target,
        input_shapes=input_shapes or {},
        outputs=outputs,
        keep_bn=keep_bn,
        strip_qdq=strip_qdq,
        bgr=bgr,
        proof=proof,
        caffe_run=caffe_run,
        inputs=inputs,
        pictures=pictures or Pictures(),
        caffe_python=_path(caffe_python),
        recipes=recipes or {},
        partition=partition,
        tail=tail,
        cuts=cuts,
        renames=renames or {},
        require_segments=require_segments,
        min_nnie_macs=min_nnie_macs,
        marks=Marks(cpu, report, hp),
        single_wk=single_wk,
        cpu_c=cpu_c,
        rules=_path(rules),
        save_intermediate=_path(save_intermediate),
        force=force,
        check=check,
        progress=progress,
    )
    return driver.convert(Path(model), options)


def export_tvm(
    model: AnyPath,
    folder: AnyPath | None = None,
    *,
    name: str = "",
    dialect: str = "relay",
    target: str = "host",
    cc: str = "",
    input_shapes: Mapping[str, Shape] | None = None,
    outputs: Sequence[str] = (),
    opt_level: int = 3,
    compile: bool = True,
    compare: bool = True,
    inputs: Sequence[str] = (),
    pictures: Pictures | None = None,
    save_intermediate: AnyPath | None = None,
    force: bool = False,
    check: bool = False,
    progress: Callable[[str], None] = _silent,
) -> TvmExport:
    """Export an ONNX file as a TVM module: text, JSON, weights, library and `name.map.json` in `folder`.

    Args:
        model: the ONNX file.
        folder: where to write; default: a folder in the working directory named after the model.
        name: of the files; default: the model's.
        dialect: "relay" or "relax".
        target: "host", a board ("hi3516dv300" …), "armhf", "aarch64", "opencl", "mali", "c", or as TVM writes it
            ("llvm -mcpu=…").
        cc: a compiler that links the library for the target; "": it stays objects where another machine is the target.
        input_shapes: shapes for inputs that leave dimensions free.
        outputs: inner tensors at which the module shall end.
        opt_level: how far TVM optimises the library (0 … 4).
        compile: build and write a library.
        compare: run the module, without optimisation and with every tensor as an output, against the model first.
        inputs: `NAME=FILE` (.npy, .png, .jpg) or `NAME=VALUE`, further inputs for the comparison.
        pictures: how picture files become input values.
        save_intermediate: a folder for the model as it is read, after every pass that changes it, and at the end.
        force: write beside files that no export put there.
        check: check the model's invariants after every pass.
        progress: told what happens, in a few words.

    Raises:
        Onnx2CaffeError: one of its kinds, see `onnx2caffe.errors`; nothing is written then.

    """
    options = TvmOptions(
        folder=_path(folder),
        name=name,
        dialect=dialect,
        target=target,
        cc=cc,
        input_shapes=input_shapes or {},
        outputs=outputs,
        opt_level=opt_level,
        compile=compile,
        compare=compare,
        inputs=inputs,
        pictures=pictures or Pictures(),
        save_intermediate=_path(save_intermediate),
        force=force,
        check=check,
        progress=progress,
    )
    return tvm_driver.export_tvm(Path(model), options)


def compare(
    model: AnyPath,
    prototxt: AnyPath | None = None,
    caffemodel: AnyPath | None = None,
    *,
    names: Mapping[str, str] | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
    runs: int | None = None,
    inputs: Sequence[str] = (),
    pictures: Pictures | None = None,
    caffe_python: AnyPath | None = None,
    caffe_run: bool = True,
    runtimes: Sequence[str] = (),
    save_inputs: AnyPath | None = None,
    progress: Callable[[str], None] = _silent,
) -> Comparison:
    """Run a Caffe net, whoever wrote it, or the model in TVM against an ONNX file, and compare every tensor.

    Args:
        model: the ONNX file.
        prototxt: the net; a map.json of ours beside it tells which blob is which tensor, else names do. None where
            `runtimes` need no net.
        caffemodel: its weights.
        names: blob -> tensor, where names alone do not tell.
        input_shapes: shapes for inputs that leave dimensions free (default: the net's own).
        runs: how many structured inputs; default 3, or none when `inputs` gives files.
        inputs: `NAME=FILE` or `NAME=VALUE`, as for `convert`.
        pictures: how picture files become input values.
        caffe_python: a Python that has `caffe`.
        caffe_run: use a real Caffe too, where there is one.
        runtimes: of "builtin", "pycaffe", "relay" and "relax"; "all" are those of them that are here. Default: builtin,
            and pycaffe where there is one.
        save_inputs: a folder for what goes into each net, the mapper's calibration data ([image_type] 0).
        progress: told what happens, in a few words.

    Raises:
        Onnx2CaffeError: one of its kinds. Numbers that differ are no error here: see `Comparison.ok`.

    """
    options = CompareOptions(
        names=names or {},
        input_shapes=input_shapes or {},
        runs=runs,
        inputs=inputs,
        pictures=pictures or Pictures(),
        caffe_python=_path(caffe_python),
        caffe_run=caffe_run,
        runtimes=runtimes,
        save_inputs=_path(save_inputs),
        progress=progress,
    )
    return comparison.compare(Path(model), _path(prototxt), _path(caffemodel), options)


def check(
    net: AnyPath | None = None,
    *,
    target: str = "nnie",
    soc: str = "",
    cfg: AnyPath | None = None,
    rules: AnyPath | None = None,
    mapper_log: AnyPath | None = None,
    partition: bool | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
    recipes: Mapping[str, str] | None = None,
) -> Report:
    """Hold a prototxt, whoever wrote it, or an ONNX file against the rules of a target; nothing is run.

    Args:
        net: a .prototxt (no caffemodel is needed), or an .onnx file, which is converted in memory.
        target: "nnie", "caffe" or "bvlc".
        soc: a chip with an NNIE, such as "hi3516dv300".
        cfg: the mapper's cfg for this prototxt, for the rules that need it; without a net, the one that the cfg names.
        rules: TOML that overrides or adds rules (see docs/nnie-rules.md).
        mapper_log: what the mapper said; its messages become findings, with the ONNX nodes behind the layers.
        partition: of an ONNX file, leave to the CPU what the target cannot have, as `convert` does (None: the target's
            choice); False: such nodes are refused.
        input_shapes: shapes for inputs that leave dimensions free.
        recipes: recipe key -> variant (see `ops`).

    Raises:
        Onnx2CaffeError: one of its kinds. Findings are no error here: see `Report.at_least`.

    """
    options = CheckOptions(
        target=target,
        soc=soc,
        cfg=_path(cfg),
        rules=_path(rules),
        mapper_log=_path(mapper_log),
        partition=partition,
        input_shapes=input_shapes or {},
        recipes=recipes or {},
    )
    return checking.check(_path(net), options)


def inspect(model: AnyPath, *, target: str = "nnie", input_shapes: Mapping[str, Shape] | None = None) -> Inspection:
    """Inputs, outputs, ops and shapes of an ONNX file, and what would stop its conversion."""
    return inventory.inspect(Path(model), target, input_shapes)


def doctor(caffe_python: AnyPath | None = None) -> list[RuntimeStatus]:
    """The state of every runtime on this machine."""
    return examine(_path(caffe_python))


def ops(*names: str) -> Operators:
    """What every ONNX op becomes on each target, and the variants of every recipe; of all, or of those named."""
    table = operators.load()
    return table.about(names) if names else table


def setup(runtime: str) -> Path:
    """Make a runtime ("pycaffe", "relay", "relax"); the Python that has it."""
    return install(runtime)
