#!/usr/bin/env python3
"""Convert the corpus beside this repository (../shared/corpus) for the NNIE with the proof on, and keep the outcomes.

    python -m tests.corpus.nnie             print and rewrite nnie.tsv
    python -m tests.corpus.nnie --check     fail where a model fell behind nnie.tsv
    python -m tests.corpus.nnie --lean      nothing proved; the table is left alone

Columns: model, outcome, Caffe nets, share of the multiply-adds on them, nodes that stay ONNX, layers, kinds of layers
that no public compiled net has, why less than nine tenths of the multiply-adds, or nothing, is on nets.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx2caffe
from onnx2caffe.errors import NumbersDiffer, Onnx2CaffeError, Unsupported
from tests.corpus.run import CORPUS, free_shapes, models

TABLE = Path(__file__).with_name("nnie.tsv")
HEADER = "model\toutcome\tsegments\t% of MACs\tCPU nodes\tlayers\tunproven\twhy"
RANK = {"equal": 0, "refused": 1, "illegal": 2, "differs": 3, "failed": 4}
ENOUGH = 90.0
"""Per cent of the multiply-adds below which the table says why."""


@dataclass(frozen=True)
class Row:
    """What became of one model. `share`: per cent of its multiply-adds on nets."""

    model: str
    outcome: str
    segments: int = 0
    share: float = 0.0
    cpu_nodes: int = 0
    layers: int = 0
    unproven: str = ""
    why: str = ""

    def line(self) -> str:
        figures = (self.segments, f"{self.share:.2f}", self.cpu_nodes, self.layers)
        return "\t".join(map(str, (self.model, self.outcome, *figures, self.unproven, self.why)))

    @classmethod
    def read(cls, line: str) -> Row:
        model, outcome, segments, share, cpu_nodes, layers, unproven, why = line.split("\t")
        return cls(model, outcome, int(segments), float(share), int(cpu_nodes), int(layers), unproven, why)


def table() -> dict[str, Row]:
    """The checked-in rows, by model."""
    return {row.model: row for row in map(Row.read, TABLE.read_text().splitlines()[1:])}


def convert(path: Path, entry: Mapping[str, Any], folder: Path, proof: bool = True) -> Row:
    """One model."""
    options = {"name": "net", "target": "nnie", "input_shapes": free_shapes(path, entry), "force": True}
    try:
        done = onnx2caffe.convert(path, folder, proof=proof, **options)
    except Unsupported as refusal:
        return Row(path.stem, "refused", why=_line(refusal.message))
    except NumbersDiffer as problem:
        return Row(path.stem, "differs", why=_line(problem.message))
    except Onnx2CaffeError as problem:
        return Row(path.stem, "failed", why=_line(problem.message))
    reports = [onnx2caffe.check(file) for file in done.files if file.suffix == ".prototxt"]
    share = 100 * done.share
    row = Row(path.stem, "equal", done.segments, share, done.cpu_nodes, done.layers, _unproven(reports))
    if faults := [finding for report in reports for finding in report.at_least("wrong")]:
        return Row(path.stem, "illegal", why=_line("; ".join(f"{f.rule} {f.layer}: {f.text}" for f in faults)))
    return row if share >= ENOUGH else Row(**{**vars(row), "why": _blocked(done.notes)})


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


def _unproven(reports: Sequence[onnx2caffe.Report]) -> str:
    """The kinds of findings, each with its number."""
    findings = (f for report in reports for f in report.findings if f.severity == "unproven")
    kinds = Counter(f"{f.rule} {re.sub(r'( of kernel)? [0-9].*', '', f.text)}" for f in findings)
    return "; ".join(f"{kind} ({count})" for kind, count in sorted(kinds.items()))


def _blocked(notes: Sequence[onnx2caffe.Note]) -> str:
    """What stays ONNX for want of a legal form."""
    reasons = [note.text.removeprefix("stays ONNX: ") for note in notes if note.text.startswith("stays ONNX: ")]
    return _line(" | ".join(reasons))


def behind(rows: Sequence[Row]) -> list[str]:
    """Rows that fell behind the checked-in table."""
    before = table()
    return [
        f"{row.model}: {what}: {old} -> {new}"
        for row in rows
        if row.model in before
        for what, old, new in _setbacks(before[row.model], row)
    ]


def _setbacks(old: Row, new: Row) -> Iterator[tuple[str, object, object]]:
    if RANK[new.outcome] > RANK[old.outcome]:
        yield "outcome", old.outcome, f"{new.outcome} {new.why}"
    if (old.outcome, new.outcome) != ("equal", "equal"):
        return
    if new.share < old.share - 0.005:
        yield "% of MACs", old.share, new.share
    for figure in ("segments", "cpu_nodes", "layers"):
        if getattr(new, figure) > getattr(old, figure):
            yield figure, getattr(old, figure), getattr(new, figure)
    if fresh := set(_kinds(new.unproven)) - set(_kinds(old.unproven)):
        yield "unproven", old.unproven, "; ".join(sorted(fresh))


def _kinds(unproven: str) -> list[str]:
    return [kind.rpartition(" ")[0] for kind in unproven.split("; ")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lean", action="store_true", help="no proof; the table is left alone")
    parser.add_argument("--only", default="", help="models whose name holds this text; the table is left alone")
    options = parser.parse_args()
    if not CORPUS.is_dir():
        print("no ../shared/corpus here: nothing to do", file=sys.stderr)
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for path, entry in models(Path(scratch) / "corpus"):
            if options.only in path.stem:
                rows.append(convert(path, entry, Path(scratch) / "out" / path.stem, proof=not options.lean))
                print(rows[-1].line(), flush=True)
    worse = behind(rows) if options.check else []
    if not (options.check or options.lean or options.only):
        TABLE.write_text("\n".join([HEADER, *(row.line() for row in rows)]) + "\n")
    print(*worse, sep="\n")
    return 1 if worse or any(RANK[row.outcome] > 1 for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
