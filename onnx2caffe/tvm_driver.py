"""The order of things on the TVM exit: load, stop where the method stops, rewrite, emit, compare, build, write."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx2caffe import ccode, mapfile, programs
from onnx2caffe.canon import Note, Shape
from onnx2caffe.ccode import CCode
from onnx2caffe.errors import NoReference, NumbersDiffer, RuntimeMissing, Unsupported, UsageError, advised
from onnx2caffe.export import MAP_SUFFIX, Staging, check_folder
from onnx2caffe.filekind import ONNX, need
from onnx2caffe.frontend import Loaded
from onnx2caffe.mapfile import ExportMap, Place, Port, TvmSegment
from onnx2caffe.programs import Translation
from onnx2caffe.runtimes import tvm as runtime
from onnx2caffe.runtimes.base import Feeds
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.stages import FAULT, SEEDS, TOOL, Observer, plain_name, sha256, unjudged_notes, writing
from onnx2caffe.tvm import targets
from onnx2caffe.tvm.emit import Emitted
from onnx2caffe.tvm.program import Program
from onnx2caffe.tvm.registry import DIALECTS
from onnx2caffe.verify.inputs import Pictures, all_runs, check_pictures
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.replay import culprit
from onnx2caffe.verify.scores import Progress, Proof, Row

__all__ = ["DIALECTS", "CPart", "TvmExport", "TvmOptions", "export_tvm", "part_as_c"]


OPT_LEVELS = range(5)
"""How far TVM may optimise."""


@dataclass(frozen=True, kw_only=True)
class TvmOptions:
    """What an export to TVM may be told. Defaults are those of the command line."""

    folder: Path | None = None
    name: str = ""
    dialect: str = "relay"
    target: str = "host"
    cc: str = ""
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    opt_level: int = 3
    compile: bool = True
    compare: bool = True
    inputs: Sequence[str] = ()
    pictures: Pictures = field(default_factory=Pictures)
    save_intermediate: Path | None = None
    force: bool = False
    check: bool = False
    progress: Progress = lambda _: None


@dataclass(frozen=True)
class TvmExport:
    """What an export wrote and proved.

    `files`: all but the map, by what they are: "text", "json", "params" and, unless `compile` was off, "library",
    or for target c "header", "c", "operators", "private", "make", "cmake".
    `calls`: how many TVM operators. `proof` is None where nothing was compared.
    """

    dialect: str
    files: Mapping[str, Path]
    map_file: Path
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    calls: int
    notes: tuple[Note, ...]
    proof: Proof | None


@dataclass(frozen=True)
class CPart:
    """A part of an export as C, and what was proved."""

    code: CCode
    proof: Proof | None
    notes: tuple[Note, ...]


def part_as_c(part: Path, name: str, compare: bool, progress: Progress) -> CPart:
    """Write an ONNX file as C beside it.

    Raises:
        NotConvertible: Relay lacks what is named.
        Unsupported: an operator's C would call TVM's runtime.
        NumbersDiffer: the C computes something else.
        RuntimeMissing: there is no TVM with Relay, or it has no C for an operator.

    """
    options = TvmOptions(folder=part.parent, name=name, target="c", compare=compare, progress=progress)
    return _Exporting(part, options).c()


def export_tvm(path: Path, options: TvmOptions) -> TvmExport:
    """Export one model.

    Raises:
        UsageError: a wrong option, or a folder that may not be written.
        UnreadableFile: not an ONNX file.
        NotConvertible: the method stops at, or the dialect lacks, what is named.
        Unsupported: the target lacks what is named.
        NoReference: onnxruntime cannot run the model.
        NumbersDiffer: the module computes something else; nothing is left.
        RuntimeMissing: there is no TVM with this dialect, or no compiler for the target.

    """
    return _Exporting(path, options).run()


def _check(options: TvmOptions) -> None:
    """What the command line lets nobody say."""
    if options.dialect not in DIALECTS:
        raise UsageError(f"there is no dialect {options.dialect!r}", f"one of: {', '.join(DIALECTS)}")
    if options.opt_level not in OPT_LEVELS:
        raise UsageError(f"there is no opt_level {options.opt_level!r}", f"0 … {OPT_LEVELS[-1]}")


class _Exporting:
    def __init__(self, path: Path, options: TvmOptions) -> None:
        self._path, self._options = path, options
        need(path, ONNX)
        check_pictures(options.inputs, options.pictures)
        _check(options)
        self._name = plain_name(options.name or path.stem)
        self._folder = options.folder or Path(path.stem)
        self._target = targets.parse(options.target)
        self._cc = self._linker()
        if self._is_c and options.dialect != "relay":
            raise UsageError("--target c: the C of relax would need TVM's virtual machine", "--dialect relay")

    def run(self) -> TvmExport:
        check_folder(self._folder, self._options.force)
        with Staging(self._folder) as staging:
            translation = self._translated()
            self._check_sizes(translation)
            with contextlib.closing(runtime.find(self._options.dialect)) as tvm:
                tvm.check_target(self._target)
                library = self._library(tvm)
                proof = self._checked(tvm, translation)
                if library:
                    self._options.progress(f"building for {self._options.target}")
                    tvm.build(self._target, self._options.opt_level)
                self._options.progress("writing")
                with writing(self._folder):
                    files, called = self._write(tvm, staging.path, library), {}
                    if self._is_c and self._options.compile:
                        code, proof = self._c(tvm, translation, staging.path, proof)
                        files |= code.files | ccode.write_build_files(staging.path, code.interface.function, [code])
                        called = code.to_json()
                    export = self._map(tvm, translation, staging.path, files, called)
            staging.commit(list(export.files), self._map_name)
        return TvmExport(
            self._options.dialect,
            {what: self._folder / name for what, name in files.items()},
            self._folder / self._map_name,
            tuple(export.inputs),
            tuple(export.outputs),
            len(translation.emitted.program.calls),
            (*export.notes, *unjudged_notes(proof)),
            proof,
        )

    def c(self) -> CPart:
        """The model as C in the folder, which is another export's."""
        translation = self._translated()
        with contextlib.closing(runtime.find(self._options.dialect)) as tvm:
            proof = self._checked(tvm, translation)
            code, proof = self._c(tvm, translation, self._folder, proof)
        return CPart(code, proof, tuple(translation.loaded.notes))

    def _translated(self) -> Translation:
        loaded = self._load()
        if self._options.inputs and not self._options.compare:
            loaded.notes.append(Note("note", "--input has no effect: --no-compare runs nothing"))
        loaded.notes.extend(self._idle())
        observe = Observer(self._options.save_intermediate, self._options.check)
        observe("load", loaded.model)
        self._options.progress(f"translating to {self._options.dialect}")
        return programs.translated(loaded, self._options.dialect, observe, plain_c=self._is_c)

    def _check_sizes(self, translation: Translation) -> None:
        """Stop at sizes that depend on data on a GPU: Relay's kernels for NonMaxSuppression crash, Relax has none."""
        unknown = [output.name for output in translation.loaded.outputs if -1 in output.shape]
        if unknown and self._options.compile and targets.is_gpu(self._target):
            raise Unsupported(
                f"--target {self._options.target}: the shape of output {unknown[0]!r} depends on data",
                "--target with a CPU has it; --no-compile writes the module alone",
            )

    def _idle(self) -> Iterator[Note]:
        """What was asked for in vain."""
        if self._is_c and not self._options.compile:
            yield Note("note", "--target c has no effect: --no-compile writes no C")
        if self._cc and (self._is_c or not self._options.compile):
            why = "--target c links nothing" if self._is_c else "--no-compile builds no library"
            yield Note("note", f"--cc has no effect: {why}")

    @property
    def _map_name(self) -> str:
        return self._name + MAP_SUFFIX

    def _load(self) -> Loaded:
        self._options.progress(f"reading {self._path.name}")
        return programs.read(self._path, self._options.input_shapes, self._options.outputs)

    @property
    def _is_c(self) -> bool:
        return targets.is_c(self._target)

    def _linker(self) -> str:
        """The compiler that was asked for; "" where none was.

        Raises:
            RuntimeMissing: it is not there.
            UsageError: it makes code for another machine than the target.

        """
        cc = self._options.cc
        found = shutil.which(cc) if cc else ""
        of_an_sdk = "put its SDK's bin folder on PATH or name it in full; Debian's: "
        hint = (
            of_an_sdk * targets.is_foreign(self._target) + f"apt-get install {targets.compiler_package(self._target)}"
        )
        if found is None:
            raise RuntimeMissing(f"there is no compiler {cc}", hint)
        machine = _machine(found) if found and not self._is_c else ""
        if machine and not targets.fits(self._target, machine):
            raise UsageError(f"--cc {cc} links for {machine}, which --target {self._options.target} is not", hint)
        return found

    def _library(self, tvm: Tvm) -> str:
        """The name of the file for what is built, "" for none. Objects where nothing here links them.

        Raises:
            RuntimeMissing: there is no compiler although this machine is the target.

        """
        if self._is_c or not self._options.compile:
            return ""
        if not self._cc and targets.is_foreign(self._target):
            return f"{self._name}.tar"
        if not self._cc and not tvm.links:
            raise RuntimeMissing("no C++ compiler links libraries here", "apt-get install g++, or --no-compile")
        return f"{self._name}.so"

    def _checked(self, tvm: Tvm, translation: Translation) -> Proof | None:
        """Make the module in TVM: its types are checked, and its numbers unless `compare` is off."""
        self._options.progress(f"making the module in {tvm.name}")
        translation.make(tvm)
        if not self._options.compare:
            return None
        with advised(NoReference, "--no-compare exports without a comparison"):
            return self._prove(tvm, translation)

    def _runs(self, loaded: Loaded) -> list[Feeds]:
        return list(all_runs(loaded.inputs, SEEDS, self._options.inputs, self._options.pictures))

    def _prove(self, tvm: Tvm, translation: Translation) -> Proof:
        model, runs = translation.user_model(self._path), self._runs(translation.loaded)
        proof = translation.proved(tvm, model, runs, self._options.progress)
        if broken := proof.first_difference:
            raise NumbersDiffer(*self._complaint(proof, broken, model, runs[broken.run]))
        return proof

    def _c(self, tvm: Tvm, translation: Translation, folder: Path, proof: Proof | None) -> tuple[CCode, Proof | None]:
        """Write C; what was proved, with it."""
        loaded, emitted = translation.loaded, translation.emitted
        self._options.progress("writing C")
        code = ccode.write(tvm, loaded, emitted, folder, name=self._name, opt_level=self._options.opt_level)
        if proof is None:
            return code, None
        model = UserModel(self._path, (), translation.outputs, loaded.half)
        run = ccode.prove(code, folder, model, self._runs(loaded), self._options.progress)
        if run is None:
            loaded.notes.append(Note("warning", "the C was not run: there is no C compiler here (apt-get install gcc)"))
        return code, proof if run is None else proof.joined(run)

    def _complaint(self, proof: Proof, broken: Row, model: UserModel, feeds: Feeds) -> tuple[str, str]:
        self._options.progress("looking for the step that did it")
        j = broken.judgement
        why = j.why or f"relative {j.error:.1e} where {j.allowed:.1e} is allowed, cosine {j.cosine:.6f}"
        different = len({row.tensor for row in proof.rows if row.judgement.verdict == j.verdict})
        lines = [
            f"tensor {broken.tensor!r} differs in {broken.runtime} on input {broken.run + 1}: {why}",
            f"{broken.layer} computes it; it is the first of {different} that differ",
            culprit(lambda: self._load().model, programs.passes(), model, feeds, broken),
            "nothing was written",
        ]
        return "\n".join(lines), f"{FAULT}; --no-compare writes the files unproved"

    def _write(self, tvm: Tvm, folder: Path, library: str) -> dict[str, str]:
        """Write the module and what was built; the files' names by what they are."""
        stem = f"{self._name}.{self._options.dialect}"
        files = {"text": f"{stem}.txt", "json": f"{stem}.json", "params": f"{stem}.params"}
        if library:
            files["library"] = library
        tvm.write(folder / stem, folder / library if library else None, self._cc or None)
        return files

    def _map(
        self, tvm: Tvm, translation: Translation, folder: Path, files: Mapping[str, str], called: Mapping[str, Any]
    ) -> ExportMap:
        """Write map.json, after all other files; `called`: how to call the C."""
        loaded = translation.loaded
        places = _places(loaded, translation.emitted)
        build = self._build(tvm, translation.emitted.program)
        segment = TvmSegment(self._options.dialect, files, *places, build, called)
        export = ExportMap(
            tool=TOOL,
            target="tvm",
            source_file=self._path.name,
            source_sha256=loaded.sha256,
            files={name: sha256(folder / name) for name in files.values()},
            inputs=[Port(i.name, i.shape, i.dtype) for i in loaded.inputs],
            outputs=[Port(o.name, o.shape, o.dtype) for o in loaded.outputs],
            segments=[segment],
            tensors={},
            notes=loaded.notes,
        )
        mapfile.write(export, folder / self._map_name)
        return export

    def _build(self, tvm: Tvm, program: Program) -> dict[str, Any]:
        """What was built for what; `executor`: the part of TVM's runtime that runs the library."""
        built = {"runtime": tvm.version(), "target": self._target, "opt_level": self._options.opt_level}
        if self._is_c:
            return built
        return {**built, "executor": "graph" if self._options.dialect == "relay" and program.is_sized else "vm"}


def _machine(compiler: str) -> str:
    """The triple of the machine that a compiler makes code for; "" where it does not say."""
    try:
        said = subprocess.run(
            [compiler, "-dumpmachine"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if said.returncode else said.stdout.strip()


def _places(loaded: Loaded, emitted: Emitted) -> tuple[dict[str, Place], dict[str, Place]]:
    """The user's inputs by their names in the module, the outputs by their numbers."""
    graph = loaded.model.graph
    inputs = {
        value.name or "": Place(given.name, given.type.shape)
        for value, given in zip(graph.inputs, emitted.program.inputs, strict=True)
    }
    return inputs, {output.name: Place(str(i), output.shape) for i, output in enumerate(loaded.outputs)}
