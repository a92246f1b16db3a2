"""README.md is what the rows say."""

from __future__ import annotations

from tests.hostile.table import PAGE, page


def test_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.hostile.table"
