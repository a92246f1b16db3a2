#!/usr/bin/env python3
"""Convert every pattern for the NNIE, prove it, hold its nets against the rules, and keep the outcomes.

    python -m tests.patterns.nnie           print and rewrite nnie.tsv
    python -m tests.patterns.nnie --check   fail where a pattern fell behind nnie.tsv

Outcomes: whole (one net) · partitioned (with ONNX parts) · refused (a named reason) · illegal · differs. A refused one
has no legal layer that counts: the patterns are a few nodes each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.driver import SEEDS
from onnx2caffe.errors import Unsupported
from onnx2caffe.runtimes import pycaffe
from onnx2caffe.runtimes.base import Runtime
from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.verify.inputs import all_runs
from onnx2caffe.verify.proof import Proof, prove
from onnx2caffe.verify.reference import UserModel
from tests.conformance.suites import noise
from tests.corpus.run import free_shapes
from tests.patterns import Pattern, patterns

TABLE = Path(__file__).with_name("nnie.tsv")
HEADER = "pattern\toutcome\tlayers\tCPU nodes\twhy"
RANK = {"whole": 0, "partitioned": 1, "refused": 2, "illegal": 3, "differs": 4}


@dataclass(frozen=True)
class Row:
    """What became of one pattern."""

    pattern: str
    outcome: str
    layers: int = 0
    cpu_nodes: int = 0
    why: str = ""

    def line(self) -> str:
        return "\t".join(
            map(str, (self.pattern, self.outcome, self.layers, self.cpu_nodes, " ".join(self.why.split())[:200]))
        )


def judge(pattern: Pattern, folder: Path, runtimes: Sequence[Runtime]) -> Row:
    """Convert, prove, check."""
    path = folder / f"{pattern.name}.onnx"
    onnx.save(pattern.model, path)
    inputs = [{"name": name, "shape": value.shape} for name, value in noise(pattern.model).items()]
    shapes = free_shapes(path, {"inputs": inputs})
    try:
        done = onnx2caffe.convert(path, folder / "out", target="nnie", input_shapes=shapes, proof=False, force=True)
    except Unsupported as refusal:
        return Row(pattern.name, "refused", why=refusal.message)
    reports = [onnx2caffe.check(file) for file in done.files if file.suffix == ".prototxt"]
    if faults := [finding for report in reports for finding in report.at_least("wrong")]:
        return Row(pattern.name, "illegal", why=f"{faults[0].rule} {faults[0].layer}: {faults[0].text}")
    proof = _proof(path, done.map_file, runtimes)
    if not proof.ok:
        return Row(pattern.name, "differs", why=str(proof.first_difference))
    return Row(pattern.name, "partitioned" if done.cpu_nodes else "whole", done.layers, done.cpu_nodes)


def _proof(path: Path, map_file: Path, runtimes: Sequence[Runtime]) -> Proof:
    export = mapfile.read(map_file)
    half = any(note.text.startswith("float16") for note in export.notes)
    model = UserModel(path, [*export.tensors], [output.name for output in export.outputs], half)
    return prove(map_file.parent, export, model, list(all_runs(export.inputs, SEEDS)), runtimes)


def behind(rows: Sequence[Row]) -> list[str]:
    """Rows whose outcome is worse than their line in the table."""
    before = {line.split("\t")[0]: line.split("\t")[1] for line in TABLE.read_text().splitlines()[1:]}
    return [
        f"{row.pattern}: {before[row.pattern]} -> {row.outcome} {row.why}"
        for row in rows
        if RANK[row.outcome] > RANK[before.get(row.pattern, "refused")]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    runtimes = [Builtin(), pycaffe.find(None)]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for pattern in patterns():
            rows.append(judge(pattern, Path(scratch), runtimes))
            print(rows[-1].line(), flush=True)
    for runtime in runtimes:
        runtime.close()
    print(", ".join(f"{count} {outcome}" for outcome, count in Counter(row.outcome for row in rows).items()))
    worse = behind(rows) if check else []
    print(*worse, sep="\n")
    if not check:
        TABLE.write_text("\n".join([HEADER, *(row.line() for row in rows)]) + "\n")
    return 1 if worse or any(RANK[row.outcome] > 2 for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
