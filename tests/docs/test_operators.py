"""The generated table says what the code does."""

from __future__ import annotations

from tools.make_operators import collect, stale


def test_the_table_is_up_to_date():
    assert stale(collect()) == [], "run `make docs`"


def test_every_op_is_measured_or_refused_with_a_reason():
    assert [o.name for o in collect().operators if not (any(o.becomes.values()) or o.limits)] == []
