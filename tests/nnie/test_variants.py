"""Every variant of every recipe on nnie, on the rows of the op tables that take it: legal and equal, or never legal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from onnx2caffe import frontend
from onnx2caffe.caffe.lower.families import load_families
from onnx2caffe.caffe.lower.lower import lower
from onnx2caffe.caffe.lower.registry import ALTERNATIVES
from onnx2caffe.errors import Unsupported
from onnx2caffe.passes import pipeline
from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.targets.nnie.target import NNIE
from tests.ops.harness import Case, all_cases, build, check, with_batch_of_one

EACH = 2
"""Rows per variant with maps, or vectors, of even and of odd length."""
NEVER = {
    *(("ArgMax", variant) for variant in ("flip", "weights")),
    *(("ArgMin", variant) for variant in ("flip", "weights")),
    ("Conv", "im2col"),
    ("Equal", "infinity"),
    ("Gather", "Embed"),
    ("HardSigmoid", "HardSigmoid"),
    ("HardSwish", "HardSwish"),
    ("LRN", "band"),
    ("LSTM", "layer"),
    ("LpNormalization", "Normalize"),
    ("MaxUnpool", "compare"),
    ("Mish", "Mish"),
    ("RMSNormalization", "Reduction"),
    ("Shrink", "Clip"),
    *(("Swish", variant) for variant in ("Sigmoid", "Swish")),
    ("add", "bias"),
    ("ave_pool", "floor"),
    ("clip", "Clip"),
    ("max_pool", "floor"),
    ("multiply", "scale"),
    ("reshape", "static"),
    ("resize", "interp"),
    *(("shuffle", variant) for variant in ("ShuffleChannel", "transpose")),
    ("standardise", "BatchNorm"),
    ("tile", "Tile"),
    ("transpose", "im2col"),
}
"""Variants of layers or fields that the mapper has not, or for what it refuses anyway."""


def _variants() -> Iterator[tuple[str, str]]:
    load_families()
    for key, known in ALTERNATIVES.items():
        if len(known) > 1:
            yield from ((key, one.variant) for one in known.values() if not one.approximate)


def _used(case: Case, chosen: dict[str, str] | None = None) -> set[tuple[str, str]]:
    """The variants that a row takes on nnie; none where it is refused."""
    loaded = frontend.from_proto(build(case))
    pipeline.run(loaded.model, pipeline.pipeline(NNIE.exit))
    try:
        lowered = lower(loaded.model, NNIE, chosen)
    except Unsupported:
        return set()
    return {(key, variant) for _, key, variant in lowered.used}


Row = tuple[Case, dict[str, str]]
"""A case and what is to be chosen."""


@pytest.fixture(scope="module")
def takers() -> dict[str, list[tuple[Case, set[tuple[str, str]]]]]:
    """Recipe key -> the rows, with a batch of 1, that take some variant of it by default, and what they take."""
    found: dict[str, list[tuple[Case, set[tuple[str, str]]]]] = {}
    for case in map(with_batch_of_one, all_cases()):
        used = _used(case)
        for key in {key for key, _ in used}:
            found.setdefault(key, []).append((case, used))
    return found


def _rows(cases: Iterable[tuple[Case, set[tuple[str, str]]]], key: str, variant: str) -> list[Row]:
    """A few cases that take the variant by default or when asked to, of odd and of even length."""
    rows: dict[int, list[Row]] = {0: [], 1: []}
    for case, used in cases:
        some = rows[_length(case) % 2]
        chosen = {} if (key, variant) in used else {key: variant}
        if len(some) < EACH and (not chosen or (key, variant) in _used(case, chosen)):
            some.append((case, chosen))
    return rows[0] + rows[1]


def _length(case: Case) -> int:
    shape = next((i if isinstance(i, tuple) else i.shape for i in case.inputs if i is not None), ())
    return shape[-1] if shape else 0


@pytest.mark.parametrize(("key", "variant"), sorted(set(_variants()) - NEVER))
def test_a_choice_needs_no_other(key: str, variant: str, takers) -> None:
    """Also where a variant has the recipe itself for its parts."""
    assert any((key, variant) in _used(case, {key: variant}) for case, _ in takers[key])


@pytest.mark.parametrize(("key", "variant"), _variants(), ids=lambda name: name)
def test_variant(key: str, variant: str, takers, tmp_path, pycaffe) -> None:
    rows = _rows(takers.get(key, ()), key, variant)
    assert bool(rows) is ((key, variant) not in NEVER)
    for case, chosen in rows:
        check(case, NNIE, tmp_path, [Builtin(), pycaffe], chosen=chosen)
