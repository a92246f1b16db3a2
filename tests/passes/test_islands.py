"""CancelTransposes and the table of relaid ops."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.islands import CancelTransposes
from onnx2caffe.passes.movers import MergeMovers
from tests.passes.check import before_after, build, i64, noise
from tests.passes.test_activations import f
from tests.passes.test_affine import conv
from tests.passes.test_reduce import reduce

X = {"x": [2, 3, 4, 6]}
IN = ("Transpose", "x", "t", {"perm": [0, 2, 3, 1]})
OUT = ("Transpose", "v", "y", {"perm": [0, 3, 1, 2]})
PASSES = [CancelTransposes(), MergeMovers()]
RESIZE = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@pytest.mark.parametrize(
    ("node", "expect"),
    [
        (("Relu", "t", "v"), {"Relu": 1}),
        (("Clip", ["t", f(0), f(6)], "v"), {"Clip": 1}),
        (("Mul", ["t", noise(3)], "v"), {"Mul": 1}),
        (("Add", [noise(1, 1, 6, 3), "t"], "v"), {"Add": 1}),
        (("PRelu", ["t", noise(3)], "v"), {"PRelu": 1}),
        (("Softmax", "t", "v", {"axis": 3}), {"Softmax": 1}),
        (("Softmax", "t", "v", {"axis": 1}), {"Softmax": 1}),
        (("Concat", ["t", "t", noise(2, 4, 6, 2)], "v", {"axis": 3}), {"Concat": 1}),
        (("Concat", ["t", noise(2, 4, 6, 3)], "v", {"axis": 1}), {"Concat": 1}),
        (reduce("ReduceMean", "t", "v", [1, 2], 1), {"ReduceMean": 1}),
        (reduce("ReduceMax", "t", "v", [3], 1), {"ReduceMax": 1}),
        (("Pad", ["t", i64(0, 1, 2, 0, 0, 0, 1, 1), f(2)], "v", {"mode": "constant"}), {"Pad": 1}),
        (("Slice", ["t", i64(1, 0), i64(4, 3), i64(1, 3), i64(2, 1)], "v"), {"Slice": 1}),
        (("Resize", ["t", None, f(1, 2, 3, 1), None], "v", RESIZE), {"Resize": 1}),
        (("Resize", ["t", None, None, i64(2, 8, 9, 3)], "v", RESIZE), {"Resize": 1}),
        (("Tile", ["t", i64(1, 2, 1, 3)], "v"), {"Tile": 1}),
        (("Gather", ["t", i64(2, 0)], "v", {"axis": 3}), {"Gather": 1}),
        (("MatMul", ["t", noise(3, 5)], "v"), {"Conv": 1}),
        (("LpNormalization", "t", "v", {"axis": 3, "p": 2}), {"LpNormalization": 1}),
    ],
    ids=lambda row: row[0] if isinstance(row, tuple) else "",
)
def test_pair_around_one_op(node, expect):
    before_after(build(X, [IN, node, OUT], ["y"]), PASSES, expect)


@pytest.mark.parametrize("perm", [[0, 2, 1, 3], [0, 3, 2, 1], [3, 1, 0, 2]])
def test_any_order(perm):
    nodes = [
        ("Transpose", "x", "t", {"perm": perm}),
        ("Mul", ["t", noise(*np.array([2, 3, 4, 6])[perm][1:])], "m"),
        reduce("ReduceMean", "m", "r", [2], 1),
        ("Sub", ["m", "r"], "v"),
        ("Transpose", "v", "y", {"perm": list(np.argsort(perm))}),
    ]
    before_after(build(X, nodes, ["y"]), PASSES, {"Mul": 1, "ReduceMean": 1, "Sub": 1})


def test_island_between_convolutions():
    nodes = [
        conv("x", noise(4, 3, 1, 1), "a"),
        ("Transpose", "a", "t", {"perm": [0, 2, 3, 1]}),
        conv("x", noise(4, 3, 1, 1, seed=1), "b"),
        ("Transpose", "b", "u", {"perm": [0, 2, 3, 1]}),
        ("Relu", "t", "r"),
        ("Add", ["r", "u"], "s"),
        ("Split", ["s", i64(1, 3)], ["p", "q"], {"axis": 3}),
        ("Sigmoid", "q", "g"),
        ("Transpose", "p", "c", {"perm": [0, 3, 1, 2]}),
        ("Transpose", "g", "d", {"perm": [0, 3, 1, 2]}),
        conv("c", noise(2, 1, 3, 3), "y"),
        conv("d", noise(2, 3, 3, 3), "z"),
    ]
    expect = {"Conv": 4, "Relu": 1, "Add": 1, "Split": 1, "Sigmoid": 1}
    before_after(build(X, nodes, ["y", "z"]), PASSES, expect)


def test_side_input_in_the_other_layout_costs_a_transpose():
    nodes = [IN, ("Add", ["t", "w"], "v"), OUT]
    model = build({**X, "w": [2, 4, 6, 3]}, nodes, ["y"])
    before_after(model, PASSES, {"Transpose": 1, "Add": 1})


def test_dense_layers_in_nhwc_become_convolutions():
    nodes = [
        IN,
        ("MatMul", ["t", noise(3, 8)], "a"),
        ("Add", ["a", noise(8)], "b"),
        ("Relu", "b", "c"),
        ("MatMul", ["c", noise(8, 3)], "v"),
        OUT,
    ]
    before_after(build(X, nodes, ["y"]), PASSES, {"Conv": 2, "Add": 1, "Relu": 1})


def test_gate_of_size_one_needs_no_transpose():
    nodes = [IN, reduce("ReduceMean", "t", "m", [1, 2], 1), ("Sigmoid", "m", "g"), ("Mul", ["t", "g"], "v"), OUT]
    before_after(build(X, nodes, ["y"]), PASSES, {"ReduceMean": 1, "Sigmoid": 1, "Mul": 1})


def test_reduction_that_drops_axes_takes_the_transpose_with_it():
    before_after(build(X, [IN, reduce("ReduceMean", "t", "y", [1, 2], 0)], ["y"]), PASSES, {"ReduceMean": 1})


@pytest.mark.parametrize(
    ("nodes", "outputs", "expect"),
    [
        # one in, one out: nothing to gain
        ([IN, ("Relu", "t", "y")], ["y"], {"Transpose": 1, "Relu": 1}),
        # the Transpose's own result is needed
        ([IN, ("Relu", "t", "v"), OUT], ["y", "t", "v"], {"Transpose": 2, "Relu": 1}),
        # normalises over the last axis only
        (
            [IN, ("LayerNormalization", ["t", noise(3)], "v", {"axis": 3, "epsilon": 1e-5, "stash_type": 1}), OUT],
            ["y"],
            {"Transpose": 2, "LayerNormalization": 1},
        ),
        # the axes left change places
        (
            [IN, reduce("ReduceMean", "t", "y", [1], 0)],
            ["y"],
            {"Transpose": 1, "ReduceMean": 1},
        ),
        # contracts an axis that is not the channels of x
        (
            [
                ("Transpose", "x", "t", {"perm": [0, 1, 3, 2]}),
                ("MatMul", ["t", noise(4, 4)], "v"),
                ("Transpose", "v", "y", {"perm": [0, 1, 3, 2]}),
            ],
            ["y"],
            {"Transpose": 2, "MatMul": 1},
        ),
    ],
    ids=["no_gain", "outputs", "layer_norm", "axes_left", "matmul"],
)
def test_stays(nodes, outputs, expect):
    before_after(build(X, nodes, outputs), PASSES, expect)
