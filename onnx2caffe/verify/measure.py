"""Equal, differs or unjudged: the one measure by which tensors are held against the user's own model.

For a reference r and a candidate c, `e = max|c - r| / max(max|r|, 1e-6)`. Equal is `e ≤ max(1e-4, 10·n)` with a cosine
of at least 0.9999, where n is the net's own float noise for that tensor: the same e between onnxruntime's runs without
and with graph optimisations, and between the run on x and the run on x·(1 + 1e-6·noise). A tensor whose own noise is
above 5e-3, or turns its direction by more than 1e-5, cannot be judged on that input. Integers are held by the share of
elements that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from onnx2caffe.runtimes.base import Array

__all__ = [
    "HALF_LIMIT",
    "Judgement",
    "Sample",
    "Verdict",
    "coarsely_equal",
    "cosine",
    "judge",
    "relative_error",
    "shaken",
]

LIMIT = 1e-4
HALF_LIMIT = 1e-2
"""What a float16 run itself may be off the exact result."""
_LEAST_COSINE = 0.9999
_NOISE_FACTOR = 10.0
_NOISE_CAP = 5e-3
_TURN_CAP = 1e-5
_FLIP_CAP = 0.5
_SMALLEST = 1e-6
_INFINITE = 1e3
"""Caffe spells infinities as large finite numbers; anything beyond this stands for one."""
_SHAKE_SEED = 7


class Verdict(StrEnum):
    """What a comparison says. `UNJUDGED`: the reference itself is too unsteady here."""

    EQUAL = "equal"
    DIFFERS = "differs"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Sample:
    """One tensor of the reference on one input: the plain run, and the runs that show its own noise.

    `optimised`: graph optimisations on. `shaken`: input off by 1e-6. `rough`: input off by 1e-4 (integers only).
    """

    plain: Array
    optimised: Array
    shaken: Array
    rough: Array | None = None


@dataclass(frozen=True)
class Judgement:
    """A verdict with its figures.

    `error` and `allowed` are relative (for integers: shares of elements), `max_abs` is the largest difference in the
    tensor's own unit.
    """

    verdict: Verdict
    error: float
    allowed: float
    cosine: float
    max_abs: float
    why: str = ""


def relative_error(reference: Array, candidate: Array) -> float:
    """max|c - r| / max(max|r|, 1e-6), in float64; 0 for empty arrays."""
    if reference.size == 0:
        return 0.0
    scale = max(float(np.max(np.abs(reference))), _SMALLEST)
    return float(np.max(np.abs(candidate.astype(np.float64) - reference))) / scale


def cosine(a: Array, b: Array) -> float:
    """The cosine between two arrays as vectors; 1 where one of them is zero."""
    x, y = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    norm = float(np.linalg.norm(x) * np.linalg.norm(y))
    return 1.0 if norm == 0 else float(x @ y) / norm


def shaken(feeds: Mapping[str, Array], amount: float) -> dict[str, Array]:
    """The feeds with every float value multiplied by 1 + amount·noise (seeded)."""
    random = np.random.RandomState(_SHAKE_SEED)
    return {
        name: (value * (1 + amount * random.standard_normal(value.shape))).astype(value.dtype)
        if value.dtype.kind == "f"
        else value
        for name, value in feeds.items()
    }


def judge(sample: Sample, candidate: Array) -> Judgement:
    """Hold a candidate against the reference's sample."""
    reference = sample.plain
    if reference.shape != candidate.shape:
        return _differs(f"shape {list(candidate.shape)}, expected {list(reference.shape)}")
    if reference.size == 0:
        return Judgement(Verdict.EQUAL, 0.0, LIMIT, 1.0, 0.0)
    if reference.dtype.kind != "f":
        return _judge_integers(sample, candidate)
    return _judge_floats(sample, candidate)


def coarsely_equal(reference: Array, candidate: Array) -> bool:
    """Whether a candidate is as near to a float16 run as that run is to exact numbers."""
    return reference.shape == candidate.shape and not (
        relative_error(reference.astype(np.float32), candidate) > HALF_LIMIT
    )


def _differs(why: str) -> Judgement:
    return Judgement(Verdict.DIFFERS, float("inf"), LIMIT, 0.0, float("inf"), why)


def _verdict(steady: bool, equal: bool) -> Verdict:
    if not steady:
        return Verdict.UNJUDGED
    return Verdict.EQUAL if equal else Verdict.DIFFERS


def _judge_integers(sample: Sample, candidate: Array) -> Judgement:
    reference = sample.plain
    if candidate.dtype.kind == "f":
        if not np.isfinite(candidate).all():
            return _differs("not finite where the reference is an integer")
        candidate = np.rint(candidate).astype(np.float64)
    flips = [_NOISE_FACTOR * _share(reference, sample.optimised), _NOISE_FACTOR * _share(reference, sample.shaken)]
    if sample.rough is not None:
        flips.append(_share(reference, sample.rough))
    allowed, error = max(flips), _share(reference, candidate)
    wide_reference, wide_candidate = reference.astype(np.float64), candidate.astype(np.float64)
    far = float(np.max(np.abs(wide_candidate - wide_reference)))
    steady, equal = allowed < _FLIP_CAP, error <= allowed
    return Judgement(_verdict(steady, equal), error, allowed, cosine(reference, candidate), far)


def _share(a: Array, b: Array) -> float:
    return float(np.mean(a != b))


def _judge_floats(sample: Sample, candidate: Array) -> Judgement:
    reference = sample.plain
    known = np.isfinite(reference)
    if not _same_beyond_finite(reference, candidate, known):
        return _differs("not finite where the reference is, or the reverse")
    r, c, o, s = (
        np.where(known, array.astype(np.float32), np.float32(0))
        for array in (reference, candidate, sample.optimised, sample.shaken)
    )
    noise = max(relative_error(r, o), relative_error(r, s))
    turned = 1 - min(cosine(r, o), cosine(r, s))
    allowed = max(LIMIT, _NOISE_FACTOR * noise)
    error, direction = relative_error(r, c), cosine(r, c)
    steady = noise <= _NOISE_CAP and turned <= _TURN_CAP
    equal = error <= allowed and direction >= _LEAST_COSINE
    far = float(np.max(np.abs(c.astype(np.float64) - r)))
    return Judgement(_verdict(steady, equal), error, allowed, direction, far)


def _same_beyond_finite(reference: Array, candidate: Array, known: Array) -> bool:
    """NaN exactly where the reference has it, huge of the same sign where it is infinite, finite elsewhere."""
    if known.all():
        return bool(np.isfinite(candidate).all())
    nan = np.isnan(reference)
    infinite = ~known & ~nan
    return (
        np.array_equal(nan, np.isnan(candidate))
        and bool((candidate[infinite] * np.sign(reference[infinite]) > _INFINITE).all())
        and bool(np.isfinite(candidate[known]).all())
    )
