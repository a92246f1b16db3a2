"""What a comparison gathers: every tensor's worst judgement in every runtime, in the order of the user's file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx2caffe.canon import Shape
from onnx2caffe.runtimes.base import Array, Feeds
from onnx2caffe.verify.measure import HALF_LIMIT, Judgement, Verdict, distance, judge
from onnx2caffe.verify.reference import UserModel

__all__ = ["Progress", "Proof", "Row", "Scores"]

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One tensor in one runtime: the worst judgement over the runs, and the run (from 0) it comes from."""

    tensor: str
    layer: str
    blob: str
    shape: Shape
    runtime: str
    run: int
    judgement: Judgement


@dataclass(frozen=True)
class Proof:
    """What was compared. `rows`: in the user's topological order, one per tensor and runtime.

    `runtimes`: name -> version text. `unjudged`: the outputs that no input could judge, each with the nearest judged
    tensors before it. `without`: what the
    yardstick leaves out of the user's file ("its quantisation").
    """

    rows: tuple[Row, ...]
    runtimes: Mapping[str, str]
    runs: int
    unjudged: Mapping[str, tuple[str, ...]]
    without: str = ""

    @property
    def first_difference(self) -> Row | None:
        """The first row, in the user's topological order, that differs."""
        return next((row for row in self.rows if row.judgement.verdict is Verdict.DIFFERS), None)

    @property
    def ok(self) -> bool:
        """Whether no tensor differs in any runtime."""
        return self.first_difference is None

    def joined(self, other: Proof) -> Proof:
        """This proof with what `other` compared on the same inputs in other runtimes; each tensor's rows together."""
        order = {tensor: number for number, tensor in enumerate(dict.fromkeys(row.tensor for row in self.rows))}
        rows = sorted((*self.rows, *other.rows), key=lambda row: order.get(row.tensor, len(order)))
        unjudged = {**other.unjudged, **self.unjudged}
        return replace(self, rows=tuple(rows), runtimes={**self.runtimes, **other.runtimes}, unjudged=unjudged)

    def tensors(self, verdict: Verdict) -> list[str]:
        """The tensors whose worst verdict over the runtimes this is."""
        worst: dict[str, Row] = {}
        for row in self.rows:
            worst[row.tensor] = max(row, worst.get(row.tensor, row), key=_badness)
        return [name for name, row in worst.items() if row.judgement.verdict is verdict]


def _badness(row: Row) -> tuple[int, float]:
    """Orders rows: unjudged says least, a difference most."""
    rank = (Verdict.UNJUDGED, Verdict.EQUAL, Verdict.DIFFERS).index(row.judgement.verdict)
    return rank, row.judgement.error / max(row.judgement.allowed, 1e-30)


class Scores:
    """Holds tensors against the user's model, run by run.

    Args:
        model: the user's file in onnxruntime.
        runs: feeds by the user's input names.
        outputs: the names of the user's outputs.
        progress: told what happens, in a few words.

    """

    def __init__(
        self, model: UserModel, runs: Sequence[Feeds], outputs: Collection[str], progress: Progress = lambda _: None
    ) -> None:
        self._model, self._runs, self._outputs, self._progress = model, runs, outputs, progress
        self._worst: dict[tuple[str, str], Row] = {}

    def add(self, run: int, found: Mapping[str, Mapping[str, Array]], where: Mapping[str, tuple[str, str]]) -> None:
        """Judge tensors of one run.

        Args:
            run: its number.
            found: runtime name -> tensor -> value.
            where: tensor -> the layer and the blob it was read from.

        """
        known = [name for name in where if name in self._model.known]
        self._progress(f"comparing {len(known)} tensors on input {run + 1} of {len(self._runs)}")
        samples = self._model.sample(self._runs[run], known)
        judgements = {
            (name, runtime): judge(samples[name], found[runtime][name]) for runtime in found for name in known
        }
        doubtful = sorted({name for (name, _), one in judgements.items() if one.verdict is Verdict.DIFFERS})
        for name, rounded in self._model.rounded(self._runs[run], doubtful).items():
            sample = replace(samples[name], rounded=rounded)
            judgements |= {(name, runtime): judge(sample, values[name]) for runtime, values in found.items()}
        exact = self._model.as_written(self._runs[run], [n for n in known if n in self._outputs])
        for runtime, values in found.items():
            for name in known:
                judgement = judgements[name, runtime]
                if name in exact:
                    judgement = _against_half(judgement, exact[name], values[name])
                row = Row(name, *where[name], samples[name].plain.shape, runtime, run, judgement)
                key = (name, runtime)
                self._worst[key] = max(row, self._worst.get(key, row), key=_badness)

    @property
    def differ(self) -> bool:
        """Whether a tensor differs so far."""
        return any(row.judgement.verdict is Verdict.DIFFERS for row in self._worst.values())

    def proof(self, versions: Mapping[str, str]) -> Proof:
        """All that was compared; `versions`: runtime name -> version text."""
        order = self._model.order
        rows = sorted(self._worst.values(), key=lambda row: order.get(row.tensor, len(order)))
        judged = {row.tensor for row in rows if row.judgement.verdict is not Verdict.UNJUDGED}
        blind = {name: self._model.nearest_before(name, judged) for name in self._outputs if name not in judged}
        return Proof(tuple(rows), versions, len(self._runs), blind)


def _against_half(fine: Judgement, reference: Array, candidate: Array) -> Judgement:
    """The judgement against the file's float32 reading, unless the float16 run itself is too far off."""
    if fine.verdict is Verdict.DIFFERS or reference.dtype.kind != "f" or reference.shape != candidate.shape:
        return fine
    found = distance(reference, candidate)
    if not found.relative > HALF_LIMIT:
        return fine
    why = "too far from the model's own float16 run"
    return Judgement(Verdict.DIFFERS, found.relative, HALF_LIMIT, found.cosine, found.max_abs, why)
