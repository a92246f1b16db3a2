"""Every row of the case tables, on every target, in every runtime."""

from __future__ import annotations

import pytest

from onnx2caffe.errors import Unsupported
from onnx2caffe.targets.caffe import BVLC, CAFFE
from tests.ops.harness import Case, all_cases, build, check, convert

TARGETS = {t.name: t for t in (CAFFE, BVLC)}


def _rows() -> list:
    return [pytest.param(c, t, id=f"{c.name()}-{t}") for c in all_cases() for t in c.targets]


@pytest.mark.parametrize(("case", "target"), _rows())
def test_op(case: Case, target: str, tmp_path, runtimes) -> None:
    if target in case.refused:
        with pytest.raises(Unsupported, match=case.refused[target]):
            convert(build(case), TARGETS[target], tmp_path)
        return
    check(case, TARGETS[target], tmp_path, runtimes)


def test_rows_that_need_more_tolerance_say_why() -> None:
    assert all(c.because for c in all_cases() if c.tolerance > 1e-5)
