"""Normalisations from their definitions."""

from __future__ import annotations

import pytest

from onnx2caffe.passes.norms import FoldAffineIntoNorm, RaiseGroupNorm, RaiseNorm, SimplifyRoots
from onnx2caffe.passes.reduce import RaiseGlobalPooling
from tests.passes.check import before_after, build, i64, noise
from tests.passes.test_activations import f
from tests.passes.test_affine import bn
from tests.passes.test_reduce import reduce

X = {"x": [2, 6, 4, 5]}


def check(nodes, expect, passes, inputs=X, outputs=("y",)):
    return before_after(build(inputs, nodes, outputs), passes, expect, rtol=1e-5)


def moments(axes, *, square="pow", epsilon=1e-5):
    squared = ("Pow", ["d", f(2)], "q") if square == "pow" else ("Mul", ["d", "d"], "q")
    return [
        reduce("ReduceMean", "x", "m", axes, 1),
        ("Sub", ["x", "m"], "d"),
        squared,
        reduce("ReduceMean", "q", "v", axes, 1),
        ("Add", ["v", f(epsilon)], "e"),
    ]


QUOTIENTS = {
    "div": [("Sqrt", "e", "s"), ("Div", ["d", "s"], "n")],
    "reciprocal": [("Sqrt", "e", "s"), ("Reciprocal", "s", "r"), ("Mul", ["r", "d"], "n")],
    "one_over": [("Sqrt", "e", "s"), ("Div", [f(1), "s"], "r"), ("Mul", ["d", "r"], "n")],
    "pow": [("Pow", ["e", f(-0.5)], "r"), ("Mul", ["d", "r"], "n")],
    "root_of_reciprocal": [("Reciprocal", "e", "s"), ("Sqrt", "s", "r"), ("Mul", ["d", "r"], "n")],
}


@pytest.mark.parametrize("quotient", QUOTIENTS)
@pytest.mark.parametrize("square", ["pow", "mul"])
def test_layer_norm(quotient, square):
    tail = [("Mul", ["n", noise(5)], "a"), ("Add", [noise(5, seed=1), "a"], "y")]
    nodes = [*moments([3], square=square), *QUOTIENTS[quotient], *tail]
    check(nodes, {"LayerNormalization": 1}, [RaiseNorm(), FoldAffineIntoNorm(), FoldAffineIntoNorm()])


@pytest.mark.parametrize(("axes", "constant"), [([2, 3], noise(6, 1, 1)), ([1, 2, 3], noise(6, 4, 5))])
def test_other_axes(axes, constant):
    op = "InstanceNormalization" if axes == [2, 3] else "LayerNormalization"
    nodes = [*moments(axes), *QUOTIENTS["div"], ("Mul", ["n", constant], "y")]
    check(nodes, {op: 1}, [RaiseNorm(), FoldAffineIntoNorm()])


def test_instance_norm_after_its_mean_was_taken_for_pooling():
    nodes = [*moments([2, 3]), *QUOTIENTS["div"], ("Relu", "n", "y")]
    check(nodes, {"InstanceNormalization": 1, "Relu": 1}, [RaiseGlobalPooling(), RaiseNorm()])


def test_norm_over_channels_has_no_op():
    nodes = [*moments([1]), *QUOTIENTS["div"], ("Relu", "n", "y")]
    check(nodes, {"ReduceMean": 2, "Sub": 1, "Pow": 1, "Add": 1, "Sqrt": 1, "Div": 1, "Relu": 1}, [RaiseNorm()])


def test_mean_over_other_axes_than_the_variance_is_no_norm():
    nodes = [*moments([3])[1:], *QUOTIENTS["div"], ("Relu", "n", "y")]
    nodes = [reduce("ReduceMean", "x", "m", [2, 3], 1), *nodes]
    model = check(nodes, None, [RaiseNorm()])
    assert "LayerNormalization" not in {node.op_type for node in model.graph}


def test_centred_value_read_elsewhere_stays_beside_the_norm():
    nodes = [*moments([3]), *QUOTIENTS["div"], ("Add", ["n", "d"], "y")]
    check(nodes, {"ReduceMean": 1, "Sub": 1, "LayerNormalization": 1, "Add": 1}, [RaiseNorm()])


@pytest.mark.parametrize("quotient", ["div", "reciprocal"])
def test_rms_norm(quotient):
    nodes = [("Pow", ["x", f(2)], "q"), reduce("ReduceMean", "q", "v", [3], 1), ("Add", ["v", f(1e-6)], "e")]
    rest = [
        (op, [i if i != "d" else "x" for i in ([ins] if isinstance(ins, str) else ins)], out)
        for op, ins, out in QUOTIENTS[quotient]
    ]
    nodes += [*rest, ("Mul", [noise(5), "n"], "y")]
    check(nodes, {"RMSNormalization": 1}, [RaiseNorm(), FoldAffineIntoNorm()])


