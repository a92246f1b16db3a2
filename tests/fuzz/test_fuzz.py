"""Random graphs are equal in every runtime on every target, or refused by name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings

from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.targets.base import Target
from onnx2caffe.targets.caffe import BVLC, CAFFE
from tests.fuzz.graphs import models
from tests.fuzz.oracle import examine, sample

EXAMPLES = int(os.environ.get("ONNX2CAFFE_FUZZ", "1000"))
"""Per target: an ordinary run takes 2,000 in all, always the same; `make fuzz N=…` other ones, as many as asked."""
MOST_REFUSED = 0.05
"""The share of random graphs that may be refused before something is wrong with the generator or a lowering."""


@pytest.fixture(scope="module")
def runtimes(pycaffe):
    return [Builtin(), pycaffe]


@pytest.fixture(scope="module")
def tally() -> Iterator[dict[str, Counter[str]]]:
    """Per target, how many graphs were equal and refused; printed with -s."""
    counts: dict[str, Counter[str]] = {}
    yield counts
    for name, count in counts.items():
        print(f"\n{name}: {dict(count)}")


@pytest.mark.parametrize("target", [CAFFE, BVLC], ids=lambda t: t.name)
def test_random_graphs(target: Target, runtimes, tally) -> None:
    count = tally.setdefault(target.name, Counter())

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        derandomize="ONNX2CAFFE_FUZZ" not in os.environ,
        print_blob=True,
    )
    @given(model=models())
    def equal_or_refused(model: onnx.ModelProto) -> None:
        samples = sample(model)
        assume(samples)
        refusal = examine(model, samples, target, runtimes)
        count["refused" if refusal else "equal"] += 1

    equal_or_refused()
    assert count["refused"] <= max(5, MOST_REFUSED * count.total())
