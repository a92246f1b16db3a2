"""InputsFirst: whatever the order in which an input is prepared, its layout and mean come first."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from onnx2caffe.passes.base import Repeat
from onnx2caffe.passes.mean import InputsFirst
from tests.passes.check import before_after, build, i64, noise

PASSES = [Repeat([InputsFirst()])]
FACTOR, SHIFT, ORDER = np.float32([2, 0.5, -3]), np.float32([7, -1, 4]), i64(2, 0, 1)


def step(kind: str, value: str, made: str, axis: int):
    shape = (3, 1, 1) if axis == 1 else (3,)
    steps = {
        "Mul": ("Mul", [value, FACTOR.reshape(shape)], made),
        "Add": ("Add", [SHIFT.reshape(shape), value], made),
        "Gather": ("Gather", [value, ORDER.copy()], made, {"axis": axis}),
        "Transpose": ("Transpose", value, made, {"perm": [0, 3, 1, 2]}),
        "Cast": ("Cast", value, made, {"to": 1}),
    }
    return steps[kind]


def prepared(kinds):
    """The steps in this order, on a picture whose channels come last, and a Relu."""
    nodes, value, axis = [], "x", 3
    for number, kind in enumerate(kinds):
        nodes.append(step(kind, value, f"t{number}", axis))
        value, axis = f"t{number}", 1 if kind == "Transpose" else axis
    return build({"x": [1, 4, 5, 3]}, [*nodes, ("Relu", value, "y")], ["y"])


@pytest.mark.parametrize("kinds", [*permutations(["Mul", "Add", "Gather", "Transpose"])], ids="-".join)
def test_every_order_becomes_one(kinds):
    model = before_after(prepared(kinds), PASSES, rtol=1e-5)
    assert [node.op_type for node in model.graph] == ["Transpose", "Add", "Gather", "Mul", "Relu"]


def test_an_order_goes_behind_a_cast():
    model = before_after(prepared(["Gather", "Cast", "Add", "Transpose"]), PASSES)
    assert [node.op_type for node in model.graph] == ["Cast", "Transpose", "Add", "Gather", "Relu"]


def test_a_reversal_is_an_order():
    nodes = [
        ("Slice", ["x", i64(-1), i64(-99), i64(1), i64(-1)], "flipped"),
        ("Add", ["flipped", SHIFT.reshape(3, 1, 1)], "shifted"),
        ("Relu", "shifted", "y"),
    ]
    before_after(build({"x": [1, 3, 4, 5]}, nodes, ["y"]), PASSES, {"Add": 1, "Gather": 1, "Relu": 1})


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([("Relu", "x", "r"), step("Mul", "r", "m", 1), step("Add", "m", "y", 1)], ["y"]),  # no input
        ([step("Mul", "x", "m", 1), step("Add", "m", "y", 1)], ["y", "m"]),  # the value between is an output
        ([("Mul", ["x", np.float32([1, 0, 2]).reshape(3, 1, 1)], "m"), step("Add", "m", "y", 1)], ["y"]),  # a factor 0
        ([("Slice", ["x", i64(2), i64(0), i64(1), i64(-1)], "s"), step("Add", "s", "y", 1)], ["y"]),  # leaves one out
        ([("Gather", ["x", i64(2, 1)], "s", {"axis": 1}), ("Add", ["s", noise(2, 1, 1)], "y")], ["y"]),  # too
        ([("Mul", ["x", "x"], "m"), step("Add", "m", "y", 1)], ["y"]),  # no constant
    ],
)
def test_what_stays(nodes, outputs):
    if any(node[0] == "Slice" for node in nodes):
        nodes[1] = ("Add", ["s", noise(2, 1, 1)], "y")
    model = build({"x": [1, 3, 4, 5]}, nodes, outputs)
    kinds = [node.op_type for node in model.graph]
    assert [node.op_type for node in before_after(model, PASSES).graph] == kinds
