#!/usr/bin/env python3
"""ONNX's own suites and the corpus beside this repository through both dialects, TVM's own importers beside ours.

    python -m tests.tvm.conformance            print the counts and rewrite conformance.tsv (hours)
    python -m tests.tvm.conformance --check    fail where an outcome is worse than conformance.tsv says
    python -m tests.tvm.conformance --merge    put what a stopped run has done into conformance.tsv

What is done stands in build/conformance-tvm.tsv, where the next start goes on (delete it to begin anew). Outcomes of
ours: equal · refused (a named reason) · differs (silently wrong) · failed (any other error); of the importer: equal ·
differs · raises. Both are built without optimisation. The corpus is held against the user's file as an export is, the
suites as for Caffe.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import onnx2caffe
from onnx2caffe import frontend
from onnx2caffe.errors import NumbersDiffer, Onnx2CaffeError, RuntimeMissing, Unsupported, UsageError
from onnx2caffe.runtimes import tvm
from onnx2caffe.stages import SEEDS
from onnx2caffe.tvm.registry import DIALECTS
from onnx2caffe.verify.inputs import all_runs
from onnx2caffe.verify.measure import HALF_LIMIT, Verdict
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.scores import Scores
from tests.conformance.run import TOLERANCE, TOLERANCE_HALF, expected_outputs, narrow
from tests.conformance.suites import SUITES, Sample, pattern_samples, samples
from tests.corpus.run import CORPUS, free_shapes, models
from tests.ops.harness import INFINITE, Array, difference
from tests.tvm import harness
from tests.tvm.importer import Importer

TABLE = Path(__file__).with_name("conformance.tsv")
DONE = Path("build/conformance-tvm.tsv")
HEADER = "suite\tcase\tdialect\tours\twhy\timporter\twhy"
RANK = {"equal": 0, "refused": 1, "no reference": 2, "differs": 3, "failed": 4}
CASES = (*SUITES, "patterns")


@dataclass(frozen=True)
class Row:
    """What became of one case in one dialect."""

    suite: str
    name: str
    dialect: str
    ours: str
    why: str
    importer: str
    importer_why: str

    def line(self) -> str:
        return "\t".join(" ".join(str(field).split())[:200] for field in astuple(self))

    @classmethod
    def of(cls, line: str) -> Row:
        return cls(*line.split("\t"))


@dataclass(frozen=True)
class Job:
    """A case: how ours does in a dialect, and how its importer does, each as (outcome, why)."""

    suite: str
    name: str
    ours: Callable[[tvm.Tvm], tuple[str, str]]
    theirs: Callable[[Importer], tuple[str, str]]

    def row(self, runtime: tvm.Tvm, importer: Importer) -> Row:
        return Row(self.suite, self.name, runtime.name, *self.ours(runtime), *self.theirs(importer))


def suite_jobs(suite: str) -> Iterator[Job]:
    """The cases of one of ONNX's suites, or of this project's patterns."""
    for sample in pattern_samples() if suite == "patterns" else samples(suite):
        wanted = expected_outputs(sample)
        yield Job(suite, sample.name, _our_case(sample, wanted), _their_case(sample, wanted))


def _our_case(sample: Sample, wanted: Mapping[str, Any] | None) -> Callable[[tvm.Tvm], tuple[str, str]]:
    def outcome(runtime: tvm.Tvm) -> tuple[str, str]:
        if why := sample.left_out():
            return "refused", why
        try:
            shapes = {n: v.shape for n, v in sample.feeds.items() if isinstance(v, np.ndarray)}
            loaded, emitted = harness.emitted(sample.model, runtime.name, shapes)
        except (Unsupported, UsageError) as refusal:
            return "refused", refusal.message
        except Exception as problem:
            return "failed", f"{type(problem).__name__}: {problem}"
        if wanted is None:
            return "no reference", ""
        try:
            (results,) = harness.run(runtime, loaded, emitted, [sample.feeds])
        except (AssertionError, Onnx2CaffeError) as problem:
            return "failed", str(problem)
        found = dict(zip((output.name for output in loaded.outputs), results, strict=True))
        return _judged(sample, wanted, found)

    return outcome


def _their_case(sample: Sample, wanted: Mapping[str, Any] | None) -> Callable[[Importer], tuple[str, str]]:
    def outcome(importer: Importer) -> tuple[str, str]:
        if wanted is None:
            return "no reference", ""
        if not all(isinstance(value, np.ndarray) and value.dtype.kind in "fiub" for value in sample.feeds.values()):
            return "raises", "an input is no tensor of numbers"
        try:
            results = importer.run(sample.model, sample.feeds)
        except RuntimeMissing as problem:
            return "raises", problem.message
        names = [output.name for output in sample.model.graph.output]
        return _judged(sample, wanted, dict(zip(names, results, strict=False)))

    return outcome


def _judged(sample: Sample, wanted: Mapping[str, Any], found: Mapping[str, Array]) -> tuple[str, str]:
    """The measure of tests.conformance.run; an importer may leave float16 as it is, where ours is float32."""
    for name, reference in wanted.items():
        if not isinstance(reference, np.ndarray) or name not in found:
            return "differs", f"{name} is no tensor, or not there"
        if found[name].shape != reference.shape:
            return "differs", f"{name}: {found[name].shape} for {reference.shape}"
        try:
            e = difference(reference, found[name])
        except AssertionError as problem:
            return "differs", f"{name}: {problem}"
        half = narrow(sample.model) or found[name].dtype == np.float16
        if not e <= (TOLERANCE_HALF if half else TOLERANCE):
            return "differs", f"{name}: e={e:.1e}"
        if not _as_infinite(reference, found[name]):
            return "differs", f"{name}: not infinite where the reference is"
    return "equal", ""


def _as_infinite(r: Array, c: Array) -> bool:
    """Whether the candidate is infinite (or nearly: masks are) where the reference is, with its sign."""
    r, c = np.asarray(r, np.float64), np.asarray(c, np.float64)
    far = np.abs(r) >= INFINITE
    return bool((np.sign(r[far]) * c[far] >= INFINITE).all())


def corpus_jobs(folder: Path) -> Iterator[Job]:
    """The models beside this repository, the smallest first."""
    for path, entry in sorted(models(folder / "corpus"), key=lambda one: one[0].stat().st_size):
        shapes = free_shapes(path, entry)
        yield Job("corpus", path.stem, _our_model(path, shapes, folder), _their_model(path, shapes))


def _our_model(path: Path, shapes: Mapping[str, Any], folder: Path) -> Callable[[tvm.Tvm], tuple[str, str]]:
    def outcome(runtime: tvm.Tvm) -> tuple[str, str]:
        options = {"dialect": runtime.name, "input_shapes": shapes, "name": "net", "compile": False, "force": True}
        try:
            done = onnx2caffe.export_tvm(path, folder / "out", **options)
        except Unsupported as refusal:
            return "refused", refusal.message
        except NumbersDiffer as problem:
            return "differs", problem.message
        except Onnx2CaffeError as problem:
            return "failed", problem.message
        assert done.proof is not None
        return "equal", f"{len({row.tensor for row in done.proof.rows})} tensors, {done.calls} calls"

    return outcome


def _their_model(path: Path, shapes: Mapping[str, Any]) -> Callable[[Importer], tuple[str, str]]:
    def outcome(importer: Importer) -> tuple[str, str]:
        loaded = frontend.load(path, input_shapes=shapes)
        outputs = [output.name for output in loaded.outputs]
        runs = list(all_runs(loaded.inputs, SEEDS[:1]))
        try:
            results = importer.run(path, runs[0])
        except RuntimeMissing as problem:
            return "raises", problem.message
        if len(results) != len(outputs):
            return "differs", f"{len(results)} outputs for {len(outputs)}"
        as_written = UserModel(path, (), outputs)  # float16 stays float16, as in the importer
        scores = Scores(as_written, runs, outputs)
        scores.add(0, {"importer": dict(zip(outputs, results, strict=True))}, dict.fromkeys(outputs, ("", "")))
        allowed = HALF_LIMIT if loaded.half else 0.0
        for row in scores.proof({}).rows:
            if row.judgement.verdict is Verdict.DIFFERS and not row.judgement.error <= allowed:
                return "differs", f"{row.tensor}: e={row.judgement.error:.1e}"
        return "equal", ""

    return outcome


def jobs(suites: Sequence[str], only: str, folder: Path) -> Iterator[Job]:
    """All cases whose name holds `only`."""
    for suite in suites:
        for job in corpus_jobs(folder) if suite == "corpus" else suite_jobs(suite):
            if only in job.name:
                yield job


def run(
    suites: Sequence[str], dialects: Sequence[str], only: str, before: Mapping[tuple[str, ...], Row]
) -> Iterator[Row]:
    """All rows, those of `before` as they are."""
    runtimes = [(tvm.find(dialect), Importer(dialect)) for dialect in dialects]
    with tempfile.TemporaryDirectory() as scratch:
        for job in jobs(suites, only, Path(scratch)):
            for runtime, importer in runtimes:
                known = before.get((job.suite, job.name, runtime.name))
                yield known if known else job.row(runtime, importer)
    for runtime, importer in runtimes:
        runtime.close()
        importer.close()


def rows_of(table: Path) -> dict[tuple[str, ...], Row]:
    """A table by suite, case and dialect."""
    lines = table.read_text().splitlines()[1:] if table.exists() else []
    return {(row.suite, row.name, row.dialect): row for row in map(Row.of, lines)}


def worse(rows: Sequence[Row], before: Mapping[tuple[str, ...], Row]) -> list[str]:
    """Rows whose outcome fell behind the table."""
    return [
        f"{row.suite}/{row.name} in {row.dialect}: {old.ours} -> {row.ours} {row.why}"
        for row in rows
        if (old := before.get((row.suite, row.name, row.dialect))) and RANK[row.ours] > RANK[old.ours]
    ]


def bad(row: Row) -> bool:
    """Whether ours is wrong, or behind the importer."""
    return row.ours in ("differs", "failed") or row.importer == "equal" != row.ours


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """The counts by suite and dialect, and what only one of the two gets right."""
    for suite, dialect in dict.fromkeys((row.suite, row.dialect) for row in rows):
        some = [row for row in rows if (row.suite, row.dialect) == (suite, dialect)]
        for who, outcomes in (("ours", Counter(r.ours for r in some)), ("importer", Counter(r.importer for r in some))):
            yield f"{suite:18} {dialect} {who:8} " + ", ".join(f"{n} {o}" for o, n in sorted(outcomes.items()))
        ahead = sum(row.ours == "equal" != row.importer for row in some)
        behind = sum(row.importer == "equal" != row.ours for row in some)
        yield f"{suite:18} {dialect} only ours equal: {ahead}, only the importer: {behind}"


def checked(rows: Sequence[Row]) -> int:
    """Say what rows hold and where they fell behind the table; the exit code."""
    behind = worse(rows, rows_of(TABLE))
    print(*summary(rows), *behind, sep="\n")
    return 1 if behind or any(map(bad, rows)) else 0


def merged(rows: Sequence[Row]) -> int:
    """Say what rows hold, and put them into the table; the exit code."""
    table = rows_of(TABLE) | {(row.suite, row.name, row.dialect): row for row in rows}
    TABLE.write_text("\n".join([HEADER, *sorted(row.line() for row in table.values())]) + "\n")
    print(*summary(rows), sep="\n")
    return 1 if any(map(bad, rows)) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with conformance.tsv instead of rewriting it")
    parser.add_argument("--merge", action="store_true", help="run nothing: take what is done into conformance.tsv")
    parser.add_argument("--suite", action="append", choices=["corpus", *CASES], help="(default: all)")
    parser.add_argument("--dialect", action="append", choices=DIALECTS, help="(default: both)")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    options = parser.parse_args()
    if options.merge:
        return merged(list(rows_of(DONE).values()))
    suites = options.suite or [*CASES, *(["corpus"] if CORPUS.is_dir() else [])]
    rows = []
    DONE.parent.mkdir(exist_ok=True)
    before = rows_of(DONE)
    with DONE.open("a") as done:
        if not before:
            print(HEADER, file=done, flush=True)
        for row in run(suites, options.dialect or DIALECTS, options.only, before):
            rows.append(row)
            if (row.suite, row.name, row.dialect) not in before:
                print(row.line(), file=done, flush=True)
            if bad(row):
                print(row.line(), flush=True)
    code = checked(rows) if options.check else merged(rows)
    DONE.unlink()
    return code


if __name__ == "__main__":
    sys.exit(main())
