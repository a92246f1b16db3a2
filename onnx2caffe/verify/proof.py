"""The proof: the written files, run in every runtime there is, against the user's own model, tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.read import read_net
from onnx2caffe.canon import Shape
from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.mapfile import CaffeSegment, ExportMap, OnnxSegment, Promise
from onnx2caffe.runtimes import ort
from onnx2caffe.runtimes.base import Array, Feeds, NetFiles, Runtime, Tap
from onnx2caffe.verify.measure import HALF_LIMIT, Judgement, Verdict, distance, judge
from onnx2caffe.verify.reference import UserModel

__all__ = ["Proof", "Row", "check_runtimes", "prove"]

_CHUNK_BYTES = 128 * 2**20
"""How much of a net's values is held per runtime at a time; more tensors are run in further rounds."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One tensor in one runtime: the worst judgement over the runs, and the run (from 0) it comes from."""

    tensor: str
    layer: str
    blob: str
    shape: Shape
    runtime: str
    run: int
    judgement: Judgement


@dataclass(frozen=True)
class Proof:
    """What was compared. `rows`: in the user's topological order, one per tensor and runtime.

    `runtimes`: name -> version text. `unjudged`: the outputs that no input could judge, each with the nearest judged
    tensors before it. `without`: what the
    yardstick leaves out of the user's file ("its quantisation").
    """

    rows: tuple[Row, ...]
    runtimes: Mapping[str, str]
    runs: int
    unjudged: Mapping[str, tuple[str, ...]]
    without: str = ""

    @property
    def first_difference(self) -> Row | None:
        """The first row, in the user's topological order, that differs."""
        return next((row for row in self.rows if row.judgement.verdict is Verdict.DIFFERS), None)

    @property
    def ok(self) -> bool:
        """Whether no tensor differs in any runtime."""
        return self.first_difference is None

    def tensors(self, verdict: Verdict) -> list[str]:
        """The tensors whose worst verdict over the runtimes this is."""
        worst: dict[str, Row] = {}
        for row in self.rows:
            worst[row.tensor] = max(row, worst.get(row.tensor, row), key=_badness)
        return [name for name, row in worst.items() if row.judgement.verdict is verdict]


def _badness(row: Row) -> tuple[int, float]:
    """Orders rows: unjudged says least, a difference most."""
    rank = (Verdict.UNJUDGED, Verdict.EQUAL, Verdict.DIFFERS).index(row.judgement.verdict)
    return rank, row.judgement.error / max(row.judgement.allowed, 1e-30)


def check_runtimes(net: Net, runtimes: Iterable[Runtime]) -> None:
    """Ask every runtime for the net's layer types before anything runs: a missing one can end Caffe's process.

    Raises:
        RuntimeMissing: names the runtime and the layer types it lacks.

    """
    types = sorted({placed.layer.type for placed in net})
    for runtime in runtimes:
        if lacking := runtime.missing(types):
            raise RuntimeMissing(
                f"{runtime.name} ({runtime.version()}) lacks the layer types: {', '.join(lacking)}",
                "`onnx2caffe setup pycaffe` makes a Caffe that has all; `--target bvlc` uses stock layers only; "
                "`--no-caffe-run` proves without Caffe",
            )


def prove(
    folder: Path,
    export: ExportMap,
    model: UserModel,
    runs: Sequence[Feeds],
    runtimes: Sequence[Runtime],
    *,
    progress: Progress = lambda _: None,
) -> Proof:
    """Run an export and hold every promised tensor against the user's model.

    Args:
        folder: where the export's files lie.
        export: its map.
        model: the user's file in onnxruntime.
        runs: feeds by the user's input names.
        runtimes: all of them run every Caffe segment.
        progress: told what happens, in a few words.

    Raises:
        RuntimeMissing: a runtime lacks a layer type.
        RuntimeCrash: a runtime died.
        NoReference: onnxruntime cannot run the user's file.

    """
    return _Proving(folder, export, model, runs, runtimes, progress=progress).run()


