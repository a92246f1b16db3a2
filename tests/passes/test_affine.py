"""Arithmetic with constants: spelling, chains, and folding into linear ops."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.affine import ComposeAffine, FoldAffineBefore, FoldAffineBehind, NormalizeArithmetic
from onnx2caffe.passes.dense import NormalizeGemm
from tests.passes.check import before_after, build, i64, noise

X = {"x": [2, 4, 6, 6]}
F = np.float32


def conv(x, weight, y, *, bias=None, pads=0, group=1, stride=1):
    inputs = [x, weight] if bias is None else [x, weight, bias]
    k = list(weight.shape[2:])
    n = len(k)
    attributes = {
        "kernel_shape": k,
        "pads": [pads] * 2 * n,
        "strides": [stride] * n,
        "dilations": [1] * n,
        "group": group,
        "auto_pad": "NOTSET",
    }
    return ("Conv", inputs, y, attributes)


def deconv(x, weight, y, *, bias=None, group=1, stride=2):
    _, inputs, out, attributes = conv(x, weight, y, bias=bias, group=group, stride=stride)
    return ("ConvTranspose", inputs, out, {**attributes, "output_padding": [0, 0]})


def bn(x, y, channels, epsilon=1e-3):
    gamma, beta, mean = (noise(channels, seed=i) for i in (1, 2, 3))
    variance = np.abs(noise(channels, seed=4)) + F(0.001)
    attributes = {"epsilon": epsilon, "momentum": 0.9, "training_mode": 0}
    return ("BatchNormalization", [x, gamma, beta, mean, variance], y, attributes)


@pytest.mark.parametrize(
    ("node", "ops"),
    [
        (("Sub", ["x", noise(4, 1, 1)]), {"Add": 1}),
        (("Sub", [noise(4, 1, 1), "x"]), {"Sub": 1}),
        (("Div", ["x", F(3)]), {"Mul": 1}),
        (("Neg", ["x"]), {"Neg": 1}),
        (("Div", [F(3), "x"]), {"Div": 1}),
        # 1/c is no float32
        (("Div", ["x", F(2e-39)]), {"Div": 1}),
    ],
    ids=["sub", "sub_left", "div", "neg", "div_left", "reciprocal_overflows"],
)
def test_normal_spelling(node, ops):
    op, inputs = node
    inputs = [np.asarray(i) if isinstance(i, np.floating) else i for i in inputs]
    before_after(build(X, [(op, inputs, "y")], ["y"]), [NormalizeArithmetic()], ops)


def test_integers_are_left_alone():
    nodes = [("Cast", "x", "s", {"to": 7}), ("Div", ["s", i64(2)], "y")]
    before_after(build(X, nodes, ["y"]), [NormalizeArithmetic()], {"Cast": 1, "Div": 1})


@pytest.mark.parametrize(
    ("nodes", "ops"),
    [
        ([("Mul", F(2)), ("Mul", F(0.5))], {}),
        ([("Add", F(2)), ("Add", F(3))], {"Add": 1}),
        ([("Add", noise(4, 1, 1)), ("Mul", F(3)), ("Add", noise(1, 4, 1, 1))], {"Mul": 1, "Add": 1}),
        ([("Mul", noise(4, 1, 1)), ("Add", F(3)), ("Mul", F(2)), ("Add", noise(6))], {"Mul": 1, "Add": 1}),
        # already the normal form: reordering (x + b)·a saves nothing
        ([("Add", F(2)), ("Mul", F(3))], {"Mul": 1, "Add": 1}),
        # (4,1,1)·(6) would make a constant larger than both
        ([("Mul", noise(4, 1, 1)), ("Mul", noise(6))], {"Mul": 2}),
    ],
    ids=["cancels", "adds", "three", "four", "two_kept", "outer_product"],
)
def test_chains(nodes, ops):
    rows, last = [], "x"
    for i, (op, constant) in enumerate(nodes):
        rows.append((op, [last, np.asarray(constant)], f"v{i}"))
        last = f"v{i}"
    before_after(build(X, [*rows, ("Relu", last, "y")], ["y"]), [ComposeAffine()], {**ops, "Relu": 1})


def test_chain_value_with_another_reader_stays():
    nodes = [("Mul", ["x", np.asarray(F(2))], "a"), ("Mul", ["a", np.asarray(F(3))], "y"), ("Relu", "a", "z")]
    before_after(build(X, nodes, ["y", "z"]), [ComposeAffine()], {"Mul": 2, "Relu": 1})


@pytest.mark.parametrize("bias", [None, noise(6)], ids=["no_bias", "bias"])
@pytest.mark.parametrize(
    "linear",
    [
        lambda bias: conv("x", noise(6, 4, 3, 3), "a", bias=bias, pads=1),
        lambda bias: conv("x", noise(6, 2, 3, 3), "a", bias=bias, group=2),
        lambda bias: deconv("x", noise(4, 6, 3, 3), "a", bias=bias),
        lambda bias: deconv("x", noise(4, 3, 3, 3), "a", bias=bias, group=2),
    ],
    ids=["conv", "conv_group", "deconv", "deconv_group"],
)
@pytest.mark.parametrize(
    "behind",
    [
        [bn("a", "y", 6)],
        [("Mul", ["a", noise(1, 6, 1, 1)], "m"), ("Add", [noise(6, 1, 1), "m"], "y")],
        [("Mul", ["a", np.asarray(F(0.1))], "y")],
    ],
    ids=["bn", "mul_add", "scalar"],
)
def test_folds_behind_convolutions(linear, bias, behind):
    op, *_ = row = linear(bias)
    before_after(build(X, [row, *behind], ["y"]), [FoldAffineBehind()], {op: 1}, rtol=1e-5)


@pytest.mark.parametrize(
    "constant", [noise(4), noise(4, 1), noise(1, 1, 1, 4), noise(1, 1, 4, 1)], ids=lambda c: str(c.shape)
)
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_constant_along_another_axis_of_the_same_length_is_not_folded(op, constant):
    nodes = [conv("x", noise(4, 4, 3, 3), "a"), (op, ["a", constant], "y")]
    before_after(build(X, nodes, ["y"]), [FoldAffineBehind()], {"Conv": 1, op: 1})


def test_keep_bn_keeps_both_sides():
    nodes = [bn("x", "a", 4), conv("a", noise(4, 4, 1, 1), "b"), bn("b", "y", 4)]
    passes = [FoldAffineBehind(keep_bn=True), FoldAffineBefore(keep_bn=True)]
    before_after(build(X, nodes, ["y"]), passes, {"BatchNormalization": 2, "Conv": 1})


def test_shared_weight_is_not_scaled_for_the_other_convolution():
    weight = noise(4, 4, 3, 3)
    nodes = [conv("x", weight, "a"), bn("a", "u", 4), conv("x", weight, "r"), ("Add", ["u", "r"], "y")]
    before_after(build(X, nodes, ["y"]), [FoldAffineBehind()], {"Conv": 2, "Add": 1})


def test_convolution_with_another_reader_or_as_output_is_not_folded():
    nodes = [conv("x", noise(4, 4, 3, 3), "a"), bn("a", "y", 4), ("Relu", "a", "z")]
    before_after(build(X, nodes, ["y", "z"]), [FoldAffineBehind()], {"Conv": 1, "BatchNormalization": 1, "Relu": 1})
    nodes = [conv("x", noise(4, 4, 3, 3), "a"), bn("a", "y", 4)]
    before_after(build(X, nodes, ["y", "a"]), [FoldAffineBehind()], {"Conv": 1, "BatchNormalization": 1})


GEMM = {"alpha": 0.5, "beta": 2.0, "transA": 0}


@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("bias", [noise(5), noise(1, 5), noise(3, 1), noise(3, 5), np.asarray(F(0.3))], ids=str)
def test_folds_behind_gemm(trans, bias):
    weight = noise(5, 4) if trans else noise(4, 5)
    nodes = [("Gemm", ["x", weight, bias], "a", {**GEMM, "transB": trans}), bn("a", "y", 5)]
    before_after(build({"x": [3, 4]}, nodes, ["y"]), [NormalizeGemm(), FoldAffineBehind()], {"Gemm": 1})


def test_matrix_product_takes_a_bias():
    nodes = [("MatMul", ["x", noise(4, 5)], "a"), ("Add", [noise(5), "a"], "y")]
    before_after(build({"x": [3, 4]}, nodes, ["y"]), [NormalizeGemm(), FoldAffineBehind()], {"Gemm": 1})


def test_matmul_of_higher_rank_takes_factors_only():
    nodes = [("MatMul", ["x", noise(6, 5)], "a"), ("Mul", ["a", noise(5)], "b"), ("Add", ["b", noise(5)], "y")]
    before_after(build(X, nodes, ["y"]), [FoldAffineBehind()], {"MatMul": 1, "Add": 1})
    nodes = [("MatMul", [noise(5, 6), "x"], "a"), ("Mul", ["a", noise(5, 1)], "y")]
    before_after(build(X, nodes, ["y"]), [FoldAffineBehind()], {"MatMul": 1})
    nodes = [("MatMul", [noise(5, 6), "x"], "a"), ("Mul", ["a", noise(6)], "y")]
    before_after(build(X, nodes, ["y"]), [FoldAffineBehind()], {"MatMul": 1, "Mul": 1})


@pytest.mark.parametrize("group", [1, 2, 4])
def test_folds_before_a_convolution_without_padding(group):
    nodes = [bn("x", "a", 4), conv("a", noise(8, 4 // group, 3, 3), "y", bias=noise(8), group=group)]
    before_after(build(X, nodes, ["y"]), [FoldAffineBefore()], {"Conv": 1}, rtol=1e-5)


def test_only_a_factor_goes_into_a_padded_convolution():
    nodes = [("Mul", ["x", noise(4, 1, 1)], "a"), conv("a", noise(8, 4, 3, 3), "y", pads=1)]
    before_after(build(X, nodes, ["y"]), [FoldAffineBefore()], {"Conv": 1})
    nodes = [("Add", ["x", noise(4, 1, 1)], "a"), conv("a", noise(8, 4, 3, 3), "y", pads=1)]
    before_after(build(X, nodes, ["y"]), [FoldAffineBefore()], {"Add": 1, "Conv": 1})


@pytest.mark.parametrize("group", [1, 2])
def test_before_a_transposed_convolution_only_factors(group):
    nodes = [("Mul", ["x", noise(4, 1, 1)], "a"), deconv("a", noise(4, 3, 3, 3), "y", group=group)]
    before_after(build(X, nodes, ["y"]), [FoldAffineBefore()], {"ConvTranspose": 1})
    nodes = [("Add", ["x", noise(4, 1, 1)], "a"), deconv("a", noise(4, 3, 3, 3), "y", group=group)]
    before_after(build(X, nodes, ["y"]), [FoldAffineBefore()], {"Add": 1, "ConvTranspose": 1})


def test_bias_that_cancels_is_gone():
    nodes = [conv("x", noise(4, 4, 1, 1), "a", bias=np.ones(4, F)), ("Add", ["a", np.asarray(F(-1))], "y")]
    model = before_after(build(X, nodes, ["y"]), [FoldAffineBehind()], {"Conv": 1})
    assert len(next(iter(model.graph)).inputs) == 2


@pytest.mark.parametrize("batch", [1, 3])
def test_through_the_reshape_before_a_dense_layer(batch):
    nodes = [
        bn("x", "a", 4),
        ("Reshape", ["a", i64(batch, -1)], "b", {"allowzero": 0}),
        ("MatMul", ["b", noise(80, 5)], "y"),
    ]
    model = build({"x": [batch, 4, 4, 5]}, nodes, ["y"])
    before_after(model, [NormalizeGemm(), FoldAffineBefore()], {"Reshape": 1, "Gemm": 1}, rtol=1e-5)
    nodes = [("Mul", ["x", noise(4, 1, 5)], "a"), ("Reshape", ["a", i64(batch, 4, 20)], "b", {"allowzero": 0})]
    nodes += [("MatMul", ["b", noise(20, 5)], "y")]
    model = build({"x": [batch, 4, 4, 5]}, nodes, ["y"])
    before_after(model, [FoldAffineBefore()], {"Mul": 1, "Reshape": 1, "MatMul": 1})
    nodes[0] = ("Mul", ["x", noise(4, 5)], "a")
    before_after(build({"x": [batch, 4, 4, 5]}, nodes, ["y"]), [FoldAffineBefore()], {"Reshape": 1, "MatMul": 1})


def test_before_gemm_and_matmul():
    nodes = [bn("x", "a", 4), ("MatMul", ["a", noise(4, 5)], "y")]
    before_after(build({"x": [3, 4]}, nodes, ["y"]), [NormalizeGemm(), FoldAffineBefore()], {"Gemm": 1})
    nodes = [("Mul", ["x", noise(6)], "a"), ("MatMul", ["a", noise(6, 5)], "y")]
    before_after(build(X, nodes, ["y"]), [FoldAffineBefore()], {"MatMul": 1})


def test_affine_read_by_two_is_not_folded_before():
    nodes = [bn("x", "a", 4), conv("a", noise(8, 4, 3, 3), "y"), ("Relu", "a", "z")]
    before_after(build(X, nodes, ["y", "z"]), [FoldAffineBefore()], {"BatchNormalization": 1, "Conv": 1, "Relu": 1})


def test_numbers_that_overflow_are_not_folded():
    nodes = [conv("x", np.full((4, 4, 1, 1), 1e30, F), "a"), ("Mul", ["a", np.asarray(F(1e-5))], "b")]
    nodes += [("Mul", ["b", np.asarray(F(1e20))], "y")]
    model = build({"x": [1, 4, 1, 1]}, nodes, ["y"])
    FoldAffineBehind()(model)
    assert [node.op_type for node in model.graph] == ["Conv", "Mul"]
