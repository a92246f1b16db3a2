#!/usr/bin/env python3
"""Measure converting: whole processes, wall time and peak memory, beside a bare read and write of the same weights.

    python tools/bench.py [--runs 3] [--only resnet18]

Bars: without proof at most 3 x bare + 1 s, peak memory at most 2 x file + 250 MB; `--version` at most 3 x
`import numpy`.
Exit 1 when one is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

BARE = """
import sys, onnx
model = onnx.load(sys.argv[1])
with open(sys.argv[2], "wb") as out:
    for tensor in model.graph.initializer:
        out.write(tensor.raw_data)
"""
MODELS = ("resnet18", "mobilenetv2", "nanodet_m", "vgg16")
BUILD = [sys.executable, str(Path(__file__).with_name("bench_models.py"))]
CONVERT = [sys.executable, "-m", "onnx2caffe", "convert"]


@dataclass(frozen=True)
class Cost:
    """Wall time in seconds and peak resident memory in MB, children included."""

    seconds: float
    megabytes: float


def measure(command: list[str], runs: int) -> Cost:
    """The best of `runs` runs."""
    costs = []
    for _ in range(runs):
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            words = process.stderr.read() if process.stderr else ""
            sys.exit(f"{' '.join(command)} failed:\n{words}")
        costs.append(Cost(seconds, usage.ru_maxrss / 1024))
    return min(costs, key=lambda c: c.seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=MODELS)
    options = parser.parse_args()
    table = Table(
        "model", "file MB", "bare s", "bare MB", "convert s", "bar s", "convert MB", "bar MB", "with proof s", "MB"
    )
    missed = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in [options.only] if options.only else MODELS:
            path, out = Path(scratch) / f"{name}.onnx", Path(scratch) / name
            # In a process of its own: a child's peak on Linux is never below what its parent held when it forked.
            subprocess.run([*BUILD, name, str(path)], check=True)
            size = path.stat().st_size / 1e6
            bare = measure([sys.executable, "-c", BARE, str(path), str(path.with_suffix(".bin"))], options.runs)
            plain = [*CONVERT, str(path), "-o", str(out), "--force", "--target", "caffe"]
            quick = measure([*plain, "--no-proof", "--no-caffe-run"], options.runs)
            proved = measure([*plain, "--no-caffe-run"], 1)
            bars = 3 * bare.seconds + 1, 2 * size + 250
            missed += [f"{name}: {quick.seconds:.2f} s > {bars[0]:.2f} s"] * (quick.seconds > bars[0])
            missed += [f"{name}: {quick.megabytes:.0f} MB > {bars[1]:.0f} MB"] * (quick.megabytes > bars[1])
            cells = (size, bare.seconds, bare.megabytes, quick.seconds, bars[0], quick.megabytes, bars[1])
            table.add_row(
                name,
                *(f"{v:.2f}" if v < 100 else f"{v:.0f}" for v in cells),
                f"{proved.seconds:.2f}",
                f"{proved.megabytes:.0f}",
            )
            path.unlink()
    numpy = measure([sys.executable, "-c", "import numpy"], 5)
    version = measure([sys.executable, "-m", "onnx2caffe", "--version"], 5)
    missed += ["--version is too slow"] * (version.seconds > 3 * numpy.seconds)
    console = Console(width=140)
    console.print(table)
    console.print(
        f"--version {version.seconds:.3f} s, import numpy {numpy.seconds:.3f} s (bar {3 * numpy.seconds:.3f} s)"
    )
    console.print("\n".join(missed) or "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
