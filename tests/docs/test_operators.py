"""The generated table says what the code does."""

from __future__ import annotations

import pytest

from onnx2caffe.operators import Operators
from tools.make_operators import Found, collect, entry, stale


@pytest.fixture(scope="module")
def table() -> Operators:
    return collect()


def test_the_table_is_up_to_date(table):
    assert stale(table) == [], "run `make docs`"


def test_every_op_is_measured_or_refused_with_a_reason(table):
    assert [entry.name for entry in table.operators if not (any(entry.becomes.values()) or entry.limits)] == []


def test_dialects_stand_beside_the_targets(table):
    entry = next(entry for entry in table.operators if entry.op == "Relu")
    assert list(entry.columns((*table.targets, *table.dialects)))[3:] == [("maximum",), ("as relay",)]
    missing = {o.op for o in table.operators if o.tests and not all(o.becomes[dialect] for dialect in table.dialects)}
    assert all(any(o.limits) for o in table.operators if o.op in missing)
    assert "Conv" not in missing


def test_the_order_of_the_rows_does_not_show():
    forms = [("Scale", "ReLU"), "nothing", ("ReLU",), ("Power",), ("Scale", "Power"), ("Scale",), ("Scale",)]
    reasons = ["b: no form", "a: no form"]
    shown = []
    for turn in (1, -1):
        found = Found()
        found.becomes["caffe"].update(forms[::turn])
        found.cpu.update(reasons[::turn])
        found.limits |= {reason: {"caffe"} for reason in reasons[::turn]}
        found.read.update([("Relu",), ("Abs",)][::turn])
        shown.append(entry(("", "Celu"), [12], found))
    assert shown[0] == shown[1]
    assert shown[0].becomes["caffe"] == ("Scale", "Power", "ReLU", "Scale · Power", "Scale · ReLU", "nothing")
