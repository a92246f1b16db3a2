"""HoistSelections."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.movers import MergeMovers
from onnx2caffe.passes.selections import HoistSelections
from onnx2caffe.passes.space import RaiseChannelMovers
from tests.passes.check import before_after, build, i64


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("index", [0, 1, -1])
def test_index_of_a_split_axis(batch, index):
    nodes = [
        ("Reshape", ["x", i64(batch, 3, 2, 4, 5)], "a", {"allowzero": 0}),
        ("Gather", ["a", np.array(index)], "y", {"axis": 1}),
    ]
    before_after(build({"x": [batch, 6, 4, 5]}, nodes, ["y"]), [HoistSelections()], {"Slice": 1})


def test_range_of_a_split_axis():
    nodes = [
        ("Reshape", ["x", i64(2, 3, 2, 20)], "a", {"allowzero": 0}),
        ("Slice", ["a", i64(1), i64(3), i64(1), i64(1)], "b"),
        ("Relu", "b", "y"),
    ]
    # the Slice of x would still need a Reshape
    before_after(build({"x": [2, 6, 20]}, nodes, ["y"]), [HoistSelections()], {"Reshape": 1, "Slice": 1, "Relu": 1})


def test_inner_part_of_a_split_axis_stays():
    nodes = [
        ("Reshape", ["x", i64(2, 3, 2, 4, 5)], "a", {"allowzero": 0}),
        ("Gather", ["a", np.array(1)], "y", {"axis": 2}),
    ]
    before_after(build({"x": [2, 6, 4, 5]}, nodes, ["y"]), [HoistSelections()], {"Reshape": 1, "Gather": 1})


def test_shuffle_written_as_two_halves():
    nodes = [
        ("Reshape", ["x", i64(3, 2, 20)], "a", {"allowzero": 0}),
        ("Transpose", "a", "b", {"perm": [1, 0, 2]}),
        ("Reshape", ["b", i64(2, 1, 3, 4, 5)], "c", {"allowzero": 0}),
        ("Gather", ["c", np.array(0)], "y", {"axis": 0}),
        ("Gather", ["c", np.array(1)], "z", {"axis": 0}),
    ]
    model = build({"x": [1, 6, 4, 5]}, nodes, ["y", "z"])
    before_after(model, [RaiseChannelMovers(), MergeMovers(), HoistSelections()], {"Gather": 1, "Slice": 2})
