"""The order of things: load, rewrite, lower, write beside the target, prove what was written, move it into place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from onnx2caffe import canon, cpu_parts, mapfile
from onnx2caffe.assembly import Assembly, Extras, remarks, summary
from onnx2caffe.caffe.lower.families import load_families
from onnx2caffe.caffe.lower.registry import ALTERNATIVES
from onnx2caffe.caffe.rules import unfit
from onnx2caffe.canon import Note, Shape
from onnx2caffe.cpu_parts import CpuParts
from onnx2caffe.errors import (
    NoReference,
    NotConvertible,
    NumbersDiffer,
    RulesViolated,
    UnreadableFile,
    UsageError,
    advised,
)
from onnx2caffe.export import MAP_SUFFIX, Staging, check_folder
from onnx2caffe.filekind import ONNX, need
from onnx2caffe.frontend import Loaded, load
from onnx2caffe.mapfile import CaffeSegment, ExportMap, Port
from onnx2caffe.partition.plan import Plan, Wishes, partitioned, whole
from onnx2caffe.partition.tail import TAILS
from onnx2caffe.passes import pipeline
from onnx2caffe.passes.approximate import LoseBorders
from onnx2caffe.passes.base import Pass
from onnx2caffe.passes.planes import TurnPlanes
from onnx2caffe.passes.strip_qdq import StripQdq
from onnx2caffe.runtimes.base import Feeds, NetFiles, Runtime
from onnx2caffe.stages import FAULT, SEEDS, TOOL, Observer, blamed, complaint, plain_name, unjudged_notes, writing
from onnx2caffe.targets import by_name
from onnx2caffe.targets.nnie.markers import Marks
from onnx2caffe.targets.nnie.rules import load_rules
from onnx2caffe.targets.nnie.target import nnie
from onnx2caffe.verify.candidates import candidates
from onnx2caffe.verify.inputs import InputInfo, Pictures, all_runs, check_pictures
from onnx2caffe.verify.proof import prove
from onnx2caffe.verify.reading import farthest, write_reading
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.replay import culprit, first_disagreement
from onnx2caffe.verify.scores import Progress, Proof, Row

__all__ = ["Conversion", "Options", "convert"]

_UNPROVED = "--no-proof"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a conversion may be told. Defaults are those of the command line; None and "" are the target's choice."""

    folder: Path | None = None
    name: str = ""
    target: str = "nnie"
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    keep_bn: bool = False
    strip_qdq: bool = False
    bgr: Sequence[str] = ()
    proof: bool = True
    caffe_run: bool = True
    inputs: Sequence[str] = ()
    pictures: Pictures = field(default_factory=Pictures)
    caffe_python: Path | None = None
    recipes: Mapping[str, str] = field(default_factory=dict)
    partition: bool | None = None
    tail: str = ""
    cuts: Sequence[str] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    require_segments: int | None = None
    min_nnie_macs: float = 0.0
    marks: Marks = field(default_factory=Marks)
    single_wk: bool = False
    cpu_c: bool = False
    rules: Path | None = None
    save_intermediate: Path | None = None
    force: bool = False
    check: bool = False
    progress: Progress = lambda _: None


@dataclass(frozen=True)
class Conversion:
    """What a conversion wrote and proved.

    `prototxt` and `caffemodel`: of the first net; `files`: all but the map. `layers`: how many Caffe layers; `summary`:
    what runs where, in a line ("" where nothing was to stay ONNX). `segments`: how many Caffe nets; `share`: of the
    multiply-accumulates on them; `cpu_nodes`: how many nodes stay ONNX. `proof` is None with `--no-proof`.
    """

    prototxt: Path
    caffemodel: Path
    files: tuple[Path, ...]
    map_file: Path
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    layers: int
    segments: int
    share: float
    cpu_nodes: int
    notes: tuple[Note, ...]
    summary: str
    proof: Proof | None


