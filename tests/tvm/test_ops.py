"""Every row of the case tables of tests/ops, in both dialects."""

from __future__ import annotations

import pytest

from onnx2caffe import canon, frontend
from onnx2caffe.caffe.lower.families import load_families as load_lowerings
from onnx2caffe.caffe.lower.registry import ALTERNATIVES
from onnx2caffe.errors import NotConvertible
from onnx2caffe.frontend.invariants import GONE
from onnx2caffe.tvm.families import load_families
from onnx2caffe.tvm.registry import DIALECTS, emitter
from tests.frontend.test_upgrade import PAIRS
from tests.frontend.test_upgrade import model as build_read
from tests.ops.harness import Case, all_cases, build
from tests.tvm.harness import check, emitted


def refusal(case: Case, dialect: str) -> str:
    """What the refusal must say: the row's own word, or Caffe's where reading already refuses the node; "" for none."""
    if dialect in case.refused:
        return case.refused[dialect]
    nodes = frontend.from_proto(build(case)).model.graph
    unread = any(canon.is_opaque(node) and not canon.is_unsized(node) for node in nodes)
    return case.refused.get("caffe", "") if unread else ""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name()) for c in all_cases()])
def test_op(case: Case, dialect: str, running) -> None:
    if text := refusal(case, dialect):
        with pytest.raises(NotConvertible, match=text):
            emitted(build(case), dialect)
        return
    check(case, running(dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_canonical_op_has_an_emitter(dialect: str) -> None:
    """What an emitter does not take it refuses with a reason; there is no op that nobody has looked at."""
    load_families()
    assert [op for op in sorted(lowered_ops() | read_ops()) if emitter(dialect, op) is None] == []


def lowered_ops() -> set[str]:
    load_lowerings()
    return {op for op in ALTERNATIVES if op[0].isupper() and op not in GONE}


def read_ops() -> set[str]:
    """What the frontend makes of every op and version it reads."""
    protos = [build_read(case, version)[0] for case, version in PAIRS]
    return {node.op_type for proto in protos for node in frontend.from_proto(proto).model.graph}
