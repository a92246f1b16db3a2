#!/usr/bin/env python3
"""Convert the corpus beside this repository (../shared/corpus) with the proof on, and keep the table of outcomes.

    python -m tests.corpus.run             print and rewrite table.tsv
    python -m tests.corpus.run --check     fail where an outcome fell behind table.tsv
    python -m tests.corpus.run --lean      only layers and multiply-adds, nothing proved (part of `make bench`)

Columns: model, target, outcome, tensors proved, layers of the net, nodes of the model, million multiply-adds of both,
why.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

import onnx2caffe
from onnx2caffe import frontend
from onnx2caffe.caffe.read import read_net
from onnx2caffe.errors import NumbersDiffer, Onnx2CaffeError, Unsupported
from tests.corpus.macs import model_macs, net_macs

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
TABLE = Path(__file__).with_name("table.tsv")
HEADER = "model\ttarget\toutcome\ttensors\tlayers\tnodes\tMMACs\tmodel MMACs\twhy"
RANK = {"equal": 0, "refused": 1, "differs": 2, "failed": 3}


@dataclass(frozen=True)
class Row:
    """What became of one model on one target."""

    model: str
    target: str
    outcome: str
    tensors: int = 0
    layers: int = 0
    nodes: int = 0
    macs: float = 0.0
    own_macs: float = 0.0
    why: str = ""

    def line(self) -> str:
        figures = (self.tensors, self.layers, self.nodes, f"{self.macs:.2f}", f"{self.own_macs:.2f}")
        return "\t".join(map(str, (self.model, self.target, self.outcome, *figures, self.why)))


def models(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The corpus, rebuilt in `folder`, with models.json's entries."""
    subprocess.run([sys.executable, str(CORPUS / "materialize.py"), str(folder)], check=True, stdout=subprocess.DEVNULL)
    entries = {e["name"]: e for e in json.loads((CORPUS / "models.json").read_text())["models"]}
    for path in sorted(folder.glob("*.onnx")):
        yield path, entries[path.stem]


def free_shapes(path: Path, entry: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs that the file leaves free."""
    graph = onnx.load(path, load_external_data=False).graph
    free = {i.name for i in graph.input if any(not d.dim_value for d in i.type.tensor_type.shape.dim)}
    return {i["name"]: tuple(i["shape"]) for i in entry["inputs"] if i["name"] in free}


def convert(path: Path, entry: Mapping[str, Any], target: str, scratch: Path, proof: bool = True) -> Row:
    """One model on one target."""
    shapes = free_shapes(path, entry)
    options = {"name": "net", "target": target, "input_shapes": shapes, "proof": proof, "force": True}
    try:
        done = onnx2caffe.convert(path, scratch / "out", **options)
    except Unsupported as refusal:
        return Row(path.stem, target, "refused", why=" ".join(refusal.message.split())[:300])
    except NumbersDiffer as problem:
        return Row(path.stem, target, "differs", why=" ".join(problem.message.split())[:300])
    except Onnx2CaffeError as problem:
        return Row(path.stem, target, "failed", why=" ".join(problem.message.split())[:300])
    net = read_net(done.prototxt, done.caffemodel)
    model = frontend.load(path, input_shapes=shapes).model
    own = model_macs(model) / 1e6
    proved = len({r.tensor for r in done.proof.rows}) if done.proof else 0
    layers = sum(p.layer.type != "Input" for p in net)
    return Row(path.stem, target, "equal", proved, layers, len(model.graph), net_macs(net) / 1e6, own)


def behind(rows: list[Row]) -> list[str]:
    """Rows that fell behind the checked-in table: a worse outcome, or more layers."""
    before = {tuple(line.split("\t")[:2]): line.split("\t") for line in TABLE.read_text().splitlines()[1:]}
    worse = []
    for row in rows:
        old = before.get((row.model, row.target))
        if old is None:
            continue
        if RANK[row.outcome] > RANK[old[2]]:
            worse.append(f"{row.model} on {row.target}: {old[2]} -> {row.outcome} {row.why}")
        elif row.outcome == old[2] == "equal" and row.layers > int(old[4]):
            worse.append(f"{row.model} on {row.target}: {old[4]} -> {row.layers} layers")
    return worse


def fat(rows: list[Row]) -> list[str]:
    """What the nets add: layers over nodes, multiply-adds over the model's."""
    added = [(r, r.macs / r.own_macs - 1) for r in rows if r.outcome == "equal" and r.own_macs]
    return [
        f"{r.model} on {r.target}: {r.layers} layers, {r.nodes} nodes, {more:+.1%} multiply-adds" for r, more in added
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lean", action="store_true", help="no proof; the table is left alone")
    parser.add_argument("--only", default="", help="models whose name holds this text; the table is left alone")
    parser.add_argument("--target", choices=("caffe", "bvlc"))
    options = parser.parse_args()
    if not CORPUS.is_dir():
        print("no ../shared/corpus here: nothing to do", file=sys.stderr)
        return 0
    targets = [options.target] if options.target else ["caffe", "bvlc"]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for path, entry in models(Path(scratch) / "corpus"):
            if options.only in path.stem:
                for target in targets:
                    rows.append(convert(path, entry, target, Path(scratch), proof=not options.lean))
                    print(rows[-1].line(), flush=True)
    if options.lean:
        print(*fat(rows), sep="\n")
    worse = behind(rows) if options.check else []
    if not (options.check or options.lean or options.only or options.target):
        TABLE.write_text("\n".join([HEADER, *(r.line() for r in rows)]) + "\n")
    print(*worse, sep="\n")
    return 1 if worse or any(RANK[r.outcome] > 1 for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
