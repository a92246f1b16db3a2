#!/usr/bin/env python3
"""Convert every case of ONNX's own suites for every target and run it in builtin and a real pycaffe.

    python -m tests.conformance.run            print the counts and rewrite table.tsv
    python -m tests.conformance.run --check    fail where an outcome is worse than table.tsv says

Outcomes: equal · refused (a named reason) · differs (silently wrong) · failed (any other error). The reference is the
case's model in onnxruntime; where onnxruntime cannot run it, the outputs the suite expects.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx2caffe.errors import Onnx2CaffeError, Unsupported, UsageError
from onnx2caffe.runtimes import pycaffe
from onnx2caffe.runtimes.base import Runtime, Tap
from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.targets.base import Target
from onnx2caffe.targets.caffe import BVLC, CAFFE
from tests.conformance.suites import LISTED, SUITES, Sample, pattern_samples, samples
from tests.ops.harness import convert, difference, reference

TABLE = Path(__file__).with_name("table.tsv")
RANK = {"equal": 0, "refused": 1, "no reference": 2, "differs": 3, "failed": 4}
TOLERANCE = 1e-4
TOLERANCE_HALF = 1e-2
"""For models whose reference computes in bfloat16 (design §6's figure for float16)."""


@dataclass(frozen=True)
class Row:
    """What became of one case on one target."""

    suite: str
    name: str
    op: str
    target: str
    outcome: str
    why: str = ""

    def line(self) -> str:
        return "\t".join((self.suite, self.name, self.op, self.target, self.outcome, " ".join(self.why.split())[:200]))


def expected_outputs(sample: Sample) -> dict[str, Any] | None:
    """The case's outputs, by name."""
    try:
        return reference(sample.model, sample.feeds)
    except Exception:  # onnxruntime's exceptions have no base of their own
        if sample.expected is None:
            return None
        return dict(zip((o.name for o in sample.model.graph.output), sample.expected, strict=False))


def narrow(model: onnx.ModelProto) -> bool:
    """Whether the model's own inputs are bfloat16."""
    return any(i.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for i in model.graph.input)


def judge(
    sample: Sample, wanted: dict[str, Any] | None, target: Target, runtimes: Sequence[Runtime], folder: Path
) -> Row:
    """Convert, run, compare."""
    row = (sample.suite, sample.name, sample.op, target.name)
    if why := sample.left_out():
        return Row(*row, "refused", why)
    try:
        shapes = {n: v.shape for n, v in sample.feeds.items() if isinstance(v, np.ndarray)}
        written = convert(sample.model, target, folder, shapes)
    except (Unsupported, UsageError) as refusal:
        return Row(*row, "refused", refusal.message)
    except Exception as problem:
        return Row(*row, "failed", f"{type(problem).__name__}: {problem}")
    if wanted is None:
        return Row(*row, "no reference")
    feeds = {written.inputs[k]: np.asarray(v, np.float32) for k, v in sample.feeds.items() if k in written.inputs}
    taps = [Tap(b) for b in dict.fromkeys(written.outputs.values())]
    try:
        for runtime in runtimes:
            (results,) = runtime.run(written.files, [feeds], taps)
            for name, r in wanted.items():
                if not isinstance(r, np.ndarray):
                    return Row(*row, "failed", f"{name} is no tensor, yet it was converted")
                e = difference(r, results[Tap(written.outputs[name])])
                if e > (TOLERANCE_HALF if narrow(sample.model) else TOLERANCE):
                    return Row(*row, "differs", f"{runtime.name}: {name} e={e:.1e}")
    except AssertionError as problem:
        return Row(*row, "differs", str(problem))
    except Onnx2CaffeError as problem:
        return Row(*row, "failed", problem.message)
    return Row(*row, "equal")


def run(suites: Sequence[str], only: str = "") -> Iterator[Row]:
    """All rows of the suites."""
    runtimes = [Builtin(), pycaffe.find(None)]
    with tempfile.TemporaryDirectory() as scratch:
        for suite in suites:
            cases = pattern_samples() if suite == "patterns" else samples(suite)
            for sample in cases:
                if only in sample.name:
                    wanted = expected_outputs(sample)
                    for target in (CAFFE, BVLC):
                        yield judge(sample, wanted, target, runtimes, Path(scratch))
    for runtime in runtimes:
        runtime.close()


def worse(rows: Sequence[Row]) -> list[str]:
    """Rows whose outcome fell behind the checked-in table."""
    before = {}
    for line in TABLE.read_text().splitlines()[1:]:
        suite, name, _, target, outcome, *_ = line.split("\t")
        before[suite, name, target] = outcome
    return [
        f"{r.suite}/{r.name} on {r.target}: {before[key]} -> {r.outcome} {r.why}"
        for r in rows
        if (key := (r.suite, r.name, r.target)) in before and RANK[r.outcome] > RANK[before[key]]
    ]


def listed(rows: Sequence[Row]) -> Iterator[str]:
    """How many of the plain node cases whose op a CNN uses are equal, per target."""
    for target in dict.fromkeys(r.target for r in rows):
        plain = [r for r in rows if r.suite == "node" and r.op in LISTED and "_expanded" not in r.name]
        outcomes = [r.outcome for r in plain if r.target == target and r.outcome != "no reference"]
        equal = outcomes.count("equal")
        if outcomes:
            share = 100 * equal / len(outcomes)
            yield f"plain node cases of listed ops on {target}: {equal} of {len(outcomes)} equal ({share:.1f} %)"


def refusals(rows: Sequence[Row], most: int = 40) -> Iterator[str]:
    """The commonest reasons, names and numbers left out."""
    reasons = Counter((r.op, _kind(r.why)) for r in rows if r.outcome == "refused" and r.target == "caffe")
    for (op, why), count in reasons.most_common(most):
        yield f"{count:5} {op}: {why}"


def _kind(why: str) -> str:
    words = re.sub(r"^\d+ nodes? cannot be converted: ", "", " ".join(why.split()))
    return re.sub(r"\d+", "#", re.sub(r"'[^']*'", "…", words))[:150]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with table.tsv instead of rewriting it")
    parser.add_argument("--suite", action="append", help=f"one of {', '.join(SUITES)}, patterns (default: all)")
    parser.add_argument("--only", default="", help="cases whose name holds this text; nothing is written")
    options = parser.parse_args()
    suites = options.suite or [*SUITES, "patterns"]
    rows = []
    for row in run(suites, options.only):
        rows.append(row)
        if row.outcome in ("differs", "failed"):
            print(row.line(), flush=True)
    for suite in suites:
        for target in ("caffe", "bvlc"):
            counts = Counter(r.outcome for r in rows if (r.suite, r.target) == (suite, target))
            print(f"{suite:18} {target:6}", ", ".join(f"{n} {o}" for o, n in sorted(counts.items())))
    print(*refusals(rows), *listed(rows), sep="\n")
    behind = worse(rows) if options.check else []
    if not options.check and not options.only and not options.suite:
        header = "suite\tcase\top\ttarget\toutcome\twhy"
        TABLE.write_text("\n".join([header, *sorted(r.line() for r in rows)]) + "\n")
    print(*behind, sep="\n")
    return 1 if behind or any(r.outcome in ("differs", "failed") for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
