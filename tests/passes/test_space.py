"""Channel permutations, DepthToSpace, SpaceToDepth and Focus."""

from __future__ import annotations

import itertools

import pytest

from onnx2caffe.passes.movers import MergeMovers
from onnx2caffe.passes.space import FoldSpaceToDepthIntoConv, RaiseChannelMovers, RaiseConcatOfSlices
from tests.passes.check import before_after, build, i64, noise
from tests.passes.test_affine import conv


def movers(first, perm, last):
    return [
        ("Reshape", ["x", i64(*first)], "a", {"allowzero": 0}),
        ("Transpose", "a", "b", {"perm": perm}),
        ("Reshape", ["b", i64(*last)], "c", {"allowzero": 0}),
        ("Relu", "c", "y"),
    ]


@pytest.mark.parametrize(
    ("shape", "first", "perm"),
    [
        ((2, 6, 4, 5), (2, 2, 3, 4, 5), [0, 2, 1, 3, 4]),
        ((1, 6, 4, 5), (2, 3, 20), [1, 0, 2]),
        ((1, 24, 4, 5), (1, 2, 3, 4, 20), [0, 3, 1, 2, 4]),
        ((2, 6, 7), (2, 3, 2, 7), [0, 2, 1, 3]),
    ],
    ids=["torch", "merged_batch", "three_digits", "rank_3"],
)
def test_channel_shuffle(shape, first, perm):
    model = build({"x": shape}, movers(first, perm, shape), ["y"])
    before_after(model, [RaiseChannelMovers(), MergeMovers()], {"Gather": 1, "Relu": 1})


def test_permutation_of_another_axis_stays():
    model = build({"x": (1, 3, 6, 5)}, movers((1, 3, 2, 3, 5), [0, 1, 3, 2, 4], (1, 3, 6, 5)), ["y"])
    before_after(model, [RaiseChannelMovers()], {"Reshape": 2, "Transpose": 1, "Relu": 1})


def test_shuffle_read_inside_stays():
    nodes = [*movers((1, 2, 3, 4, 5), [0, 2, 1, 3, 4], (1, 6, 4, 5)), ("Sigmoid", "b", "z")]
    before_after(build({"x": (1, 6, 4, 5)}, nodes, ["y", "z"]), [RaiseChannelMovers()])


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("order", list(itertools.permutations("ijc")), ids="".join)
def test_depth_to_space_in_every_channel_order(batch, order):
    sizes = {"i": 2, "j": 2, "c": 3}
    at = {name: 1 + order.index(name) for name in order}
    first = (batch, *(sizes[name] for name in order), 4, 5)
    nodes = movers(first, [0, at["c"], 4, at["i"], 5, at["j"]], (batch, 3, 8, 10))
    plain = order in {("i", "j", "c"), ("c", "i", "j")}
    expect = {"DepthToSpace": 1, "Relu": 1} | ({} if plain else {"Gather": 1})
    before_after(build({"x": (batch, 12, 4, 5)}, nodes, ["y"]), [RaiseChannelMovers()], expect)


@pytest.mark.parametrize("order", list(itertools.permutations("ijc")), ids="".join)
def test_space_to_depth_in_every_channel_order(order):
    at = {"c": 1, "i": 3, "j": 5}
    nodes = movers((2, 3, 4, 2, 5, 2), [0, *(at[name] for name in order), 2, 4], (2, 12, 4, 5))
    expect = {"SpaceToDepth": 1, "Relu": 1} | ({} if order == ("i", "j", "c") else {"Gather": 1})
    before_after(build({"x": (2, 3, 8, 10)}, nodes, ["y"]), [RaiseChannelMovers()], expect)


def test_different_blocks_per_axis_stay():
    nodes = movers((1, 2, 3, 2, 4, 5), [0, 3, 4, 1, 5, 2], (1, 2, 8, 15))
    before_after(
        build({"x": (1, 12, 4, 5)}, nodes, ["y"]), [RaiseChannelMovers()], {"Reshape": 2, "Transpose": 1, "Relu": 1}
    )


def test_one_channel_pixel_shuffle():
    nodes = movers((1, 1, 3, 3, 4, 5), [0, 1, 4, 2, 5, 3], (1, 1, 12, 15))
    before_after(build({"x": (1, 9, 4, 5)}, nodes, ["y"]), [RaiseChannelMovers()], {"DepthToSpace": 1, "Relu": 1})


