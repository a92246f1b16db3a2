"""Every pattern has the outcome it must have, on every target, in every runtime."""

from __future__ import annotations

import pytest

from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.targets.caffe import BVLC, CAFFE
from tests.conformance.run import expected_outputs, judge
from tests.conformance.suites import Sample, pattern_samples
from tests.patterns import Pattern, patterns
from tests.patterns.nnie import RANK, behind
from tests.patterns.nnie import judge as judge_on_nnie

MUST = {p.name: p.must for p in patterns()}
ALLOWED = {"equal": {"equal"}, "refuse": {"refused"}, "either": {"equal", "refused"}}


@pytest.fixture(scope="module")
def runtimes(pycaffe):
    return [Builtin(), pycaffe]


@pytest.mark.parametrize("target", [CAFFE, BVLC], ids=lambda t: t.name)
@pytest.mark.parametrize("sample", pattern_samples(), ids=lambda s: s.name)
def test_pattern(sample: Sample, target, runtimes, tmp_path) -> None:
    row = judge(sample, expected_outputs(sample), target, runtimes, tmp_path)
    assert row.outcome in ALLOWED[MUST[sample.name]], row.line()


@pytest.mark.parametrize("pattern", patterns(), ids=lambda p: p.name)
def test_pattern_on_nnie(pattern: Pattern, runtimes, tmp_path) -> None:
    """Equal as one net, equal in parts, or refused by name; and no worse than before."""
    row = judge_on_nnie(pattern, tmp_path, runtimes)
    assert RANK[row.outcome] <= RANK["refused"], row.line()
    assert behind([row]) == []
