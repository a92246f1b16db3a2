"""The proof: the written files, run in every runtime there is, against the user's own model, tensor by tensor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.read import read_net
from onnx2caffe.canon import Shape
from onnx2caffe.errors import NoReference, RuntimeMissing
from onnx2caffe.mapfile import CaffeSegment, ExportMap, OnnxSegment, Promise
from onnx2caffe.runtimes import ort
from onnx2caffe.runtimes.base import Array, Feeds, NetFiles, Runtime, Tap
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.rounds import rounds
from onnx2caffe.verify.scores import Progress, Proof, Scores

__all__ = ["check_runtimes", "prove"]

Fed = Callable[[CaffeSegment, Sequence[Feeds]], None]
_ROUND = 32 * 2**20
"""How many of a net's values are held per runtime at a time; more tensors are run in further rounds."""


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
    fed: Fed = lambda *_: None,
) -> Proof:
    """Run an export and hold every promised tensor against the user's model.

    Args:
        folder: where the export's files lie.
        export: its map.
        model: the user's file in onnxruntime.
        runs: feeds by the user's input names.
        runtimes: all of them run every Caffe segment.
        progress: told what happens, in a few words.
        fed: told what goes into each net: its segment, and per run the values of its blobs.

    Raises:
        RuntimeMissing: a runtime lacks a layer type.
        RuntimeCrash: a runtime died.
        NoReference: onnxruntime cannot run the user's file.

    """
    return _Proving(folder, export, model, runs, runtimes, progress=progress, fed=fed).run()


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
        fed: Fed,
    ) -> None:
        self._fed = fed
        self._folder, self._export, self._model = folder, export, model
        self._runs, self._runtimes, self._progress = runs, runtimes, progress
        self._scores = Scores(model, runs, [port.name for port in export.outputs], progress)
        self._values: dict[str, list[dict[str, Array]]] = {r.name: [dict(feeds) for feeds in runs] for r in runtimes}
        """Runtime name -> per run, the tensors that cross segment borders."""

    def run(self) -> Proof:
        for number, segment in enumerate(self._export.segments):
            if isinstance(segment, CaffeSegment):
                self._caffe(number, segment)
            elif isinstance(segment, OnnxSegment) and not self._ran(number, segment):
                break
        return self._scores.proof({runtime.name: runtime.version() for runtime in self._runtimes})

    def _caffe(self, number: int, segment: CaffeSegment) -> None:
        files = NetFiles(self._folder / segment.prototxt, self._folder / segment.caffemodel)
        net = read_net(files.prototxt, None)
        check_runtimes(net, self._runtimes)
        self._fed(segment, self._feeds(self._runtimes[0], segment))
        writers = {top: placed.name for placed in net for top in placed.tops}
        places = {name: p for name, p in self._export.tensors.items() if p.segment == number}
        places |= {
            name: Promise(number, place.blob, place.shape)
            for name, place in segment.outputs.items()
            if name not in places
        }
        shapes = {name: place.shape for name, place in places.items()}
        for names in rounds(shapes, self._model.order, _ROUND // len(self._runs)):
            chunk = {name: places[name] for name in names}
            taps = sorted({_tap(place) for place in chunk.values()}, key=lambda tap: (tap.blob, tap.layer))
            results = {r.name: self._run_caffe(r, segment, files, taps) for r in self._runtimes}
            named = {name: place.layer or writers.get(place.blob, "") for name, place in chunk.items()}
            for run in range(len(self._runs)):
                found = {
                    runtime: {name: _shaped(values[run][_tap(place)], place.shape) for name, place in chunk.items()}
                    for runtime, values in results.items()
                }
                self._scores.add(run, found, {name: (named[name], place.blob) for name, place in chunk.items()})
                for runtime, values in found.items():
                    self._values[runtime][run] |= {name: values[name] for name in segment.outputs if name in values}

    def _run_caffe(
        self, runtime: Runtime, segment: CaffeSegment, files: NetFiles, taps: Sequence[Tap]
    ) -> list[dict[Tap, Array]]:
        self._progress(f"running {segment.prototxt} in {runtime.name}")
        return runtime.run(files, self._feeds(runtime, segment), taps)

    def _feeds(self, runtime: Runtime, segment: CaffeSegment) -> list[Feeds]:
        return [
            {place.blob: np.asarray(values[name], np.float32) for name, place in segment.inputs.items()}
            for values in self._values[runtime.name]
        ]

    def _ran(self, number: int, segment: OnnxSegment) -> bool:
        """Run a part that stays ONNX; False where it cannot, but reads what differs already.

        Raises:
            NoReference: onnxruntime cannot run the user's file, or else the part.

        """
        try:
            self._onnx(number, segment)
        except NoReference:
            if self._scores.differ:
                return False
            self._model.sample(self._runs[0], sorted(self._model.known)[:1])
            raise
        return True

    def _onnx(self, number: int, segment: OnnxSegment) -> None:
        self._progress(f"running {segment.file} in onnxruntime")
        with _told(segment.file):
            session = ort.session(self._folder / segment.file)
        kinds = {i.name: np.dtype(ort.DTYPES[i.type]) for i in session.get_inputs()}
        for run in range(len(self._runs)):
            found: dict[str, dict[str, Array]] = {}
            for runtime, values in self._values.items():
                feeds = {inner: _cast(values[run][name], kinds[inner]) for name, inner in segment.inputs.items()}
                with _told(segment.file):
                    results = session.run(list(segment.outputs.values()), feeds)
                found[runtime] = dict(zip(segment.outputs, results, strict=True))
                values[run] |= found[runtime]
            self._scores.add(run, found, dict.fromkeys(segment.outputs, (f"segment {number}", segment.file)))


@contextlib.contextmanager
def _told(file: str) -> Iterator[None]:
    """What stops onnxruntime in a part that stays ONNX, which is a part of the user's file, as NoReference."""
    try:
        yield
    except Exception as problem:  # onnxruntime's exceptions have no base of their own
        raise NoReference(
            f"onnxruntime cannot run {file}, a part of the model that stays ONNX, so nothing can be proved: {problem}"
        ) from problem


def _tap(place: Promise) -> Tap:
    return Tap(place.blob, place.layer)


def _shaped(value: Array, shape: Shape) -> Array:
    """A blob's value in the tensor's shape; as it is where the sizes differ, for the measure to say so."""
    return value.reshape(shape) if value.size == int(np.prod(shape, dtype=np.int64)) else value


def _cast(value: Array, dtype: np.dtype[np.generic]) -> Array:
    """A blob's float32 as the dtype that an ONNX part takes."""
    return np.asarray(np.rint(value) if dtype.kind in "iu" and value.dtype.kind == "f" else value).astype(dtype)
