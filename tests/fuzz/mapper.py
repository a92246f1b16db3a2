"""What a random model must do on target nnie: legal and equal as a whole, or in parts; or be refused by name."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import onnx
from hypothesis import strategies as st

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.caffe.lower.families import load_families
from onnx2caffe.caffe.lower.registry import ALTERNATIVES
from onnx2caffe.errors import Unsupported
from onnx2caffe.mapfile import CaffeSegment
from onnx2caffe.partition.tail import TAILS
from onnx2caffe.runtimes import interpreter
from onnx2caffe.runtimes.base import Runtime
from onnx2caffe.verify.measure import Sample
from onnx2caffe.verify.proof import prove
from tests.fuzz.graph import Draw
from tests.fuzz.oracle import Feeds, Samples, check_refusal, feeds_of

__all__ = ["Choice", "Scanner", "choices", "examine"]

_SCAN = Path(__file__).parents[3] / "shared" / "tools" / "nnie_scan.py"
_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm"})


@dataclass(frozen=True)
class Choice:
    """What the user asks for."""

    tail: str = "auto"
    keep_bn: bool = False
    single_wk: bool = False
    recipes: Mapping[str, str] = field(default_factory=dict)


@cache
def _recipes() -> list[tuple[str, str]]:
    """Every exact variant of what has several."""
    load_families()
    found = ((key, known) for key, known in ALTERNATIVES.items() if len(known) > 1)
    return [(key, one.variant) for key, known in found for one in known.values() if not one.approximate]


@st.composite
def choices(draw: Draw) -> Choice:
    recipes = dict(draw(st.lists(st.sampled_from(_recipes()), max_size=4))) if draw(st.booleans()) else {}
    return Choice(draw(st.sampled_from(TAILS)), draw(st.integers(0, 3)) == 3, draw(st.booleans()), recipes)


class Scanner:
    """The second opinion beside the repository, in a process of a Python that has `caffe`."""

    _LOOP = """
import json, sys, nnie_scan
for line in sys.stdin:
    print(json.dumps(nnie_scan.scan(line.strip())), flush=True)
"""

    def __init__(self, python: Path) -> None:
        self._process: subprocess.Popen[str] | None = None
        if _SCAN.is_file():
            self._process = subprocess.Popen(
                [str(python), "-c", self._LOOP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=_SCAN.parent,
                env=interpreter.environment(),
            )

    def findings(self, prototxt: Path) -> list[object]:
        """What it says against a net; nothing where it is not there."""
        if self._process is None:
            return []
        assert self._process.stdin
        assert self._process.stdout
        print(prototxt, file=self._process.stdin, flush=True)
        return list(json.loads(self._process.stdout.readline())["findings"])

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@dataclass(frozen=True)
class _Witness:
    """The samples in the place of the user's model."""

    samples: Samples
    order: Mapping[str, int] = field(default_factory=dict)

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self.samples)

    def sample(self, _: Feeds, names: Sequence[str]) -> dict[str, Sample]:
        return {name: self.samples[name] for name in names}

    def rounded(self, *_: object) -> Feeds:
        """Nothing more: the samples hold that noise."""
        return {}

    def as_written(self, *_: object) -> Feeds:
        return {}

    def nearest_before(self, *_: object) -> tuple[str, ...]:
        return ()


def examine(
    model: onnx.ModelProto, samples: Samples, choice: Choice, runtimes: Sequence[Runtime], scanner: Scanner
) -> str:
    """Convert the model, scan what was written and hold it against the samples: what became of it, in a word.

    Raises:
        AssertionError: a net is illegal, a tensor differs, or the refusal names no node, no reason, or too little.
        RuntimeCrash: a runtime does not run what was written.

    """
    with tempfile.TemporaryDirectory(prefix="fuzz") as name:
        folder = Path(name)
        try:
            done = _converted(model, choice, folder)
        except Unsupported as refusal:
            _check_refusal(refusal, model)
            return "refused"
        export = mapfile.read(done.map_file)
        nets = {segment.prototxt for segment in export.segments if isinstance(segment, CaffeSegment)}
        for file in done.files:
            if file.suffix == ".prototxt":
                _check_legal(file, scanner if file.name in nets else None)
        proof = prove(done.map_file.parent, export, _Witness(samples), [feeds_of(model)], runtimes)
        assert proof.ok, f"{proof.first_difference}; {choice}"
        assert {output.name for output in model.graph.output} <= {row.tensor for row in proof.rows}
        return "whole" if len(export.segments) == 1 else "in parts"


def _converted(model: onnx.ModelProto, choice: Choice, folder: Path) -> onnx2caffe.Conversion:
    source = folder / "m.onnx"
    onnx.save(model, source)
    options = {"tail": choice.tail, "keep_bn": choice.keep_bn, "single_wk": choice.single_wk}
    return onnx2caffe.convert(
        source, folder / "out", target="nnie", recipes=choice.recipes, proof=False, check=True, **options
    )


def _check_refusal(refusal: Unsupported, model: onnx.ModelProto) -> None:
    """A refusal is for want of any legal layer with weights: it names them all."""
    named = check_refusal(refusal, model)
    missed = {node.name for node in _computing(model) if node.op_type in _WEIGHTED} - named
    assert not missed, f"refused, but not for {missed}: {refusal}"


def _computing(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes whose results depend on values of the inputs, not on their shapes alone."""
    known = {value.name for value in model.graph.input}
    found = []
    for node in model.graph.node:
        if node.op_type != "Shape" and known.intersection(node.input):
            known.update(node.output)
            found.append(node)
    return found


def _check_legal(prototxt: Path, scanner: Scanner | None) -> None:
    found = onnx2caffe.check(prototxt).at_least("wrong")
    assert not found, f"{prototxt.name}: {found}"
    if scanner:
        seen = scanner.findings(prototxt)
        assert not seen, f"{prototxt.name}: {seen}"
