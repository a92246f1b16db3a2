"""JoinSlices, KeepDenseOnChannels, TurnBeforeConcat: the passes of exit "nnie"."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.movers import MergeMovers
from onnx2caffe.passes.nnie_concat import TurnBeforeConcat
from onnx2caffe.passes.nnie_dense import KeepDenseOnChannels
from onnx2caffe.passes.nnie_slices import JoinSlices
from tests.passes.check import before_after, build, counts, i64, noise

ALONE = {"allowzero": 0}


def part(x, y, start, end, axis=1, step=1):
    return ("Slice", [x, i64(start), i64(end), i64(axis), i64(step)], y)


@pytest.mark.parametrize("axis", [1, 3])
def test_slices_that_cover_an_axis(axis):
    shape = [1, 6, 4, 6]
    nodes = [part("x", "b", 2, 5, axis), part("x", "a", 0, 2, axis), part("x", "c", 5, 6, axis), ("Relu", "b", "d")]
    model = before_after(build({"x": shape}, nodes, ["a", "d", "c"]), [JoinSlices()], {"Split": 1, "Relu": 1})
    (split,) = (node for node in model.graph if node.op_type == "Split")
    assert [value.shape[axis] for value in split.outputs] == [2, 3, 1]


@pytest.mark.parametrize(
    "ranges", [[(0, 2), (3, 6)], [(0, 4), (2, 6)], [(0, 3), (0, 6)], [(0, 2), (2, 5)], [(0, 6)]], ids=str
)
def test_slices_that_leave_out_or_share_something_stay(ranges):
    nodes = [part("x", f"y{i}", *bounds) for i, bounds in enumerate(ranges)]
    outputs = [f"y{i}" for i in range(len(ranges))]
    before_after(build({"x": [1, 6, 4, 4]}, nodes, outputs), [JoinSlices()], {"Slice": len(ranges)})


def test_slices_with_steps_stay():
    nodes = [part("x", "a", 0, 6, step=2), part("x", "b", 1, 6, step=2)]
    before_after(build({"x": [1, 6, 4, 4]}, nodes, ["a", "b"]), [JoinSlices()], {"Slice": 2})


@pytest.mark.parametrize("weight", [noise(5, 1), noise(5, 3), noise(5)], ids=["one", "many", "vector"])
@pytest.mark.parametrize("spelling", ["row", "columns"])
def test_integral_of_a_head(weight, spelling):
    """GFL as NanoDet spells it: (1, 4·5, H, W) to (1, HW, 4, 5) or (1, 4·HW, 5)."""
    target = i64(1, 12, 4, 5) if spelling == "row" else i64(1, 48, 5)
    nodes = [
        ("Reshape", ["x", i64(1, 20, 12)], "a", ALONE),
        ("Transpose", "a", "b", {"perm": [0, 2, 1]}),
        ("Reshape", ["b", target], "c", ALONE),
        ("Softmax", "c", "d", {"axis": 3 if spelling == "row" else 2}),
        ("MatMul", ["d", weight], "y"),
    ]
    model = before_after(build({"x": [1, 20, 3, 4]}, nodes, ["y"]), [KeepDenseOnChannels(), MergeMovers()])
    assert {op: n for op, n in counts(model).items() if op not in ("Reshape", "Transpose")} == {
        "Split": 1,
        "Softmax": 4,
        "Conv": 4,
        "Concat": 1,
    }


@pytest.mark.parametrize("perms", [((0, 2, 1, 3), None, 1), ((0, 3, 1, 2), (0, 3, 2, 1), 3)], ids=["short", "long"])
def test_integral_of_dfl(perms):
    """DFL in both spellings of YOLOv8's exports."""
    first, second, axis = perms
    nodes = [
        ("Reshape", ["x", i64(1, 4, 5, 7)], "a", ALONE),
        ("Transpose", "a", "b", {"perm": list(first)}),
        ("Softmax", "b", "c", {"axis": axis}),
        *([("Transpose", "c", "d", {"perm": list(second)})] if second else []),
        ("Conv", ["d" if second else "c", np.arange(5, dtype=np.float32).reshape(1, 5, 1, 1)], "e", {
            "auto_pad": "NOTSET", "dilations": [1, 1], "group": 1, "kernel_shape": [1, 1],
            "pads": [0, 0, 0, 0], "strides": [1, 1],
        }),
        ("Reshape", ["e", i64(1, 4, 7)], "y", ALONE),
    ]  # fmt: skip
    expect = {"Split": 1, "Softmax": 4, "Conv": 4, "Concat": 1}
    before_after(build({"x": [1, 20, 7]}, nodes, ["y"]), [KeepDenseOnChannels(), MergeMovers()], expect)


def test_dense_layer_behind_a_turned_map():
    nodes = [
        ("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}),
        ("Reshape", ["a", i64(1, 12, 6)], "b", ALONE),
        ("MatMul", ["b", noise(6, 5)], "y"),
    ]
    expect = {"Conv": 1, "Transpose": 1, "Reshape": 1}
    before_after(build({"x": [1, 6, 3, 4]}, nodes, ["y"]), [KeepDenseOnChannels(), MergeMovers()], expect)


@pytest.mark.parametrize(
    ("axis", "outputs", "shape"),
    [(2, ["y"], [1, 20, 3, 4]), (3, ["y", "d"], [1, 20, 3, 4]), (3, ["y"], [2, 20, 3, 4])],
    ids=["softmax over another axis", "softmax read elsewhere", "batch"],
)
def test_integral_that_stays(axis, outputs, shape):
    nodes = [
        ("Reshape", ["x", i64(shape[0], 20, 12)], "a", ALONE),
        ("Transpose", "a", "b", {"perm": [0, 2, 1]}),
        ("Reshape", ["b", i64(shape[0], 12, 4, 5)], "c", ALONE),
        ("Softmax", "c", "d", {"axis": axis}),
        ("MatMul", ["d", noise(5, 1)], "y"),
    ]
    expect = {"Reshape": 2, "Transpose": 1, "Softmax": 1, "MatMul": 1}
    before_after(build({"x": shape}, nodes, outputs), [KeepDenseOnChannels()], expect)


def test_joined_then_turned():
    nodes = [("Concat", ["x", "z"], "a", {"axis": 2}), ("Transpose", "a", "y", {"perm": [0, 2, 1]})]
    before_after(
        build({"x": [1, 3, 4], "z": [1, 3, 5]}, nodes, ["y"]), [TurnBeforeConcat()], {"Transpose": 2, "Concat": 1}
    )


@pytest.mark.parametrize(("perm", "outputs"), [([2, 1, 0], ["y"]), ([0, 2, 1], ["y", "a"])], ids=["batch", "read"])
def test_joined_then_turned_that_stays(perm, outputs):
    nodes = [("Concat", ["x", "z"], "a", {"axis": 2}), ("Transpose", "a", "y", {"perm": perm})]
    model = build({"x": [1, 3, 4], "z": [1, 3, 5]}, nodes, outputs)
    before_after(model, [TurnBeforeConcat()], {"Transpose": 1, "Concat": 1})
