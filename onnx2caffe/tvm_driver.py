"""The order of things on the TVM exit: load, stop where the method stops, rewrite, emit, compare, build, write."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx2caffe import canon, mapfile
from onnx2caffe.canon import Note, Shape
from onnx2caffe.errors import NumbersDiffer, RuntimeMissing
from onnx2caffe.export import MAP_SUFFIX, Staging, check_folder
from onnx2caffe.frontend import Loaded, load
from onnx2caffe.mapfile import ExportMap, Place, Port, TvmSegment
from onnx2caffe.passes import pipeline
from onnx2caffe.passes.base import Pass
from onnx2caffe.runtimes import tvm as runtime
from onnx2caffe.runtimes.base import Feeds
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.stages import REPORT, SEEDS, TOOL, Observer, plain_name, unjudged_notes, writing
from onnx2caffe.tvm import stops, targets
from onnx2caffe.tvm.emit import Emitted, emit
from onnx2caffe.tvm.registry import DIALECTS
from onnx2caffe.verify import tvm as proving
from onnx2caffe.verify.inputs import Pictures, all_runs
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.replay import find_culprit
from onnx2caffe.verify.scores import Progress, Proof, Row

__all__ = ["DIALECTS", "TvmExport", "TvmOptions", "export_tvm"]


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

    `files`: all but the map, by what they are: "text", "json", "params" and, unless `compile` was off, "library".
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


def export_tvm(path: Path, options: TvmOptions) -> TvmExport:
    """Export one model.

    Raises:
        UsageError: a wrong option, or a folder that may not be written.
        UnreadableFile: not an ONNX file.
        NotConvertible: the method stops at, or the dialect lacks, what is named.
        NoReference: onnxruntime cannot run the model.
        NumbersDiffer: the module computes something else; nothing is left.
        RuntimeMissing: there is no TVM with this dialect, or no compiler for the target.

    """
    return _Exporting(path, options).run()


class _Exporting:
    def __init__(self, path: Path, options: TvmOptions) -> None:
        self._path, self._options = path, options
        self._name = plain_name(options.name or path.stem)
        self._folder = options.folder or Path(path.stem)
        self._target = targets.parse(options.target)
        self._cc = self._linker()

    def run(self) -> TvmExport:
        check_folder(self._folder, self._options.force)
        with Staging(self._folder) as staging:
            loaded = self._load()
            observe = Observer(self._options.save_intermediate, self._options.check)
            observe("load", loaded.model)
            pipeline.run(loaded.model, self._passes(), observe)
            self._options.progress(f"emitting {self._options.dialect}")
            emitted = emit(loaded.model, self._options.dialect)
            tvm = runtime.find(self._options.dialect)
            try:
                proof, export = self._made(tvm, loaded, emitted, staging.path)
            finally:
                tvm.close()
            staging.commit(list(export.files), self._map_name)
        (segment,) = (s for s in export.segments if isinstance(s, TvmSegment))
        return TvmExport(
            self._options.dialect,
            {what: self._folder / name for what, name in segment.files.items()},
            self._folder / self._map_name,
            tuple(export.inputs),
            tuple(export.outputs),
            len(emitted.program.calls),
            (*export.notes, *unjudged_notes(proof)),
            proof,
        )

    @property
    def _map_name(self) -> str:
        return self._name + MAP_SUFFIX

    def _load(self) -> Loaded:
        self._options.progress(f"reading {self._path.name}")
        loaded = load(self._path, input_shapes=self._options.input_shapes, outputs=self._options.outputs)
        stops.check(loaded)
        return loaded

    @staticmethod
    def _passes() -> list[Pass]:
        return pipeline.pipeline("tvm")

    def _linker(self) -> str:
        """The compiler that was asked for; "" where none was.

        Raises:
            RuntimeMissing: it is not there.

        """
        cc = self._options.cc
        found = shutil.which(cc) if cc else ""
        if found is None:
            raise RuntimeMissing(
                f"there is no compiler {cc}", f"apt-get install {targets.compiler_package(self._target)}"
            )
        return found

    def _library(self, tvm: Tvm) -> str:
        """The name of the file for what is built: objects where nothing here links for the target.

        Raises:
            RuntimeMissing: there is no compiler although this machine is the target.

        """
        if not self._cc and targets.is_foreign(self._target):
            return f"{self._name}.tar"
        if not self._cc and not tvm.links:
            raise RuntimeMissing("no C++ compiler links libraries here", "apt-get install g++, or --no-compile")
        return f"{self._name}.so"

    def _made(self, tvm: Tvm, loaded: Loaded, emitted: Emitted, folder: Path) -> tuple[Proof | None, ExportMap]:
        """The module: checked by types, by numbers, built and written."""
        options, program = self._options, emitted.program
        library = self._library(tvm) if options.compile else ""
        options.progress(f"making the module in {tvm.name}")
        try:
            tvm.load(program.to_json(), program.arrays)
        except runtime.CallFault as fault:
            call = program.calls[fault.number]
            raise NumbersDiffer(f"node {call.node!r}: {call.fn}: {fault}\nnothing was written", REPORT) from fault
        proof = self._prove(tvm, loaded, emitted) if options.compare else None
        if options.compile:
            options.progress(f"building for {options.target}")
            tvm.build(self._target, options.opt_level)
        options.progress("writing")
        with writing(self._folder):
            export = self._write(tvm, loaded, emitted, folder, library)
        return proof, export

    def _prove(self, tvm: Tvm, loaded: Loaded, emitted: Emitted) -> Proof:
        tensors = _watched(emitted)
        runs = list(all_runs(loaded.inputs, SEEDS, self._options.inputs, self._options.pictures))
        outputs = [output.name for output in loaded.outputs]
        model = UserModel(self._path, [*tensors, *outputs], loaded.half)
        ports = [
            proving.Port(value.name or "", given.type.dtype, given.type.shape)
            for value, given in zip(loaded.model.graph.inputs, emitted.program.inputs, strict=True)
        ]
        proof = proving.prove_program(
            tvm, ports, tensors, model, runs=runs, outputs=outputs, progress=self._options.progress
        )
        if broken := proof.first_difference:
            raise NumbersDiffer(*self._complaint(proof, broken, model, runs[broken.run]))
        return proof

    def _complaint(self, proof: Proof, broken: Row, model: UserModel, feeds: Feeds) -> tuple[str, str]:
        self._options.progress("looking for the step that did it")
        culprit = find_culprit(lambda: self._load().model, self._passes(), model, feeds, broken)
        j = broken.judgement
        why = j.why or f"relative {j.error:.1e} where {j.allowed:.1e} is allowed, cosine {j.cosine:.6f}"
        different = len({row.tensor for row in proof.rows if row.judgement.verdict == j.verdict})
        lines = [
            f"tensor {broken.tensor!r} differs in {broken.runtime} on input {broken.run + 1}: {why}",
            f"{broken.layer} computes it; it is the first of {different} that differ",
            f"replayed, the first step that breaks a tensor is: {culprit.step} ({culprit.tensor!r})",
            "nothing was written",
        ]
        return "\n".join(lines), f"{REPORT}; --no-compare writes the files unproved"

    def _write(self, tvm: Tvm, loaded: Loaded, emitted: Emitted, folder: Path, library: str) -> ExportMap:
        """Write all files, map.json last."""
        options = self._options
        stem = f"{self._name}.{options.dialect}"
        files = {"text": f"{stem}.txt", "json": f"{stem}.json", "params": f"{stem}.params"}
        if library:
            files["library"] = library
        tvm.write(folder / stem, folder / library if library else None, self._cc or None)
        segment = TvmSegment(options.dialect, files, *_places(loaded, emitted), self._build(tvm))
        export = ExportMap(
            tool=TOOL,
            target="tvm",
            source_file=self._path.name,
            source_sha256=loaded.sha256,
            files={name: _sha256(folder / name) for name in files.values()},
            inputs=[Port(i.name, i.shape, i.dtype) for i in loaded.inputs],
            outputs=[Port(o.name, o.shape, o.dtype) for o in loaded.outputs],
            segments=[segment],
            tensors={},
            notes=loaded.notes,
        )
        mapfile.write(export, folder / self._map_name)
        return export

    def _build(self, tvm: Tvm) -> dict[str, Any]:
        options = self._options
        return {"runtime": tvm.version(), "target": self._target, "opt_level": options.opt_level}


def _watched(emitted: Emitted) -> dict[str, proving.Watched]:
    """The user's tensors that stand in the program's values."""
    return {
        tensor.name: proving.Watched(inner.reference, emitted.maker(value), tensor.shape)
        for value, inner in emitted.values.items()
        if inner.array is None
        for tensor in canon.tensors(value)
    }


def _places(loaded: Loaded, emitted: Emitted) -> tuple[dict[str, Place], dict[str, Place]]:
    """The user's inputs by their names in the module, the outputs by their numbers."""
    graph = loaded.model.graph
    inputs = {
        value.name or "": Place(given.name, given.type.shape)
        for value, given in zip(graph.inputs, emitted.program.inputs, strict=True)
    }
    return inputs, {output.name: Place(str(i), output.shape) for i, output in enumerate(loaded.outputs)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