@pytest.mark.parametrize(
    "nodes",
    [
        [reduce("ReduceL2", "x", "l", [1], 1), ("Div", ["x", "l"], "y")],
        [reduce("ReduceL2", "x", "l", [1], 1), ("Clip", ["l", f(1e-12)], "c"), ("Div", ["x", "c"], "y")],
        [reduce("ReduceL1", "x", "l", [1], 1), ("Reciprocal", "l", "r"), ("Mul", ["x", "r"], "y")],
        [
            ("Mul", ["x", "x"], "q"),
            reduce("ReduceSum", "q", "l", [1], 1),
            ("Sqrt", "l", "s"),
            ("Div", ["x", "s"], "y"),
        ],
        [reduce("ReduceSumSquare", "x", "l", [1], 1), ("Pow", ["l", f(-0.5)], "s"), ("Mul", ["x", "s"], "y")],
    ],
)
def test_length(nodes):
    check(nodes, {"LpNormalization": 1}, [RaiseNorm()])


@pytest.mark.parametrize(
    "nodes",
    [
        [reduce("ReduceL2", "x", "l", [1], 1), ("Clip", ["l", f(1e-3)], "c"), ("Div", ["x", "c"], "y")],
        [reduce("ReduceL2", "x", "l", [1], 1), ("Add", ["l", f(1e-10)], "c"), ("Div", ["x", "c"], "y")],
        [reduce("ReduceL2", "x", "l", [1, 2], 1), ("Div", ["x", "l"], "y")],
        # the bound on the square is 1e-5 on the norm
        [
            reduce("ReduceSumSquare", "x", "l", [1], 1),
            ("Clip", ["l", f(1e-10)], "c"),
            ("Sqrt", "c", "s"),
            ("Div", ["x", "s"], "y"),
        ],
    ],
    ids=["bound", "epsilon", "two_axes", "bound_on_square"],
)
def test_no_length(nodes):
    model = check(nodes, None, [RaiseNorm()])
    assert "LpNormalization" not in {node.op_type for node in model.graph}


@pytest.mark.parametrize("grouped", [(2, 3, 40), (2, 3, 2, 20)])
def test_group_norm(grouped):
    nodes = [
        ("Reshape", ["x", i64(*grouped)], "a", {"allowzero": 0}),
        ("InstanceNormalization", ["a", noise(3), noise(3, seed=1)], "b", {"epsilon": 1e-4}),
        ("Reshape", ["b", i64(2, 6, 4, 5)], "c", {"allowzero": 0}),
        ("Mul", ["c", noise(6, 1, 1)], "m"),
        ("Add", ["m", noise(1, 6, 1, 1)], "y"),
    ]
    check(nodes, {"GroupNormalization": 1}, [RaiseGroupNorm(), FoldAffineIntoNorm(), FoldAffineIntoNorm()])


def test_groups_across_the_batch_stay():
    nodes = [
        ("Reshape", ["x", i64(1, 3, 80)], "a", {"allowzero": 0}),
        ("InstanceNormalization", ["a", noise(3), noise(3, seed=1)], "b", {"epsilon": 1e-4}),
        ("Reshape", ["b", i64(2, 6, 4, 5)], "y", {"allowzero": 0}),
    ]
    check(nodes, {"Reshape": 2, "InstanceNormalization": 1}, [RaiseGroupNorm()])


def test_affine_into_batch_norm_unless_it_is_kept():
    nodes = [bn("x", "a", 6), ("Mul", ["a", noise(6, 1, 1)], "b"), ("Add", ["b", f(0.5)], "y")]
    check(nodes, {"BatchNormalization": 1}, [FoldAffineIntoNorm(), FoldAffineIntoNorm()])
    check(nodes, {"BatchNormalization": 1, "Mul": 1, "Add": 1}, [FoldAffineIntoNorm(keep_bn=True)])


def test_constants_along_other_axes_stay():
    nodes = [bn("x", "a", 6), ("Mul", ["a", noise(5)], "y")]
    check(nodes, {"BatchNormalization": 1, "Mul": 1}, [FoldAffineIntoNorm()])
    nodes = [("LayerNormalization", ["x", noise(5)], "a", {"axis": 3, "epsilon": 1e-5, "stash_type": 1})]
    nodes += [("Mul", ["a", noise(6, 1, 1)], "y")]
    check(nodes, {"LayerNormalization": 1, "Mul": 1}, [FoldAffineIntoNorm()])


def test_roots():
    nodes = [("Exp", "x", "p"), ("Sqrt", "p", "s"), ("Div", ["x", "s"], "y")]
    check(nodes, {"Exp": 1, "Pow": 1, "Mul": 1}, [SimplifyRoots()])
    nodes = [("Exp", "x", "p"), ("Sqrt", "p", "s"), ("Reciprocal", "s", "y")]
    check(nodes, {"Exp": 1, "Pow": 1}, [SimplifyRoots()])
    check(nodes, {"Exp": 1, "Sqrt": 1, "Reciprocal": 1}, [SimplifyRoots()], outputs=("y", "s"))
