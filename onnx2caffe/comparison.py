"""`compare`: any Caffe net, ours or another tool's, or a program of TVM, against the user's model, tensor by tensor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from onnx2caffe import mapfile, programs
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.read import read_net
from onnx2caffe.canon import Note, Shape
from onnx2caffe.errors import NotConvertible, RuntimeCrash, RuntimeMissing, UnreadableFile, UsageError, advised
from onnx2caffe.export import MAP_SUFFIX
from onnx2caffe.filekind import CAFFEMODEL, ONNX, PROTOTXT, need
from onnx2caffe.mapfile import CaffeSegment, ExportMap
from onnx2caffe.programs import Translation
from onnx2caffe.runtimes import tvm
from onnx2caffe.runtimes.base import Feeds, NetFiles, Runtime
from onnx2caffe.runtimes.ort import Reference
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.stages import writing
from onnx2caffe.verify.candidates import CAFFE, candidates, find_caffe
from onnx2caffe.verify.foreign import UserGraph, map_foreign
from onnx2caffe.verify.image_lists import write_lists
from onnx2caffe.verify.inputs import Pictures, all_runs, check_pictures, names_file
from onnx2caffe.verify.proof import check_runtimes, prove
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.scores import Progress, Proof

__all__ = ["CompareOptions", "Comparison", "compare"]

_ALL = "all"
_DIALECTS = ("relay", "relax")
_NO_NET = "which net? There is none to run in builtin or pycaffe"
_RUNS = 3
_PROBED_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What a comparison may be told.

    `names`: blob -> tensor. `runs`: None is 3, or the given files alone. `runtimes`: names, or "all"; none are builtin,
    and pycaffe where there is one. `save_inputs`: a folder for what goes into each net.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    runs: int | None = None
    inputs: Sequence[str] = ()
    pictures: Pictures = field(default_factory=Pictures)
    caffe_python: Path | None = None
    caffe_run: bool = True
    runtimes: Sequence[str] = ()
    save_inputs: Path | None = None
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Comparison:
    """The figures, the tensors of the model that nothing was found for (outputs first), and what was left out."""

    proof: Proof
    unmapped: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no compared tensor differs."""
        return self.proof.ok


def compare(model: Path, prototxt: Path | None, caffemodel: Path | None, options: CompareOptions) -> Comparison:
    """Run a written net, or the model as a program of TVM, and the model on the same inputs, compare every tensor.

    A net's tensors are found by its own map.json where one lies beside it, else by names.

    Raises:
        UsageError: names, shapes or runtimes that do not fit, or nothing to compare.
        UnreadableFile: one of the files is not what it should be.
        NotConvertible: a dialect of TVM lacks what is named.
        NoReference: onnxruntime cannot run the model.
        RuntimeMissing: a runtime is not there, or lacks a layer type of the net.

    """
    with advised(NotConvertible, "--runtime all leaves out a dialect that lacks them; a Caffe net needs none"):
        return _compare(model, prototxt, caffemodel, options)


def _compare(model: Path, prototxt: Path | None, caffemodel: Path | None, options: CompareOptions) -> Comparison:
    _check_options(options)
    if options.save_inputs and not prototxt:
        raise UsageError("--save-inputs: no net was given", "NET.prototxt NET.caffemodel")
    files = _files(model, prototxt, caffemodel)
    own = _own_map(files) if files and not options.names else None
    net = read_net(files.prototxt, files.caffemodel) if files else None
    with contextlib.ExitStack() as stack:
        chosen = _Chosen(options, net, stack)
        graph = UserGraph.of(model, {**_shapes(model, own, net, options), **options.input_shapes}, net)
        if own is not None:
            _check_order(own, {info.name for info in graph.inputs})
        runs = _runs(graph, options)
        probe = _probe(model, graph, runs[0])
        sides: list[_NetSide | _ProgramSide] = []
        if files and net and chosen.caffe:
            shapes = {name: value.shape for name, value in probe.items()}
            export = own or map_foreign(graph, net, _names(files), shapes, _by_tensor(options.names))
            sides.append(_NetSide(files.prototxt.parent, export, chosen.caffe, options.save_inputs))
        sides += chosen.programs(model, graph)
        if not sides:
            raise RuntimeMissing("nothing is left to compare with", "; ".join(note.text for note in chosen.notes))
        half = any(probe[name].dtype == np.float16 for name in graph.heavy if name in probe)
        tensors = [name for side in sides for name in side.tensors]
        outputs = [name for side in sides for name in side.outputs]
        yardstick = UserModel(model, tensors, outputs, half)
        proof = reduce(Proof.joined, [side.proved(yardstick, runs, options.progress) for side in sides])
    rows = sorted(proof.rows, key=lambda row: yardstick.order.get(row.tensor, len(yardstick.order)))
    compared = {row.tensor for row in rows}
    unmapped = [name for name in (*graph.outputs, *graph.makers) if name not in compared]
    return Comparison(replace(proof, rows=tuple(rows)), tuple(dict.fromkeys(unmapped)), tuple(chosen.notes))


