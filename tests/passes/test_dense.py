"""NormalizeGemm and AbsorbMoversIntoDense."""

from __future__ import annotations

import pytest

from onnx2caffe.passes.dense import AbsorbMoversIntoDense, NormalizeGemm
from tests.passes.check import before_after, build, i64, noise


@pytest.mark.parametrize("batch", [1, 3])
def test_nhwc_flatten_before_dense(batch):
    nodes = [
        ("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}),
        ("Reshape", ["a", i64(batch, -1)], "b", {"allowzero": 0}),
        ("MatMul", ["b", noise(60, 7)], "y"),
    ]
    model = build({"x": [batch, 3, 4, 5]}, nodes, ["y"])
    before_after(model, [NormalizeGemm(), AbsorbMoversIntoDense()], {"Reshape": 1, "Gemm": 1})


def test_rows_of_higher_rank():
    nodes = [
        ("Reshape", ["x", i64(2, 5, 3, 4)], "a", {"allowzero": 0}),
        ("Transpose", "a", "b", {"perm": [0, 1, 3, 2]}),
        ("Reshape", ["b", i64(2, 5, 12)], "c", {"allowzero": 0}),
        ("MatMul", ["c", noise(12, 7)], "y"),
    ]
    before_after(build({"x": [2, 5, 12]}, nodes, ["y"]), [AbsorbMoversIntoDense()], {"MatMul": 1})


def test_transpose_that_mixes_rows_stays():
    nodes = [("Transpose", "x", "a", {"perm": [0, 2, 1]}), ("MatMul", ["a", noise(5, 7)], "y")]
    before_after(build({"x": [2, 5, 4]}, nodes, ["y"]), [AbsorbMoversIntoDense()], {"Transpose": 1, "MatMul": 1})


def test_transposed_value_with_another_reader():
    nodes = [
        ("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}),
        ("Reshape", ["a", i64(2, -1)], "b", {"allowzero": 0}),
        ("MatMul", ["b", noise(60, 7)], "y"),
        ("Relu", "b", "z"),
    ]
    model = build({"x": [2, 3, 4, 5]}, nodes, ["y", "z"])
    before_after(model, [NormalizeGemm(), AbsorbMoversIntoDense()])


def test_gemm_of_a_transposed_activation_keeps_its_form():
    attributes = {"alpha": 2.0, "beta": 1.0, "transA": 1, "transB": 0}
    nodes = [("Gemm", ["x", noise(3, 5)], "y", attributes)]
    before_after(build({"x": [3, 4]}, nodes, ["y"]), [NormalizeGemm()], {"Gemm": 1})


def test_computed_bias_is_kept_with_beta_one_only():
    for beta in (1.0, 2.0):
        attributes = {"alpha": 2.0, "beta": beta, "transA": 0, "transB": 0}
        nodes = [("Gemm", ["x", noise(4, 5), "c"], "y", attributes)]
        before_after(build({"x": [3, 4], "c": [5]}, nodes, ["y"]), [NormalizeGemm()], {"Gemm": 1})
