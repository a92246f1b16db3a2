"""The generated table says what the code does."""

from __future__ import annotations

import pytest

from onnx2caffe.operators import Operators
from tools.make_operators import collect, stale


@pytest.fixture(scope="module")
def table() -> Operators:
    return collect()


def test_the_table_is_up_to_date(table):
    assert stale(table) == [], "run `make docs`"


def test_every_op_is_measured_or_refused_with_a_reason(table):
    assert [entry.name for entry in table.operators if not (any(entry.becomes.values()) or entry.limits)] == []