def focus(order, *, one_slice):
    nodes = []
    for n, (i, j) in enumerate(order):
        if one_slice:
            nodes.append(("Slice", ["x", i64(i, j), i64(8, 10), i64(2, 3), i64(2, 2)], f"s{n}"))
        else:
            nodes.append(("Slice", ["x", i64(i), i64(8), i64(2), i64(2)], f"h{n}"))
            nodes.append(("Slice", [f"h{n}", i64(j), i64(10), i64(3), i64(2)], f"s{n}"))
    return [*nodes, ("Concat", [f"s{n}" for n in range(len(order))], "c", {"axis": 1})]


YOLOV5 = [(0, 0), (1, 0), (0, 1), (1, 1)]
ROWS_FIRST = [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("one_slice", [True, False])
@pytest.mark.parametrize(("order", "gathers"), [(YOLOV5, 1), (ROWS_FIRST, 0), (YOLOV5[:3], 1)])
def test_focus(order, gathers, one_slice):
    model = build({"x": (2, 3, 8, 10)}, [*focus(order, one_slice=one_slice), ("Relu", "c", "y")], ["y"])
    expect = {"SpaceToDepth": 1, "Relu": 1} | ({"Gather": 1} if gathers else {})
    before_after(model, [RaiseConcatOfSlices()], expect)


def test_focus_with_a_slice_read_elsewhere_stays():
    nodes = [*focus(YOLOV5, one_slice=True), ("Relu", "s0", "y")]
    model = before_after(build({"x": (1, 3, 8, 10)}, nodes, ["y", "c"]), [RaiseConcatOfSlices()])
    assert "SpaceToDepth" not in {node.op_type for node in model.graph}


def test_step_over_an_odd_map_is_no_focus():
    nodes = [
        ("Slice", ["x", i64(0), i64(7), i64(2), i64(2)], "a"),
        ("Slice", ["x", i64(0), i64(4), i64(2), i64(1)], "b"),
        ("Concat", ["a", "b"], "y", {"axis": 1}),
    ]
    before_after(build({"x": (1, 3, 7, 10)}, nodes, ["y"]), [RaiseConcatOfSlices()], {"Slice": 2, "Concat": 1})


def test_swapped_halves_are_a_channel_permutation():
    nodes = [("Split", ["x", i64(2, 4)], ["a", "b"], {"axis": 1}), ("Concat", ["b", "a"], "y", {"axis": 1})]
    before_after(build({"x": (2, 6, 3, 4)}, nodes, ["y"]), [RaiseConcatOfSlices()], {"Gather": 1})


def test_split_put_together_again_is_nothing():
    nodes = [("Split", ["x", i64(2, 4)], ["a", "b"], {"axis": 1}), ("Concat", ["a", "b"], "c", {"axis": 1})]
    model = build({"x": (2, 6, 3, 4)}, [*nodes, ("Relu", "c", "y")], ["y"])
    before_after(model, [RaiseConcatOfSlices()], {"Relu": 1})
    model = build(
        {"x": (2, 6, 3, 4)}, [("Relu", "x", "r"), ("Split", ["r", i64(2, 4)], ["a", "b"], {"axis": 1}), nodes[1]], ["c"]
    )
    before_after(model, [RaiseConcatOfSlices()], {"Relu": 1})


@pytest.mark.parametrize("pads", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 2)])
def test_space_to_depth_before_conv_is_one_conv(kernel, stride, pads):
    nodes = [
        ("SpaceToDepth", "x", "a", {"blocksize": 2}),
        conv("a", noise(5, 12, *kernel), "y", bias=noise(5), pads=pads, stride=stride),
    ]
    before_after(build({"x": (2, 3, 8, 12)}, nodes, ["y"]), [FoldSpaceToDepthIntoConv()], {"Conv": 1})


def test_space_to_depth_before_grouped_conv_stays():
    nodes = [("SpaceToDepth", "x", "a", {"blocksize": 2}), conv("a", noise(4, 3, 3, 3), "y", group=4)]
    model = build({"x": (2, 3, 8, 12)}, nodes, ["y"])
    before_after(model, [FoldSpaceToDepthIntoConv()], {"SpaceToDepth": 1, "Conv": 1})


def test_transposes_that_merge_first_still_raise():
    nodes = [
        ("Transpose", "x", "t", {"perm": [0, 2, 3, 1]}),
        ("Transpose", "t", "u", {"perm": [0, 3, 1, 2]}),
        ("Reshape", ["u", i64(2, 2, 3, 20)], "a", {"allowzero": 0}),
        ("Transpose", "a", "b", {"perm": [0, 2, 1, 3]}),
        ("Reshape", ["b", i64(2, 6, 4, 5)], "y", {"allowzero": 0}),
    ]
    before_after(build({"x": (2, 6, 4, 5)}, nodes, ["y"]), [RaiseChannelMovers(), MergeMovers()], {"Gather": 1})