class _Proving:
    def __init__(
        self,
        folder: Path,
        export: ExportMap,
        model: UserModel,
        runs: Sequence[Feeds],
        runtimes: Sequence[Runtime],
        *,
        progress: Progress,
    ) -> None:
        self._folder, self._export, self._model = folder, export, model
        self._runs, self._runtimes, self._progress = runs, runtimes, progress
        self._outputs = {port.name for port in export.outputs}
        self._worst: dict[tuple[str, str], Row] = {}
        self._values: dict[str, list[dict[str, Array]]] = {r.name: [dict(feeds) for feeds in runs] for r in runtimes}
        """Runtime name -> per run, the tensors that cross segment borders."""

    def run(self) -> Proof:
        for number, segment in enumerate(self._export.segments):
            if isinstance(segment, CaffeSegment):
                self._caffe(number, segment)
            else:
                self._onnx(number, segment)
        order = self._model.order
        rows = sorted(self._worst.values(), key=lambda row: order.get(row.tensor, len(order)))
        versions = {runtime.name: runtime.version() for runtime in self._runtimes}
        return Proof(tuple(rows), versions, len(self._runs), self._unjudged(rows))

    def _caffe(self, number: int, segment: CaffeSegment) -> None:
        files = NetFiles(self._folder / segment.prototxt, self._folder / segment.caffemodel)
        net = read_net(files.prototxt, None)
        check_runtimes(net, self._runtimes)
        writers = {top: placed.name for placed in net for top in placed.tops}
        places = {name: p for name, p in self._export.tensors.items() if p.segment == number}
        places |= {
            name: Promise(number, place.blob, place.shape)
            for name, place in segment.outputs.items()
            if name not in places
        }
        for chunk in self._chunks(places):
            taps = sorted({_tap(place) for place in chunk.values()}, key=lambda tap: (tap.blob, tap.layer))
            results = {r.name: self._run_caffe(r, segment, files, taps) for r in self._runtimes}
            named = {name: place.layer or writers.get(place.blob, "") for name, place in chunk.items()}
            for run in range(len(self._runs)):
                found = {
                    runtime: {name: _shaped(values[run][_tap(place)], place.shape) for name, place in chunk.items()}
                    for runtime, values in results.items()
                }
                self._compare(run, found, {name: (named[name], place.blob) for name, place in chunk.items()})
                for runtime, values in found.items():
                    self._values[runtime][run] |= {name: values[name] for name in segment.outputs if name in values}

    def _run_caffe(
        self, runtime: Runtime, segment: CaffeSegment, files: NetFiles, taps: Sequence[Tap]
    ) -> list[dict[Tap, Array]]:
        self._progress(f"running {segment.prototxt} in {runtime.name}")
        feeds = [
            {place.blob: np.asarray(values[name], np.float32) for name, place in segment.inputs.items()}
            for values in self._values[runtime.name]
        ]
        return runtime.run(files, feeds, taps)

    def _chunks(self, places: Mapping[str, Promise]) -> Iterator[dict[str, Promise]]:
        order = self._model.order
        chunk: dict[str, Promise] = {}
        size = 0
        for name in sorted(places, key=lambda n: order.get(n, len(order))):
            size += 4 * len(self._runs) * int(np.prod(places[name].shape, dtype=np.int64))
            if chunk and size > _CHUNK_BYTES:
                yield chunk
                chunk, size = {}, 0
            chunk[name] = places[name]
        if chunk:
            yield chunk

    def _onnx(self, number: int, segment: OnnxSegment) -> None:
        self._progress(f"running {segment.file} in onnxruntime")
        session = ort.session(self._folder / segment.file)
        kinds = {i.name: np.dtype(ort.DTYPES[i.type]) for i in session.get_inputs()}
        for run in range(len(self._runs)):
            found: dict[str, dict[str, Array]] = {}
            for runtime, values in self._values.items():
                feeds = {inner: _cast(values[run][name], kinds[inner]) for name, inner in segment.inputs.items()}
                results = session.run(list(segment.outputs.values()), feeds)
                found[runtime] = dict(zip(segment.outputs, results, strict=True))
                values[run] |= found[runtime]
            self._compare(run, found, dict.fromkeys(segment.outputs, (f"segment {number}", segment.file)))

    def _compare(
        self, run: int, found: Mapping[str, Mapping[str, Array]], where: Mapping[str, tuple[str, str]]
    ) -> None:
        known = [name for name in where if name in self._model.known]
        self._progress(f"comparing {len(known)} tensors on input {run + 1} of {len(self._runs)}")
        samples = self._model.sample(self._runs[run], known)
        judgements = {
            (name, runtime): judge(samples[name], found[runtime][name]) for runtime in found for name in known
        }
        doubtful = sorted({name for (name, _), one in judgements.items() if one.verdict is Verdict.DIFFERS})
        for name, rounded in self._model.rounded(self._runs[run], doubtful).items():
            sample = replace(samples[name], rounded=rounded)
            judgements |= {(name, runtime): judge(sample, values[name]) for runtime, values in found.items()}
        exact = self._model.as_written(self._runs[run], [n for n in known if n in self._outputs])
        for runtime, values in found.items():
            for name in known:
                judgement = judgements[name, runtime]
                if name in exact:
                    judgement = _against_half(judgement, exact[name], values[name])
                row = Row(name, *where[name], samples[name].plain.shape, runtime, run, judgement)
                key = (name, runtime)
                self._worst[key] = max(row, self._worst.get(key, row), key=_badness)

    def _unjudged(self, rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
        judged = {row.tensor for row in rows if row.judgement.verdict is not Verdict.UNJUDGED}
        blind = [port.name for port in self._export.outputs if port.name not in judged]
        return {name: self._model.nearest_before(name, judged) for name in blind}


def _against_half(fine: Judgement, reference: Array, candidate: Array) -> Judgement:
    """The judgement against the file's float32 reading, unless the float16 run itself is too far off."""
    if fine.verdict is Verdict.DIFFERS or reference.dtype.kind != "f" or reference.shape != candidate.shape:
        return fine
    found = distance(reference, candidate)
    if not found.relative > HALF_LIMIT:
        return fine
    why = "too far from the model's own float16 run"
    return Judgement(Verdict.DIFFERS, found.relative, HALF_LIMIT, found.cosine, found.max_abs, why)


def _tap(place: Promise) -> Tap:
    return Tap(place.blob, place.layer)


def _shaped(value: Array, shape: Shape) -> Array:
    """A blob's value in the tensor's shape; as it is where the sizes differ, for the measure to say so."""
    return value.reshape(shape) if value.size == int(np.prod(shape, dtype=np.int64)) else value


def _cast(value: Array, dtype: np.dtype[np.generic]) -> Array:
    """A blob's float32 as the dtype that an ONNX part takes."""
    return np.asarray(np.rint(value) if dtype.kind in "iu" and value.dtype.kind == "f" else value).astype(dtype)
