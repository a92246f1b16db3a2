"""MergeReductions and RaiseGlobalPooling."""

from __future__ import annotations

import pytest

from onnx2caffe.passes.reduce import MergeReductions, RaiseGlobalPooling
from tests.passes.check import before_after, build, i64

X = {"x": [2, 3, 4, 5]}


def reduce(op, x, y, axes, keep):
    return (op, [x, i64(*axes)], y, {"keepdims": keep, "noop_with_empty_axes": 0})


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"])
@pytest.mark.parametrize("keep", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_two_steps_are_one(op, keep):
    nodes = [reduce(op, "x", "a", [3], keep[0]), reduce(op, "a", "b", [2], keep[1]), ("Relu", "b", "y")]
    mixed = {"Reshape": 1} if keep[0] != keep[1] else {}
    before_after(build(X, nodes, ["y"]), [MergeReductions()], {op: 1, "Relu": 1, **mixed})


def test_first_axis_then_what_has_moved_into_its_place():
    nodes = [reduce("ReduceSum", "x", "a", [1], 0), reduce("ReduceSum", "a", "y", [1], 0)]
    before_after(build(X, nodes, ["y"]), [MergeReductions()], {"ReduceSum": 1})


def test_different_reductions_and_read_intermediates_stay():
    nodes = [reduce("ReduceMax", "x", "a", [3], 1), reduce("ReduceMean", "a", "y", [2], 1)]
    before_after(build(X, nodes, ["y"]), [MergeReductions()], {"ReduceMax": 1, "ReduceMean": 1})
    nodes = [reduce("ReduceMax", "x", "a", [3], 1), reduce("ReduceMax", "a", "y", [2], 1)]
    before_after(build(X, nodes, ["y", "a"]), [MergeReductions()], {"ReduceMax": 2})


@pytest.mark.parametrize("keep", [0, 1])
def test_axes_of_size_one_leave(keep):
    model = build({"x": [2, 1, 4, 1]}, [reduce("ReduceMean", "x", "a", [1, 3], keep), ("Relu", "a", "y")], ["y"])
    before_after(model, [MergeReductions()], {"Relu": 1} if keep else {"Reshape": 1, "Relu": 1})
    model = build({"x": [2, 1, 4, 3]}, [reduce("ReduceMax", "x", "y", [1, 3], keep)], ["y"])
    before_after(model, [MergeReductions()], {"ReduceMax": 1} | ({} if keep else {"Reshape": 1}))


def test_square_sums_are_no_plain_reductions():
    nodes = [reduce("ReduceSumSquare", "x", "y", [3], 1)]
    before_after(build({"x": [2, 3, 4, 1]}, nodes, ["y"]), [MergeReductions()], {"ReduceSumSquare": 1})


@pytest.mark.parametrize(("op", "raised"), [("ReduceMean", "GlobalAveragePool"), ("ReduceMax", "GlobalMaxPool")])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("shape", [[2, 3, 4, 5], [2, 3, 4, 5, 2]], ids=len)
def test_reduction_over_the_map(op, raised, keep, shape):
    model = build({"x": shape}, [reduce(op, "x", "y", range(2, len(shape)), keep)], ["y"])
    before_after(model, [RaiseGlobalPooling()], {raised: 1} | ({} if keep else {"Reshape": 1}))


def test_reductions_that_are_no_pooling():
    for op, axes in [("ReduceSum", [2, 3]), ("ReduceMean", [3]), ("ReduceMean", [1, 2, 3])]:
        before_after(build(X, [reduce(op, "x", "y", axes, 1)], ["y"]), [RaiseGlobalPooling()], {op: 1})
    model = build({"x": [2, 3, 4]}, [reduce("ReduceMean", "x", "y", [2], 1)], ["y"])
    before_after(model, [RaiseGlobalPooling()], {"ReduceMean": 1})


def pool(op, kernel, pads, *, counted=0, ceil=0):
    attributes = {
        "kernel_shape": kernel,
        "strides": [1, 1],
        "pads": pads,
        "dilations": [1, 1],
        "ceil_mode": ceil,
        "auto_pad": "NOTSET",
    }
    extra = {"count_include_pad": counted} if op == "AveragePool" else {"storage_order": 0}
    return (op, "x", "y", attributes | extra)


@pytest.mark.parametrize(
    ("node", "op"),
    [
        (pool("AveragePool", [4, 5], [0, 0, 0, 0]), "GlobalAveragePool"),
        (pool("AveragePool", [4, 5], [0, 0, 0, 0], counted=1), "GlobalAveragePool"),
        (pool("MaxPool", [4, 5], [0, 0, 0, 0]), "GlobalMaxPool"),
        (pool("MaxPool", [5, 7], [1, 2, 0, 0]), "GlobalMaxPool"),
        # padding is not counted: still the mean of the map
        (pool("AveragePool", [5, 6], [1, 0, 0, 1]), "GlobalAveragePool"),
        # padding is counted
        (pool("AveragePool", [5, 6], [1, 0, 0, 1], counted=1), "AveragePool"),
        # the window ends before the map does
        (pool("MaxPool", [4, 5], [1, 0, 0, 0], ceil=0), "MaxPool"),
    ],
)
def test_pool_over_the_map(node, op):
    model = build(X, [node], ["y"])
    before_after(model, [RaiseGlobalPooling()], {op: 1})
