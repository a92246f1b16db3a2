"""One model in both forms, in 8 bits, on pictures: what each loses against the model itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.mapfile import CaffeSegment, ExportMap
from onnx2caffe.runtimes import ort
from onnx2caffe.runtimes.base import NetFiles, Runtime, Tap
from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.verify.inputs import Pictures, all_runs
from tests.corpus.run import CORPUS
from tests.nnie.safety.detectors import Found, Outputs, nanodet, overlap, scrfd, yolo_fastest
from tests.nnie.safety.eightbit import in_eight_bits

PICTURES = CORPUS.parent / "pictures"
TABLE = Path(__file__).with_name("table.tsv")
FORMS = ("plain", "nnie")
LOSSES = ("1 - cosine", "1 - IoU", "1 - IoU p5", "score error")
"""Of the output that lost most; then, for detectors, at the places with the best true scores."""
HEADER = "\t".join(["model", "runs", "loss", *FORMS, "nnie - plain", "standard error"])
BRIGHTNESS = (0.85, 0.93, 1.0, 1.07)
BEST = 20


@dataclass(frozen=True)
class Model:
    """How pixels become a model's input, and its outputs boxes (None: no detector)."""

    pictures: Pictures
    decode: Callable[[Outputs], Found] | None = None


MODELS = {
    "nanodet_m_416_real": Model(Pictures((103.53, 116.28, 123.675), (57.375, 57.12, 58.395)), nanodet),
    "yolo_fastestv2": Model(Pictures(scale=1 / 255), yolo_fastest),
    "scrfd_500m_kps": Model(Pictures((127.5,), (128.0,), rgb=True), scrfd),
    # its weights are noise: only inputs of this size take it beyond the 6 of its ReLU6
    "mobilenetv2_op11": Model(Pictures((127.5,), (16.0,), rgb=True)),
}


@dataclass(frozen=True)
class Losses:
    """Per form one row per run, one column per loss."""

    rows: Mapping[str, np.ndarray]

    def lines(self, name: str) -> Iterator[str]:
        """For each loss its mean in both forms, and the mean difference with its standard error."""
        runs, kinds = self.rows["nnie"].shape
        for kind in range(kinds):
            means = [f"{self.rows[form][:, kind].mean():.5f}" for form in FORMS]
            more, error = self._more(kind)
            yield "\t".join([name, str(runs), LOSSES[kind], *means, f"{more:+.5f}", f"{error:.5f}"])

    def worse(self) -> list[str]:
        """The losses that are greater in the mapper's form by more than rounding's chance explains."""
        found = []
        for kind in range(self.rows["nnie"].shape[1]):
            more, error = self._more(kind)
            if more > 3 * error:
                found.append(LOSSES[kind])
        return found

    def _more(self, kind: int) -> tuple[float, float]:
        differences = self.rows["nnie"][:, kind] - self.rows["plain"][:, kind]
        return differences.mean(), differences.std(ddof=1) / len(differences) ** 0.5


def model_file(name: str, folder: Path) -> Path:
    """A model of the corpus, rebuilt in `folder`."""
    materialize = [sys.executable, str(CORPUS / "materialize.py"), str(folder), name]
    subprocess.run(materialize, check=True, stdout=subprocess.DEVNULL)
    return folder / f"{name}.onnx"


def pictures() -> list[Path]:
    return sorted(PICTURES.glob("*.png"))


def measured(path: Path, model: Model, files: Sequence[Path], scratch: Path) -> Losses:
    """Convert a model into both forms and run them in 8 bits on every picture at every brightness."""
    forms = {
        "plain": _Form(path, scratch / f"{path.stem}.plain", target="caffe"),
        "nnie": _Form(path, scratch / f"{path.stem}.nnie", target="nnie"),
    }
    reference = ort.Reference(path)
    rows: dict[str, list[list[float]]] = {name: [] for name in forms}
    for file in files:
        for gain in BRIGHTNESS:
            how = replace(model.pictures, scale=model.pictures.scale * gain)
            ports = forms["nnie"].export.inputs
            (feeds,) = all_runs(ports, (), [f"{ports[0].name}={file}"], how)
            true = reference.run(feeds, reference.tensors)
            for name, form in forms.items():
                rows[name].append(_losses(model, true, form.run(feeds)))
    return Losses({name: np.array(found) for name, found in rows.items()})


def _losses(model: Model, true: Outputs, found: Outputs) -> list[float]:
    losses = [max(1 - _cosine(true[name], found[name]) for name in true)]
    if model.decode is None:
        return losses
    (scores, boxes), (found_scores, found_boxes) = model.decode(true), model.decode(found)
    best = np.argsort(-scores)[:BEST]
    overlaps = overlap(boxes[best], found_boxes[best])
    errors = np.abs(scores - found_scores)[best]
    return [*losses, 1 - overlaps.mean(), 1 - np.quantile(overlaps, 0.05), errors.mean()]


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@dataclass
class _Form:
    """An export and its runtime."""

    path: Path
    folder: Path
    target: str
    runtime: Runtime = field(default_factory=lambda: Builtin(in_eight_bits))

    def __post_init__(self) -> None:
        options = {"target": self.target, "partition": True, "tail": "auto", "proof": False, "force": True}
        self.export: ExportMap = mapfile.read(onnx2caffe.convert(self.path, self.folder, **options).map_file)

    def run(self, feeds: Outputs) -> dict[str, np.ndarray]:
        """The model's outputs, segment after segment."""
        values = dict(feeds)
        for segment in self.export.segments:
            if isinstance(segment, CaffeSegment):
                files = NetFiles(self.folder / segment.prototxt, self.folder / segment.caffemodel)
                taps = {name: Tap(place.blob) for name, place in segment.outputs.items()}
                fed = {place.blob: values[name] for name, place in segment.inputs.items()}
                (blobs,) = self.runtime.run(files, [fed], list(taps.values()))
                values |= {name: blobs[tap].reshape(segment.outputs[name].shape) for name, tap in taps.items()}
            else:
                fed = {inner: values[name] for name, inner in segment.inputs.items()}
                results = ort.session(self.folder / segment.file).run(list(segment.outputs.values()), fed)
                values |= zip(segment.outputs, results, strict=True)
        return {port.name: values[port.name] for port in self.export.outputs}
