"""Random networks on target nnie are legal and equal, whole or in parts, or refused where no weights are legal."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import onnx
import pytest
from hypothesis import HealthCheck, assume, given, seed, settings

from onnx2caffe.runtimes.builtin import Builtin
from tests.fuzz.graphs import models, networks
from tests.fuzz.mapper import Choice, Scanner, choices, examine
from tests.fuzz.oracle import sample

EXAMPLES = int(os.environ.get("ONNX2CAFFE_FUZZ", "2000"))
"""In all: an ordinary run takes always the same; `make fuzz N=…` other ones."""
MODELS = models(batches=(1, 1, 1, 1, 1, 1, 1, 2))
PARTS = {"networks-1": networks(), "networks-2": networks(), "networks-3": networks(), "models": MODELS}
"""Of equal numbers of examples, so that workers can share them."""
MOST_REFUSED = {"networks": 0.03, "models": 0.4}
"""The share that may be refused before something is wrong: any model may have a batch, or five axes, everywhere."""


@pytest.fixture(scope="module")
def runtimes(pycaffe):
    return [Builtin(), pycaffe]


@pytest.fixture(scope="module")
def scanner(pycaffe) -> Iterator[Scanner]:
    found = Scanner(pycaffe.python)
    yield found
    found.close()


@pytest.mark.parametrize("part", PARTS)
def test_random_networks(part: str, runtimes, scanner) -> None:
    count: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES // len(PARTS),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        database=None,
        print_blob=True,
    )
    @given(model=PARTS[part], choice=choices())
    def legal_and_equal(model: onnx.ModelProto, choice: Choice) -> None:
        samples = sample(model, inner_too=True)
        assume(samples)
        count[examine(model, samples, choice, runtimes, scanner)] += 1

    (legal_and_equal if "ONNX2CAFFE_FUZZ" in os.environ else seed([*PARTS].index(part))(legal_and_equal))()
    print(f"\n{part}: {dict(count)}")
    assert count["refused"] <= max(20, MOST_REFUSED[part.partition("-")[0]] * count.total())