def convert(path: Path, options: Options) -> Conversion:
    """Convert one model.

    Raises:
        UsageError: a wrong option, or a folder that may not be written.
        UnreadableFile: not an ONNX file.
        Unsupported: something in the model stops the conversion; NotConvertible names all nodes.
        NoReference: onnxruntime cannot run the model.
        NumbersDiffer: the written files compute something else; nothing is left.
        RulesViolated: more segments or fewer multiply-accumulates on nets than required.
        RuntimeMissing: the Caffe asked for is not there, or lacks a layer type.

    """
    return _Converting(path, options).run()


@dataclass(frozen=True)
class _Yardstick:
    """Another reading of the user's file, and what that leaves out of it."""

    path: Path
    without: str


@dataclass(frozen=True)
class _Written:
    """What is left of a conversion once its files are written: nothing that holds weights."""

    export: ExportMap
    half: bool
    layers: int
    share: float
    cpu_nodes: int
    summary: str
    yardstick: _Yardstick | None
    """Where it is not the user's file."""


class _Converting:
    def __init__(self, path: Path, options: Options) -> None:
        self._path, self._options = path, options
        need(path, ONNX)
        check_pictures(options.inputs, options.pictures)
        if (options.marks or options.single_wk or options.rules) and options.target != "nnie":
            raise UsageError("--cpu, --report, --hp, --single-wk and --rules are for the mapper", "--target nnie")
        if options.bgr and (options.target != "nnie" or options.partition is False):
            raise UsageError("--bgr leaves the turn of the planes to ONNX", "--target nnie, without --no-partition")
        self._target = nnie(load_rules(options.rules)) if options.rules else by_name(options.target)
        self._name = plain_name(options.name or path.stem)
        self._folder = options.folder or Path(path.stem)
        self._strip = StripQdq()
        _check_recipes(options.recipes)
        _check_figures(options)
        self._check_partition()

    def run(self) -> Conversion:
        check_folder(self._folder, self._options.force)
        with Staging(self._folder) as staging:
            written = self._convert(staging.path)
            export = written.export
            with advised(NoReference, f"{_UNPROVED} converts without a proof"):
                proof = self._prove(staging.path, written) if self._options.proof else None
            staging.commit(list(export.files), self._map_name)
        net = next(segment for segment in export.segments if isinstance(segment, CaffeSegment))
        return Conversion(
            self._folder / net.prototxt,
            self._folder / net.caffemodel,
            tuple(self._folder / file for file in export.files),
            self._folder / self._map_name,
            tuple(export.inputs),
            tuple(export.outputs),
            written.layers,
            sum(isinstance(segment, CaffeSegment) for segment in export.segments),
            written.share,
            written.cpu_nodes,
            (*export.notes, *unjudged_notes(proof)),
            written.summary,
            proof,
        )

    @property
    def _map_name(self) -> str:
        return self._name + MAP_SUFFIX

    def _load(self) -> Loaded:
        options = self._options
        loaded = load(self._path, input_shapes=options.input_shapes, outputs=options.outputs, kept=options.cuts)
        if self._options.strip_qdq:
            self._strip.call(loaded.model)
        return loaded

    def _passes(self) -> list[Pass]:
        turned = [TurnPlanes(self._options.bgr)] if self._options.bgr else []
        return [*pipeline.pipeline(self._target.exit, keep_bn=self._options.keep_bn), *turned]

    def _recipes(self) -> Mapping[str, str]:
        kept = {"BatchNormalization": "BatchNorm"} if self._options.keep_bn else {}
        return {**kept, **self._options.recipes}

    def _convert(self, folder: Path) -> _Written:
        self._options.progress(f"reading {self._path.name}")
        loaded = self._load()
        with blamed(loaded):
            return self._converted(loaded, folder)

    def _converted(self, loaded: Loaded, folder: Path) -> _Written:
        self._options.progress("rewriting")
        observe = Observer(self._options.save_intermediate, self._options.check)
        observe("load", loaded.model)
        yardstick = self._stripped(loaded, folder) if self._strip.count else None
        unrewritten = loaded.model.clone() if _may_differ(self._options.recipes) else None
        pipeline.run(loaded.model, self._passes(), observe)
        _drop_kept(loaded)
        observe("final", loaded.model)
        self._options.progress("lowering to Caffe")
        plan = self._plan(loaded)
        if unrewritten is not None and (sources := _approximated(plan)):
            yardstick = self._without_borders(loaded, unrewritten, sources, folder)
        options = self._options
        options.progress("writing")
        with writing(self._folder):
            header = [f"{TOOL}, target {self._target.name}", f"from {self._path.name}, sha256 {loaded.sha256}"]
            assembly = Assembly(plan, loaded, folder, self._name, header)
            assembly.write(Extras(options.marks, options.single_wk, options.renames, load_rules(options.rules)))
            parts = self._cpu_parts(assembly, folder)
            export = self._map(assembly, parts, plan, loaded)
            mapfile.write(export, folder / self._map_name)
        layers = sum(len(net.layers) for net in plan.nets)
        told = summary(plan, self._target.name) if self._partitions or self._target.partition else ""
        return _Written(export, loaded.half, layers, plan.share, len(plan.reasons), told, yardstick)

    def _cpu_parts(self, assembly: Assembly, folder: Path) -> CpuParts:
        """What stays ONNX, as C too where that was asked for."""
        options = self._options
        if not options.cpu_c:
            return CpuParts([*assembly.segments], {}, [])
        return cpu_parts.as_c(assembly.segments, folder, self._name, options.proof, options.progress)

    def _plan(self, loaded: Loaded) -> Plan:
        """What becomes Caffe: all of the model, or what the target can have of it."""
        options = self._options
        head = self._target.exit == "nnie"
        wishes = Wishes(self._tail, options.cuts, self._recipes(), options.renames, head)
        try:
            plan = (partitioned if self._partitions else whole)(loaded.model, self._target, wishes)
        except NotConvertible as problem:
            problem.hint = self._batch_hint(loaded) or problem.hint
            raise
        nets = len(plan.nets)
        if options.require_segments not in (None, nets):
            raise RulesViolated(
                f"the model becomes {nets} segment{'s' * (nets != 1)}; {options.require_segments} are required"
            )
        if plan.share < options.min_nnie_macs:
            raise RulesViolated(
                f"{plan.share:.2%} of the multiply-accumulates run on nets; {options.min_nnie_macs:.2%} are required"
            )
        return plan

    def _batch_hint(self, loaded: Loaded) -> str:
        """What to do about inputs that a net could take in but for their batch."""
        for name, shape in ((port.name, port.shape) for port in loaded.inputs if port.shape):
            single = (1, *shape[1:])
            if unfit(self._target, shape) and not unfit(self._target, single):
                if name in self._options.input_shapes:
                    return f"a net of target {self._target.name} has batch 1: --input-shape {name}:{_listed(single)}"
                return f"the file says batch {shape[0]} for input {name!r}: export it with batch 1, or a free one"
        return ""

    @property
    def _partitions(self) -> bool:
        chosen = self._options.partition
        return self._target.partition if chosen is None else chosen

    @property
    def _tail(self) -> str:
        """Targets that never quantise are exact at any tail."""
        return self._options.tail or ("auto" if self._target.partition else "full")

    def _check_partition(self) -> None:
        """Raise UsageError where what is asked for needs parts that stay ONNX, and there shall be none."""
        options = self._options
        asked = [f"--tail {options.tail}"] * (options.tail in ("auto", "none")) + [f"--cut {c}" for c in options.cuts]
        if asked and not self._partitions:
            reason = (
                "--no-partition" if options.partition is False else f"target {self._target.name} without --partition"
            )
            raise UsageError(
                f"{asked[0]} leaves nodes to ONNX; {reason} leaves none there",
                "--partition lets a model be cut; --output TENSOR ends the net without a rest",
            )

    def _stripped(self, loaded: Loaded, folder: Path) -> _Yardstick:
        """The model without its quantisation; note how far the user's file is from it."""
        count = self._strip.count
        text = f"{count} quantised tensor{'s' * (count != 1)} kept as real numbers (--strip-qdq)"
        return self._yardstick(loaded, loaded.model, folder, text, "its quantisation")

    def _without_borders(self, loaded: Loaded, model: ir.Model, sources: Sequence[str], folder: Path) -> _Yardstick:
        """The model with what approximate recipes compute; note how far the user's file is from it."""
        LoseBorders(sources).call(model)
        what = "the border of its linear enlargements"
        without = f"its quantisation and {what}" if self._strip.count else what
        text = f"{len(sources)} node{'s' * (len(sources) != 1)} approximate (--recipe)"
        return self._yardstick(loaded, model, folder, text, without)

    def _yardstick(self, loaded: Loaded, model: ir.Model, folder: Path, text: str, without: str) -> _Yardstick:
        path = folder / "reading.onnx"
        with writing(self._folder):
            write_reading(model, path)
        if self._options.proof:
            text += self._distance_to(path, loaded)
        loaded.notes.append(Note("warning", text))
        return _Yardstick(path, without)

    def _distance_to(self, reading: Path, loaded: Loaded) -> str:
        found = farthest(self._path, reading, self._runs(loaded.inputs), [o.name for o in loaded.outputs])
        if found is None:
            return ""
        name, far = found
        return (
            f": against the file as it is, output {name!r} differs by up to {far.relative:.1e} of its largest value "
            f"(cosine {far.cosine:.6f})"
        )

    def _map(self, assembly: Assembly, parts: CpuParts, plan: Plan, loaded: Loaded) -> ExportMap:
        return ExportMap(
            tool=TOOL,
            target=self._target.name,
            source_file=self._path.name,
            source_sha256=loaded.sha256,
            files=assembly.files | parts.files,
            inputs=[Port(i.name, i.shape, i.dtype) for i in loaded.inputs],
            outputs=[Port(o.name, o.shape, o.dtype) for o in loaded.outputs],
            segments=parts.segments,
            tensors=assembly.tensors,
            layers=assembly.layers,
            notes=[*self._notes(loaded, plan), *parts.notes],
            ranges=self._strip.ranges,
            single_wk=assembly.single_wk,
        )

    def _notes(self, loaded: Loaded, plan: Plan) -> list[Note]:
        """All that the user should know."""
        unused = _without_effect(self._options, plan)
        return [*loaded.notes, *unused, *remarks(plan), *self._target.remarks(plan.nets)]

    def _prove(self, folder: Path, written: _Written) -> Proof:
        options, export = self._options, written.export
        runs = self._runs(export.inputs)
        outputs = [o.name for o in export.outputs]
        other = written.yardstick
        path, half = (other.path, False) if other else (self._path, written.half)
        model = UserModel(path, [*export.tensors], outputs, half)
        with candidates(options.caffe_python, options.caffe_run) as runtimes:
            try:
                proof = prove(folder, export, model, runs, runtimes, progress=options.progress)
            except UnreadableFile as problem:
                raise NumbersDiffer(f"the written net cannot be read back: {problem.message}", FAULT) from problem
            if broken := proof.first_difference:
                options.progress("looking for the step that did it")
                step = self._culprit(folder, export, model, runs[broken.run], runtimes=runtimes, broken=broken)
                raise NumbersDiffer(*complaint(proof, broken, step, _UNPROVED))
        return replace(proof, without=other.without if other else "")

    def _runs(self, inputs: Sequence[InputInfo]) -> list[Feeds]:
        return list(all_runs(inputs, SEEDS, self._options.inputs, self._options.pictures))

    def _culprit(
        self,
        folder: Path,
        export: ExportMap,
        model: UserModel,
        feeds: Feeds,
        *,
        runtimes: Sequence[Runtime],
        broken: Row,
    ) -> str:
        """Which step of the conversion, replayed, or which layer did it."""
        sentence = culprit(lambda: self._load().model, self._passes(), model, feeds, broken)
        if broken.runtime == runtimes[0].name:
            return sentence
        promise = export.tensors.get(broken.tensor)
        segment = export.segments[promise.segment if promise else 0]
        if not isinstance(segment, CaffeSegment) or not set(segment.inputs) <= set(feeds):
            return sentence
        files = NetFiles(folder / segment.prototxt, folder / segment.caffemodel)
        blobs = {place.blob: feeds[name] for name, place in segment.inputs.items()}
        where = first_disagreement(files, blobs, *runtimes[:2])
        if where is None:
            return sentence
        return (
            f"{sentence}; {runtimes[0].name} and {broken.runtime} part at layer {where[0]!r} (relative {where[1]:.1e})"
        )


