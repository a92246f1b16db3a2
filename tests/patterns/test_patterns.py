"""Every pattern has the outcome it must have, on both targets, in every runtime."""

from __future__ import annotations

import pytest

from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.targets.caffe import BVLC, CAFFE
from tests.conformance.run import expected_outputs, judge
from tests.conformance.suites import Sample, pattern_samples
from tests.patterns import patterns

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
