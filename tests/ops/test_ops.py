"""Every row of the case tables, on every target, in every runtime."""

from __future__ import annotations

import contextlib

import pytest

from onnx2caffe import frontend
from onnx2caffe.caffe.lower.lower import lower
from onnx2caffe.errors import Unsupported
from onnx2caffe.passes import pipeline
from onnx2caffe.targets import TARGETS
from onnx2caffe.targets.nnie.target import NNIE
from tests.ops.harness import Case, all_cases, build, check, convert, with_batch_of_one


def _rows() -> list:
    return [pytest.param(c, t, id=f"{c.name()}-{t}") for c in all_cases() for t in c.targets]


@pytest.mark.parametrize(("case", "target"), _rows())
def test_op(case: Case, target: str, tmp_path, runtimes) -> None:
    if target in case.refused:
        with pytest.raises(Unsupported, match=case.refused[target]):
            convert(build(case), TARGETS[target], tmp_path)
        return
    check(case, TARGETS[target], tmp_path, runtimes)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name()) for c in all_cases() if "bvlc" in c.targets])
def test_op_on_nnie(case: Case, tmp_path, runtimes) -> None:
    """The same rows with a batch of 1: what the mapper's rules do not refuse is equal."""
    with contextlib.suppress(Unsupported):
        check(with_batch_of_one(case), NNIE, tmp_path, runtimes)


def test_nnie_takes_most_rows() -> None:
    assert sum(map(_on_nnie, all_cases())) >= 715


def _on_nnie(case: Case) -> bool:
    loaded = frontend.from_proto(build(with_batch_of_one(case)))
    pipeline.run(loaded.model, pipeline.pipeline("nnie"))
    try:
        lower(loaded.model, NNIE)
    except Unsupported:
        return False
    return True


def test_rows_that_need_more_tolerance_say_why() -> None:
    assert all(c.because for c in all_cases() if c.tolerance > 1e-5)
