"""How long our modules take beside those of TVM's own importers: one process, one thread, the two in turns.

    python -m tests.tvm.latency [--rounds 30] [--only resnet18] [--dialect relay]

Both are built for this machine by the same TVM with the same options. Bar: the median of ours is at most 1.05 times the
importer's. Exit 1 when one is missed. Needs the corpus beside this repository.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.mapfile import TvmSegment
from onnx2caffe.stages import SEEDS
from onnx2caffe.tvm.registry import DIALECTS
from onnx2caffe.verify.inputs import all_runs
from tests.corpus.run import CORPUS, models
from tests.tvm.importer import Importer

MODELS = {
    "resnet18": "resnet18_op11",
    "mobilenetv2": "mobilenetv2_op11",
    "nanodet": "nanodet_m_416_op11",
    "yolov5n": "yolov5n_v61_op12",
    "unet": "unet_convtranspose_op11",  # of the three UNets the one that both importers read
}
BAR = 1.05
OPT_LEVEL = 3


@dataclass(frozen=True)
class Latency:
    """Milliseconds per round."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.theirs)


def measured(path: Path, importer: Importer, rounds: int, scratch: Path) -> Latency:
    """Both modules of a model in one dialect."""
    done = onnx2caffe.export_tvm(
        path, scratch / "out", name="net", dialect=importer.dialect, opt_level=OPT_LEVEL, compare=False, force=True
    )
    (segment,) = mapfile.read(done.map_file).segments
    assert isinstance(segment, TvmSegment)
    feeds = next(iter(all_runs(done.inputs, SEEDS[:1])))
    arrays = {f"own/{place.blob}": feeds[name] for name, place in segment.inputs.items()}
    arrays |= {f"model/{name}": array for name, array in feeds.items()}
    np.savez(scratch / "inputs.npz", **arrays)
    script = [str(importer.python), str(Path(__file__).with_name("latency_worker.py")), importer.dialect, str(path)]
    given = [str(done.files["library"]), str(scratch / "inputs.npz"), str(rounds), str(OPT_LEVEL)]
    variables = {**importer.variables, "TVM_NUM_THREADS": "1", "TOPHUB_LOCATION": "NONE"}
    run = subprocess.run([*script, *given], env=variables, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{path.stem} in {importer.dialect}:\n{run.stderr}")
    return Latency(**json.loads(run.stdout.splitlines()[-1]))


def latencies(names: list[str], dialects: list[str], rounds: int) -> Iterator[tuple[str, str, Latency]]:
    """One by one: model, dialect, times."""
    with tempfile.TemporaryDirectory() as scratch:
        corpus = {path.stem: path for path, _ in models(Path(scratch) / "corpus")}
        for name in names:
            for importer in map(Importer, dialects):
                yield name, importer.dialect, measured(corpus[MODELS[name]], importer, rounds, Path(scratch))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--dialect", choices=DIALECTS)
    options = parser.parse_args()
    if not CORPUS.is_dir():
        print(f"skipped: {CORPUS} is not there")
        return 0
    console = Console()
    table = Table("model", "dialect", "ours ms", "importer's ms", "ratio", title="medians, one thread")
    missed = []
    dialects = [options.dialect] if options.dialect else list(DIALECTS)
    for name, dialect, latency in latencies([options.only] if options.only else list(MODELS), dialects, options.rounds):
        medians = (f"{statistics.median(times):.1f}" for times in (latency.ours, latency.theirs))
        table.add_row(name, dialect, *medians, f"{latency.ratio:.3f}")
        console.print(f"{name} {dialect}: {latency.ratio:.3f}", highlight=False)
        missed += [f"{name} in {dialect}: {latency.ratio:.3f} > {BAR}"] * (latency.ratio > BAR)
    console.print(table)
    console.print("\n".join(missed) or "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
