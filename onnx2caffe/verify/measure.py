"""Equal, differs or unjudged: the one measure by which tensors are held against the user's own model.

For a reference r and a candidate c, `e = max|c - r| / max(max|r|, 1e-6)`. Equal is `e ≤ max(1e-4, 10·n)` with a cosine
of at least 0.9999, where n is the net's own float noise for that tensor: the same e between onnxruntime's runs without
and with graph optimisations, between the run on x and the run on x·(1 + 1e-6·noise), and, where a tensor would differ
without it, two runs with every computed value rounded otherwise. A tensor whose own noise is above 5e-3, or turns its
direction by more than 1e-5, cannot be judged on that input; neither can a *cold* one, whose largest value is below 1e-5
and which is off by no more than the rounding of a number near 1 (Caffe's Sigmoid is (1 + tanh(x/2)) / 2). Integers are
held by the share of elements that differ. A tensor whose size is another one when it is shaken cannot be judged either,
nor can one that is NaN everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from onnx2caffe.runtimes.base import Array

__all__ = [
    "HALF_LIMIT",
    "LIMIT",
    "Distance",
    "Judgement",
    "Noise",
    "Sample",
    "Verdict",
    "distance",
    "judge",
    "shaken",
]

LIMIT = 1e-4
"""The least relative error that is allowed to every float tensor."""
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
_COLD = 1e-5
_ROUNDING = 2.0**-23
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
    `rounded`: every computed value rounded otherwise, some ways, if asked for.
    """

    plain: Array
    optimised: Array
    shaken: Array
    rough: Array | None = None
    rounded: tuple[Array, ...] = ()

    @property
    def sized(self) -> bool:
        """Whether rounding leaves the size as it is, which may depend on data."""
        others = (self.optimised, self.shaken, self.rough, *self.rounded)
        return all(other is None or other.shape == self.plain.shape for other in others)

    @cached_property
    def noise(self) -> Noise:
        """The tensor's own noise."""
        plain = self.finite(self.plain)
        moved = [distance(plain, self.finite(other)) for other in (self.optimised, self.shaken, *self.rounded)]
        return Noise(float(np.max([d.relative for d in moved])), 1 - float(np.min([d.cosine for d in moved])))

    @cached_property
    def known(self) -> Array:
        """Where the reference is finite."""
        return np.isfinite(self.plain)

    def finite(self, values: Array) -> Array:
        """`values` as float32, with zeros where the reference is not finite."""
        wide = values.astype(np.float32, copy=False)
        return wide if self.known.all() else np.where(self.known, wide, np.float32(0))


@dataclass(frozen=True)
class Noise:
    """A reference's own float noise: the relative error, and by how much the cosine drops."""

    relative: float
    turned: float

    @property
    def steady(self) -> bool:
        """Whether the reference is steady enough to judge by; a noise that is no number is not."""
        return self.relative <= _NOISE_CAP and self.turned <= _TURN_CAP


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


@dataclass(frozen=True)
class Distance:
    """How far a candidate is from a reference: largest difference, the same relative to max|r|, and the cosine."""

    max_abs: float
    relative: float
    cosine: float


def distance(reference: Array, candidate: Array) -> Distance:
    """Measured in float64; e = max|c - r| / max(max|r|, 1e-6), and a cosine of 1 where one of them is zero."""
    if reference.size == 0:
        return Distance(0.0, 0.0, 1.0)
    r, c = reference.ravel().astype(np.float64), candidate.ravel().astype(np.float64)
    norm = math.sqrt(_dot(r, r)) * math.sqrt(_dot(c, c))
    cosine = _dot(r, c) / norm if norm else 1.0
    c -= r
    far, scale = _peak(c), max(_peak(r), _SMALLEST)
    return Distance(far, far / scale, cosine)


def _dot(a: Array, b: Array) -> float:
    """Without BLAS, whose threads take longer to meet than these vectors to multiply."""
    return float(np.einsum("i,i->", a, b))


def _peak(values: Array) -> float:
    return max(float(values.max()), -float(values.min()))


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
    if not sample.sized:
        why = "rounding changes the reference's own size"
        return Judgement(Verdict.UNJUDGED, float("inf"), LIMIT, 0.0, float("inf"), why)
    if reference.shape != candidate.shape:
        return _differs(f"shape {list(candidate.shape)}, expected {list(reference.shape)}")
    if reference.size == 0:
        return Judgement(Verdict.EQUAL, 0.0, LIMIT, 1.0, 0.0)
    if reference.dtype.kind != "f":
        return _judge_integers(sample, candidate)
    return _judge_floats(sample, candidate)


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
    others = (sample.optimised, sample.shaken, *sample.rounded)
    flips = [_NOISE_FACTOR * _share(reference, other) for other in others]
    if sample.rough is not None:
        flips.append(_share(reference, sample.rough))
    allowed, error = max(flips), _share(reference, candidate)
    found = distance(reference, candidate)
    steady, equal = allowed < _FLIP_CAP, error <= allowed
    return Judgement(_verdict(steady, equal), error, allowed, found.cosine, found.max_abs)


def _share(a: Array, b: Array) -> float:
    return float(np.mean(a != b))


def _judge_floats(sample: Sample, candidate: Array) -> Judgement:
    if not _same_beyond_finite(sample, candidate):
        return _differs("not finite where the reference is, or the reverse")
    if np.isnan(sample.plain).all():
        why = "the reference is no number"
        return Judgement(Verdict.UNJUDGED, 0.0, LIMIT, 1.0, 0.0, why)
    noise = sample.noise
    allowed = max(LIMIT, _NOISE_FACTOR * noise.relative)
    found = distance(sample.finite(sample.plain), sample.finite(candidate))
    equal = found.relative <= allowed and found.cosine >= _LEAST_COSINE
    cold = not equal and found.max_abs <= _ROUNDING and _peak(sample.finite(sample.plain)) < _COLD
    return Judgement(_verdict(noise.steady and not cold, equal), found.relative, allowed, found.cosine, found.max_abs)


def _same_beyond_finite(sample: Sample, candidate: Array) -> bool:
    """NaN exactly where the reference has it, huge of the same sign where it is infinite, finite elsewhere."""
    reference, known = sample.plain, sample.known
    if known.all():
        return bool(np.isfinite(candidate).all())
    nan = np.isnan(reference)
    infinite = ~known & ~nan
    return (
        np.array_equal(nan, np.isnan(candidate))
        and bool((candidate[infinite] * np.sign(reference[infinite]) > _INFINITE).all())
        and bool(np.isfinite(candidate[known]).all())
    )