def _check_options(options: CompareOptions) -> None:
    """Raise UsageError for what is none of the values that an option has."""
    check_pictures(options.inputs, options.pictures)
    if options.runs is not None and options.runs < 1:
        raise UsageError(f"--runs {options.runs}: no positive number")
    known = (*CAFFE, *_DIALECTS, _ALL)
    if unknown := [name for name in options.runtimes if name not in known]:
        raise UsageError(f"--runtime {unknown[0]}: no such runtime", f"there are: {', '.join(known)}")


class _Chosen:
    """The runtimes that are asked for: `caffe`, and by dialect those of TVM; `stack` closes them.

    What "all" cannot have is left out, with a note.
    """

    def __init__(self, options: CompareOptions, net: Net | None, stack: contextlib.ExitStack) -> None:
        self._options, self._net, self._stack = options, net, stack
        self._all = _ALL in options.runtimes
        self.notes: list[Note] = []
        self.caffe = self._caffe()
        self._tvm: dict[str, Tvm] = {}
        for dialect in filter(self._wanted, _DIALECTS):
            with self._optional(dialect):
                self._tvm[dialect] = stack.enter_context(contextlib.closing(tvm.find(dialect)))

    def programs(self, model: Path, graph: UserGraph) -> list[_ProgramSide]:
        """The model as a program of each dialect."""
        sides = []
        for dialect, runtime in self._tvm.items():
            with self._optional(dialect):
                self._options.progress(f"translating to {dialect}")
                loaded = programs.read(model, {port.name: port.shape for port in graph.inputs})
                sides.append(_ProgramSide(runtime, programs.translated(loaded, dialect)))
        return sides

    def _wanted(self, name: str) -> bool:
        return self._all or name in self._options.runtimes

    @contextlib.contextmanager
    def _optional(self, name: str) -> Iterator[None]:
        try:
            yield
        except RuntimeCrash:
            raise
        except (RuntimeMissing, NotConvertible) as problem:
            if not self._all or name in self._options.runtimes:
                raise
            self.notes.append(Note("note", f"{name} is left out: {problem.message}"))

    def _caffe(self) -> list[Runtime]:
        options = self._options
        if not options.runtimes and self._net:
            return self._stack.enter_context(candidates(options.caffe_python, options.caffe_run))
        if not options.caffe_run and "pycaffe" in options.runtimes:
            raise UsageError("--runtime pycaffe runs a real Caffe, --no-caffe-run none", "leave one of them out")
        names = [name for name in CAFFE if self._wanted(name) and (options.caffe_run or name != "pycaffe")]
        if self._net is None:
            if not self._all and (names or not options.runtimes):
                raise UsageError(_NO_NET, "NET.prototxt NET.caffemodel; --runtime relay or relax needs none")
            if names:
                verb = "is" if len(names) == 1 else "are"
                self.notes.append(Note("note", f"{' and '.join(names)} {verb} left out: no net was given"))
            idle = {"--map": options.names, "--caffe-python": options.caffe_python}
            self.notes += [Note("note", f"{o} has no effect: no net was given") for o, given in idle.items() if given]
            return []
        found = []
        for name in names:
            with self._optional(name):
                runtime = self._stack.enter_context(contextlib.closing(find_caffe(name, options.caffe_python)))
                check_runtimes(self._net, [runtime])
                found.append(runtime)
        return found


@dataclass(frozen=True)
class _NetSide:
    """A Caffe net by its map, in the runtimes that run it."""

    folder: Path
    export: ExportMap
    runtimes: Sequence[Runtime]
    save_inputs: Path | None = None

    @property
    def tensors(self) -> Iterable[str]:
        return self.export.tensors

    @property
    def outputs(self) -> list[str]:
        return [port.name for port in self.export.outputs]

    def proved(self, model: UserModel, runs: Sequence[Feeds], progress: Progress) -> Proof:
        return prove(self.folder, self.export, model, runs, self.runtimes, progress=progress, fed=self._save)

    def _save(self, segment: CaffeSegment, feeds: Sequence[Feeds]) -> None:
        if self.save_inputs is not None:
            with writing(self.save_inputs):
                write_lists(self.save_inputs, segment, feeds)


