"""What the checked-in table of tests.tvm.conformance says, and that falling behind it is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.conformance.suites import Sample, pattern_samples
from tests.tvm.conformance import TABLE, _judged, bad, rows_of, worse


def test_nothing_is_wrong_or_behind_the_importers() -> None:
    rows = rows_of(TABLE).values()
    assert rows
    assert [row.line() for row in rows if bad(row)] == []


def test_a_worse_outcome_is_found() -> None:
    table = rows_of(TABLE)
    row = next(row for row in table.values() if row.ours == row.importer == "equal")
    refused = replace(row, ours="refused")
    assert bad(refused)
    assert worse([refused], table)
    assert not worse([row], table)


@pytest.fixture(scope="module")
def sample() -> Sample:
    return next(pattern_samples())


@pytest.mark.parametrize("value", [-3e38, -np.inf])
def test_infinity_is_met_by_what_is_as_good_as_infinite(value: float, sample: Sample) -> None:
    assert _judged(sample, {"y": np.array([1, -np.inf])}, {"y": np.array([1, value])}) == ("equal", "")


@pytest.mark.parametrize("value", [np.inf, np.nan, 0.0])
def test_other_than_infinity_differs(value: float, sample: Sample) -> None:
    assert _judged(sample, {"y": np.array([1, -np.inf])}, {"y": np.array([1, value])})[0] == "differs"
