"""What the checked-in table of tests.tvm.conformance says, and that falling behind it is seen."""

from __future__ import annotations

from dataclasses import replace

from tests.tvm.conformance import TABLE, bad, rows_of, worse


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