@dataclass(frozen=True)
class _ProgramSide:
    """The model as a program of TVM."""

    tvm: Tvm
    translation: Translation

    @property
    def tensors(self) -> Iterable[str]:
        return self.translation.tensors

    @property
    def outputs(self) -> list[str]:
        return self.translation.outputs

    def proved(self, model: UserModel, runs: Sequence[Feeds], progress: Progress) -> Proof:
        self.translation.make(self.tvm)
        return self.translation.proved(self.tvm, model, runs, progress)


def _files(model: Path, prototxt: Path | None, caffemodel: Path | None) -> NetFiles | None:
    """The net's files, None where no net is given; raise UsageError where they are not there."""
    for path, kind in ((model, ONNX), (prototxt, PROTOTXT), (caffemodel, CAFFEMODEL)):
        if path is None:
            continue
        need(path, kind)
        if not path.is_file():
            raise UnreadableFile(f"no such file: {path}")
    if (prototxt is None) != (caffemodel is None):
        raise UsageError("a net is two files", "NET.prototxt NET.caffemodel")
    return NetFiles(prototxt, caffemodel) if prototxt and caffemodel else None


def _shapes(model: Path, own: ExportMap | None, net: Net | None, options: CompareOptions) -> dict[str, Shape]:
    """Shapes of inputs that leave dimensions free, as the map beside the net has them, or as reading assumes."""
    if net is None:
        return {info.name: info.shape for info in programs.read(model, options.input_shapes).inputs}
    return {port.name: port.shape for port in own.inputs} if own else {}


def _names(files: NetFiles) -> tuple[str, str]:
    return str(files.prototxt.resolve()), str(files.caffemodel.resolve())


def _by_tensor(names: Mapping[str, str]) -> dict[str, str]:
    """Blob -> tensor the other way round; raise UsageError where two blobs would be one tensor."""
    chosen: dict[str, str] = {}
    for blob, tensor in names.items():
        if tensor in chosen:
            raise UsageError(f"--map {blob}={tensor}: {tensor!r} is blob {chosen[tensor]!r} already", "choose one")
        chosen[tensor] = blob
    return chosen


def _own_map(files: NetFiles) -> ExportMap | None:
    """The map that our own export left beside a prototxt, made to read the files the user named; None without one."""
    prototxt, (text, weights) = files.prototxt, _names(files)
    export = next((export for export in _maps(prototxt) if _holds(export, prototxt.name)), None)
    if export is None:
        return None
    segments = [
        replace(s, prototxt=text, caffemodel=weights)
        if isinstance(s, CaffeSegment) and s.prototxt == prototxt.name
        else s
        for s in export.segments
    ]
    return replace(export, segments=segments)


def _check_order(export: ExportMap, known: set[str]) -> None:
    """Raise UsageError where a segment reads what neither the model's inputs nor the segments before it give."""
    for segment in export.segments:
        if unknown := sorted(segment.inputs.keys() - known):
            raise UsageError(
                f"the map beside the net reads {unknown[0]!r}, which neither the model nor the map gives",
                "is it the map of another model?",
            )
        known = known | segment.outputs.keys()


def _maps(prototxt: Path) -> Iterator[ExportMap]:
    """The maps beside a prototxt; one that cannot be read matters if it has the prototxt's name."""
    for path in sorted(prototxt.parent.glob(f"*{MAP_SUFFIX}")):
        try:
            yield mapfile.read(path)
        except UnreadableFile:
            if path.name == prototxt.stem + MAP_SUFFIX:
                raise


def _holds(export: ExportMap, prototxt: str) -> bool:
    return any(isinstance(s, CaffeSegment) and s.prototxt == prototxt for s in export.segments)


def _runs(graph: UserGraph, options: CompareOptions) -> list[Feeds]:
    only_files = options.runs is None and any(names_file(text) for text in options.inputs)
    seeds = range(0 if only_files else options.runs or _RUNS)
    return list(all_runs(graph.inputs, seeds, options.inputs, options.pictures))


@dataclass(frozen=True)
class _Seen:
    shape: Shape
    dtype: np.dtype[Any]


def _probe(model: Path, graph: UserGraph, feeds: Feeds) -> dict[str, _Seen]:
    """Shape and dtype of every tensor of the model, from a run that holds only a part of the values at a time."""
    names = list(graph.makers)
    reference = Reference(model, names)
    known = [name for name in reference.tensors if name in graph.makers]
    seen: dict[str, _Seen] = {}
    for start in range(0, len(known), _PROBED_AT_ONCE):
        values = reference.run(feeds, known[start : start + _PROBED_AT_ONCE])
        seen |= {name: _Seen(value.shape, value.dtype) for name, value in values.items()}
    return seen
