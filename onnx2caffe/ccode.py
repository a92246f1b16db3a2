"""A TVM program as C for a board: written beside the module, compiled for this machine and run against the model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onnx2caffe.errors import NumbersDiffer, Unsupported
from onnx2caffe.frontend import Loaded
from onnx2caffe.runtimes import c as runtime
from onnx2caffe.runtimes.base import Feeds
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.stages import FAULT
from onnx2caffe.tvm import csource
from onnx2caffe.tvm.csource import Interface
from onnx2caffe.tvm.emit import Emitted
from onnx2caffe.tvm.program import Program, Type
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.scores import Progress, Proof, Scores

__all__ = ["CCode", "prove", "write", "write_build_files"]


@dataclass(frozen=True)
class CCode:
    """The C of a model: its function, and the files by what they are."""

    interface: Interface
    files: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """How to call it, for map.json: the function's arguments in order, each with its tensor."""
        face = self.interface
        arguments = {argument.name: argument.tensor for argument in face.arguments}
        return {"header": self.files["header"], "function": face.function, "arguments": arguments}


def write(tvm: Tvm, loaded: Loaded, emitted: Emitted, folder: Path, *, name: str, opt_level: int) -> CCode:
    """Write C sources of an emitted model; `tvm` then holds another program.

    Raises:
        Unsupported: TVM has no C for an operator, or its C would call TVM's runtime; its node is named.
        RuntimeCrash: TVM died.

    """
    graph = loaded.model.graph  # which has the inputs that something reads
    inputs = [(v.name or "", given.type) for v, given in zip(graph.inputs, emitted.program.inputs, strict=True)]
    values = [emitted.values[value] for value in graph.outputs]
    outputs = [(info.name, Type(v.dtype, info.shape)) for info, v in zip(loaded.outputs, values, strict=True)]
    face = csource.interface(name, emitted.program, inputs, outputs)
    try:
        texts = _sources(tvm, csource.renamed(emitted.program), face, folder, opt_level)
    except Unsupported as problem:
        raise _named(tvm, emitted.program, face, folder, opt_level) or problem from problem
    _write(folder, texts)
    return CCode(face, csource.file_names(face.name))


def _sources(tvm: Tvm, program: Program, face: Interface, folder: Path, opt_level: int) -> dict[str, str]:
    tvm.load(program.to_json(), program.arrays)
    archive = folder / f"{face.name}.sources.tar"
    try:
        tvm.write_c(face.name, opt_level, archive)
        return csource.sources(archive, face)
    finally:
        archive.unlink(missing_ok=True)


def _named(tvm: Tvm, program: Program, face: Interface, folder: Path, opt_level: int) -> Unsupported | None:
    """What to say of the first part that has no C by itself either; None where each has."""
    for what, part in _parts(program, face):
        try:
            _sources(tvm, csource.renamed(part), face, folder, opt_level)
        except Unsupported as problem:
            return Unsupported(f"{what}: {problem.message}", problem.hint)
    return None


def _parts(program: Program, face: Interface) -> Iterator[tuple[str, Program]]:
    """Each operator and each constant output as a program, with what to call it."""
    for number, call in enumerate(program.calls):
        yield f"node {call.node!r}: {call.fn}", program.alone(number)
    for output, at in zip(face.outputs, program.outputs, strict=True):
        if "constant" in at:
            constant = Program(constants=program.constants, outputs=[at])
            yield f"output {output.tensor!r}, which is constant", constant.without_unread()


def write_build_files(folder: Path, library: str, codes: Sequence[CCode]) -> dict[str, str]:
    """Write a Makefile and a CMakeLists.txt for one library of all; their names by what they are."""
    names = [code.interface.name for code in codes]
    _write(folder, csource.build_files(csource.identifier(library), names))
    return {"make": csource.MAKEFILE, "cmake": "CMakeLists.txt"}


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii")


def prove(
    code: CCode, folder: Path, model: UserModel, runs: Sequence[Feeds], progress: Progress = lambda _: None
) -> Proof | None:
    """Compile the C for this machine and judge its outputs; None where there is no compiler.

    Raises:
        RuntimeCrash: it does not compile, or crashes.
        NumbersDiffer: it computes something else.

    """
    cc = runtime.compiler()
    if cc is None:
        return None
    progress("compiling the C for this machine")
    face = code.interface
    scores = Scores(model, runs, [a.tensor for a in face.outputs], progress)
    types = [(a.type.dtype, a.type.shape) for a in face.outputs]
    units = [folder / code.files[what] for what in ("c", "operators")]
    with contextlib.closing(runtime.CLibrary(units, face.function, cc)) as library:
        for run, feeds in enumerate(runs):
            progress("running the C")
            given = [np.asarray(feeds[a.tensor], a.type.dtype).reshape(a.type.shape) for a in face.inputs]
            found = {a.tensor: value for a, value in zip(face.outputs, library.run(given, types), strict=True)}
            scores.add(run, {"c": found}, {a.tensor: (face.function, a.name) for a in face.outputs})
        proof = scores.proof({"c": library.version()})
    if broken := proof.first_difference:
        j = broken.judgement
        raise NumbersDiffer(
            f"the C computes another {broken.tensor!r} on input {broken.run + 1}: "
            f"{j.why or f'relative {j.error:.1e} where {j.allowed:.1e} is allowed'}\nnothing was written",
            FAULT,
        )
    return proof
