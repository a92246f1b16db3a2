"""TurnPlanes: the planes of an input are turned in front, and back in the weights."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.errors import Unsupported, UsageError
from onnx2caffe.passes.planes import TurnPlanes
from tests.passes.check import before_after, build, i64, noise
from tests.passes.test_affine import conv
from tests.passes.test_pad import pool

TURN = {"perm": [0, 3, 1, 2]}


@pytest.mark.parametrize(
    ("shape", "axis", "steps"),
    [
        ([1, 3, 8, 8], 1, []),
        ([1, 3, 8, 8], 1, [("Add", ["x", noise(1, 3, 1, 1)], "v")]),
        ([1, 3, 8, 8], 1, [pool("AveragePool", "x", "v")]),
        ([1, 8, 8, 3], 3, [("Transpose", "x", "v", TURN)]),
        ([1, 8, 8, 3], 3, [("Transpose", "x", "t", TURN), ("Add", ["t", noise(1, 3, 1, 1)], "v")]),
    ],
    ids=["plain", "mean", "pool", "last", "last and mean"],
)
def test_turned_in_front_and_in_the_weights(shape, axis, steps):
    nodes = [*steps, conv("v" if steps else "x", noise(4, 3, 3, 3), "y", bias=noise(4)), ("Relu", "y", "z")]
    model = before_after(build({"x": shape}, nodes, ["z"]), [TurnPlanes(["x"])], rtol=1e-5)
    assert [node.op_type for node in model.graph] == ["Gather", *(op for op, *_ in nodes)]
    assert next(iter(model.graph)).attributes["axis"].as_int() == axis


def test_the_mean_is_in_the_order_of_the_planes():
    nodes = [("Add", ["x", np.float32([1, 2, 3]).reshape(3, 1, 1)], "a"), conv("a", noise(4, 3, 3, 3), "y")]
    model = before_after(build({"x": [1, 3, 8, 8]}, nodes, ["y"]), [TurnPlanes(["x"])], rtol=1e-5)
    (add,) = (node for node in model.graph if node.op_type == "Add")
    (constant,) = (value.const_value for value in add.inputs if value.const_value is not None)
    assert constant.numpy().ravel().tolist() == [3, 2, 1]


def test_several_inputs_and_several_readers():
    nodes = [
        conv("x", noise(4, 3, 3, 3), "a"),
        conv("x", noise(4, 3, 3, 3, seed=1), "b"),
        conv("z", noise(4, 3, 3, 3, seed=2), "c"),
    ]
    model = build({"x": [1, 3, 8, 8], "z": [1, 3, 8, 8]}, nodes, ["a", "b", "c"])
    before_after(model, [TurnPlanes(["x", "z", "x"])], {"Gather": 2, "Conv": 3}, rtol=1e-5)


def test_a_model_that_turns_them_itself():
    nodes = [("Gather", ["x", i64(2, 1, 0)], "g", {"axis": 1}), ("Sigmoid", "g", "y")]
    model = build({"x": [1, 3, 8, 8]}, nodes, ["y"])
    with pytest.raises(Unsupported, match="where n0_Gather reads them"):
        TurnPlanes(["x"]).call(model)


@pytest.mark.parametrize(
    ("inputs", "name", "error", "text"),
    [
        ({"x": [1, 3, 8, 8]}, "y", UsageError, "no input of that name"),
        ({"x": [1, 4, 8, 8]}, "x", UsageError, "its shape is"),
        ({"x": [1, 3]}, "x", UsageError, "its shape is"),
        ({"x": [1, 3, 8, 8]}, "x", Unsupported, "n0_Softmax, n1_Relu read them"),
    ],
)
def test_refused(inputs, name, error, text):
    model = build(inputs, [("Softmax", "x", "y", {"axis": 1}), ("Relu", "x", "z")], ["y", "z"])
    with pytest.raises(error, match=text):
        TurnPlanes([name]).call(model)


def test_what_nothing_reads():
    model = build({"x": [1, 3, 8, 8]}, [("Relu", "x", "y")], ["y"])
    model.graph.outputs[:] = model.graph.inputs
    model.graph.remove(next(iter(model.graph)), safe=True)
    with pytest.raises(UsageError, match="nothing reads it"):
        TurnPlanes(["x"]).call(model)