def _listed(shape: Shape) -> str:
    return ",".join(map(str, shape))


def _drop_kept(loaded: Loaded) -> None:
    """Let go of the tensors that were outputs only so that the passes keep them."""
    outputs = loaded.model.graph.outputs
    if len(outputs) > len(loaded.outputs):
        del outputs[len(loaded.outputs) :]
        RemoveUnusedNodesPass()(loaded.model)


def _check_recipes(chosen: Mapping[str, str]) -> None:
    """Raise UsageError for a recipe key or variant that nobody registered."""
    if not chosen:
        return
    load_families()
    for key, variant in chosen.items():
        if key not in ALTERNATIVES:
            raise UsageError(f"--recipe {key}={variant}: no recipe {key!r}", "`onnx2caffe ops` lists them")
        if variant not in ALTERNATIVES[key]:
            known = ", ".join(ALTERNATIVES[key])
            raise UsageError(f"--recipe {key}={variant}: no such variant", f"{key} has: {known}")


def _check_figures(options: Options) -> None:
    """Raise UsageError for what is none of the values that an option has."""
    if options.tail and options.tail not in TAILS:
        raise UsageError(f"--tail {options.tail}: no such tail", f"there are: {', '.join(TAILS)}")
    if not 0 <= options.min_nnie_macs <= 1:
        raise UsageError(f"--min-nnie-macs {options.min_nnie_macs}: no share between 0 and 1", "0.95 means 95 %")
    if options.require_segments is not None and options.require_segments < 1:
        raise UsageError(f"--require-segments {options.require_segments}: no positive number")


