"""The page of rules says what rules.toml says."""

from __future__ import annotations

from tools.make_nnie_rules import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"
