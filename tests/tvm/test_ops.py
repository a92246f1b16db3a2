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
from tests.ops.harness import Case, all_cases, build
from tests.tvm.harness import check, emitted
from tests.tvm.pending import PARTIAL, PENDING


def refusal(case: Case, dialect: str) -> str:
    """What the refusal must say: the row's own word, or Caffe's where reading already refuses the node; "" for none."""
    if dialect in case.refused:
        return case.refused[dialect]
    opaque = any(canon.is_opaque(node) for node in frontend.from_proto(build(case)).model.graph)
    return case.refused.get("caffe", "") if opaque else ""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name()) for c in all_cases()])
def test_op(case: Case, dialect: str, running) -> None:
    if text := refusal(case, dialect):
        with pytest.raises(NotConvertible, match=text):
            emitted(build(case), dialect)
        return
    try:
        check(case, running(dialect))
    except NotConvertible as problem:
        if not {blocked.op for blocked in problem.blocked} <= PENDING[dialect] | PARTIAL:
            raise


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_canonical_op_has_an_emitter_or_a_reason(dialect: str) -> None:
    assert without_emitter(dialect) == PENDING[dialect]


def without_emitter(dialect: str) -> set[str]:
    load_lowerings()
    load_families()
    canonical = {op for op in ALTERNATIVES if op[0].isupper() and op not in GONE}
    return {op for op in canonical if emitter(dialect, op) is None}