def _may_differ(recipes: Mapping[str, str]) -> bool:
    return any(ALTERNATIVES[key][variant].approximate for key, variant in recipes.items())


def _approximated(plan: Plan) -> list[str]:
    """The user's nodes that became something only approximately equal."""
    found: dict[str, None] = {}
    for piece in plan.pieces:
        used = piece.lowered.used if piece.lowered is not None else ()
        names = {node for node, key, variant in used if ALTERNATIVES[key][variant].approximate}
        found |= dict.fromkeys(s for node in piece.part.nodes if node.name in names for s in canon.sources(node))
    return list(found)


def _without_effect(options: Options, plan: Plan) -> list[Note]:
    """What the user said that nothing here takes."""
    taken = {key for piece in plan.pieces if piece.lowered is not None for _, key, _ in piece.lowered.used}
    left = [f"--recipe {key}={variant}" for key, variant in options.recipes.items() if key not in taken]
    refused = {choice for choice in left if any(f"{choice}: " in reason for reason in plan.reasons.values())}
    notes = [Note("note", f"{choice} has no effect: nothing here takes it") for choice in left if choice not in refused]
    if options.single_wk and len(plan.nets) == 1:
        notes.append(Note("note", "--single-wk has no effect: the model is one net, hence one .wk already"))
    if options.inputs and not options.proof:
        notes.append(Note("note", "--input has no effect: --no-proof runs nothing"))
    return notes
