"""DropNoOps and ShareEqualNodes."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.noop import DropNoOps, ShareEqualNodes
from tests.passes.check import before_after, build, i64, noise

X = {"x": [2, 3, 4, 5]}
ONE = np.array(1, dtype=np.float32)
RESIZE = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
POOL = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0, 0, 0, 0]}


@pytest.mark.parametrize(
    "node",
    [
        ("Slice", ["x", i64(0), i64(4), i64(2), i64(1)]),
        ("Concat", ["x"], {"axis": 1}),
        ("Expand", ["x", i64(2, 3, 4, 5)]),
        ("Tile", ["x", i64(1, 1, 1, 1)]),
        ("Pad", ["x", i64(*[0] * 8), None], {"mode": "reflect"}),
        ("Resize", ["x", None, None, i64(2, 3, 4, 5)], RESIZE),
        ("Resize", ["x", None, np.ones(4, np.float32), None], RESIZE),
        ("Cast", ["x"], {"to": 1}),
        ("Clip", ["x", None, None]),
        ("Split", ["x", i64(3)], {"axis": 1}),
        ("Gather", ["x", i64(0, 1, 2)], {"axis": 1}),
        ("Sum", ["x"]),
        ("Add", ["x", np.zeros((3, 1, 1), np.float32)]),
        ("Add", [np.zeros((), np.float32), "x"]),
        ("Sub", ["x", np.zeros((), np.float32)]),
        ("Mul", ["x", np.ones((1, 1, 1, 1), np.float32)]),
        ("Div", ["x", ONE]),
        ("Pow", ["x", ONE]),
        ("AveragePool", ["x"], POOL),
        ("MaxPool", ["x"], POOL),
    ],
    ids=lambda node: node[0],
)
def test_dropped(node):
    op, inputs, *attributes = node
    model = build(X, [(op, inputs, "a", *attributes), ("Relu", "a", "y")], ["y"])
    before_after(model, [DropNoOps()], {"Relu": 1})


@pytest.mark.parametrize(
    "node",
    [
        # widens x to rank 5
        ("Add", ["x", np.zeros((1, 1, 1, 1, 1), np.float32)]),
        # 1.05·4 = 4.2 rows, cut to 4: other sampling points, same size
        ("Resize", ["x", None, np.array([1, 1, 1.05, 1.1], np.float32), None], RESIZE),
        # reads backwards
        ("Slice", ["x", i64(-1), i64(-6), i64(3), i64(-1)]),
        # permutes
        ("Gather", ["x", i64(0, 2, 1)], {"axis": 1}),
        # not commutative: 0 − x, 1 / x
        ("Sub", [np.zeros((), np.float32), "x"]),
        ("Div", [ONE, "x"]),
        # stride 1, but one number differs
        ("Mul", ["x", np.array([1, 1, 2], np.float32).reshape(3, 1, 1)]),
    ],
    ids=["rank", "scale", "reverse", "order", "sub_left", "div_left", "not_all_one"],
)
def test_kept(node):
    op, inputs, *attributes = node
    model = build(X, [(op, inputs, "a", *attributes), ("Relu", "a", "y")], ["y"])
    before_after(model, [DropNoOps()], {op: 1, "Relu": 1})


def test_no_op_that_is_an_output_leaves_the_output_to_its_input():
    model = build(X, [("Relu", "x", "a"), ("Mul", ["a", ONE], "y"), ("Sigmoid", "a", "z")], ["y", "z", "a"])
    model = before_after(model, [DropNoOps()], {"Relu": 1, "Sigmoid": 1})
    assert [value.name for value in model.graph.outputs] == ["a", "z", "a"]


def test_no_op_on_the_graph_input():
    before_after(build(X, [("Mul", ["x", ONE], "y")], ["y"]), [DropNoOps()], {})


def test_equal_nodes_are_shared_through_equal_constants():
    nodes = [
        ("Mul", ["x", np.float32([2])], "a"),
        ("Mul", ["x", np.float32([2])], "b"),
        ("Mul", ["x", np.float32([3])], "c"),
        ("Relu", "a", "d"),
        ("Relu", "b", "e"),
        ("Sum", ["d", "e", "c"], "y"),
    ]
    before_after(build(X, nodes, ["y"]), [ShareEqualNodes()], {"Mul": 2, "Relu": 1, "Sum": 1})


def test_equal_nodes_with_other_attributes_stay():
    nodes = [("LeakyRelu", "x", "a", {"alpha": 0.1}), ("LeakyRelu", "x", "b", {"alpha": 0.2}), ("Add", ["a", "b"], "y")]
    before_after(build(X, nodes, ["y"]), [ShareEqualNodes()], {"LeakyRelu": 2, "Add": 1})


def test_equal_outputs_become_one_value_under_two_names():
    model = build(X, [("Relu", "x", "y"), ("Relu", "x", "z")], ["y", "z"])
    before_after(model, [ShareEqualNodes()], {"Relu": 1})


def test_large_weights_are_told_apart_by_identity():
    weight = noise(40, 5, 5)
    nodes = [("MatMul", ["x", weight], "a"), ("MatMul", ["x", weight.copy()], "b"), ("Add", ["a", "b"], "y")]
    before_after(build({"x": [40, 4, 5]}, nodes, ["y"]), [ShareEqualNodes()])
