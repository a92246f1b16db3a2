"""FoldPad and MergePads."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.pad import FoldPad, MergePads
from tests.passes.check import before_after, build, i64, noise
from tests.passes.test_affine import conv

X = {"x": [2, 4, 7, 8]}
PADS = (0, 0, 1, 2, 0, 0, 1, 0)


def pad(x, y, pads=PADS, value=0.0, mode="constant"):
    return ("Pad", [x, i64(*pads), np.array(value, dtype=np.float32)], y, {"mode": mode})


def pool(op, x, y, *, pads=(0, 0, 0, 0), ceil=0, counted=0, dilations=(1, 1)):
    attributes = {
        "kernel_shape": [3, 3],
        "strides": [2, 2],
        "pads": list(pads),
        "ceil_mode": ceil,
        "dilations": dilations,
    }
    if op == "AveragePool":
        attributes["count_include_pad"] = counted
    else:
        attributes["storage_order"] = 0
    return (op, [x], y, {**attributes, "auto_pad": "NOTSET"})


@pytest.mark.parametrize("own", [0, 1])
def test_zeros_before_conv(own):
    nodes = [pad("x", "a"), conv("a", noise(3, 4, 3, 3), "y", bias=noise(3), pads=own)]
    before_after(build(X, nodes, ["y"]), [FoldPad()], {"Conv": 1})


@pytest.mark.parametrize("op", ["Relu", "Tanh", "HardSwish"])
def test_zeros_before_conv_through_an_op_that_keeps_zero(op):
    nodes = [pad("x", "a"), (op, "a", "b"), conv("b", noise(3, 4, 3, 3), "y")]
    before_after(build(X, nodes, ["y"]), [FoldPad()], {op: 1, "Conv": 1})


@pytest.mark.parametrize(
    "nodes",
    [
        [pad("x", "a"), ("Sigmoid", "a", "b"), conv("b", noise(3, 4, 3, 3), "y")],
        [pad("x", "a", value=1), conv("a", noise(3, 4, 3, 3), "y")],
        [pad("x", "a", mode="reflect"), conv("a", noise(3, 4, 3, 3), "y")],
        [pad("x", "a", (0, 1, 0, 0, 0, 0, 0, 0)), conv("a", noise(3, 5, 3, 3), "y")],
        [pad("x", "a", (0, 0, -1, 0, 0, 0, 1, 0)), conv("a", noise(3, 4, 3, 3), "y")],
    ],
    ids=["sigmoid(0)≠0", "ones", "reflect", "channels", "cut"],
)
def test_not_before_conv(nodes):
    model = before_after(build(X, nodes, ["y"]), [FoldPad()])
    assert "Pad" in {node.op_type for node in model.graph}


def test_pad_with_two_readers_goes_into_the_one_that_can():
    nodes = [pad("x", "a"), conv("a", noise(3, 4, 3, 3), "y"), ("Relu", "a", "z")]
    before_after(build(X, nodes, ["y", "z"]), [FoldPad()], {"Pad": 1, "Conv": 1, "Relu": 1})


def test_average_that_counts_padding():
    before_after(build(X, [pad("x", "a"), pool("AveragePool", "a", "y")], ["y"]), [FoldPad()], {"AveragePool": 1})
    nodes = [pad("x", "a"), pool("AveragePool", "a", "y", pads=(1, 0, 1, 0), counted=1)]
    before_after(build(X, nodes, ["y"]), [FoldPad()], {"AveragePool": 1})


@pytest.mark.parametrize(
    ("options", "pads"),
    [
        # its own padding is not counted, the Pad's zeros are
        ({"pads": (1, 1, 1, 1)}, PADS),
        # ceil sizes are derived from the map without padding
        ({"ceil": 1}, PADS),
        # onnxruntime wants pads smaller than the kernel
        ({}, (0, 0, 3, 0, 0, 0, 0, 0)),
    ],
    ids=["own_excluded", "ceil", "kernel"],
)
def test_average_that_must_keep_the_pad(options, pads):
    nodes = [pad("x", "a", pads), pool("AveragePool", "a", "y", **options)]
    before_after(build(X, nodes, ["y"]), [FoldPad()], {"Pad": 1, "AveragePool": 1})


def test_lowest_before_max():
    for lowest in (-np.inf, np.finfo(np.float32).min):
        nodes = [pad("x", "a", value=lowest), pool("MaxPool", "a", "y")]
        before_after(build(X, nodes, ["y"]), [FoldPad()], {"MaxPool": 1})


def test_zeros_before_max_of_what_is_not_negative():
    nodes = [("Relu", "x", "r"), pad("r", "a"), pool("MaxPool", "a", "y")]
    before_after(build(X, nodes, ["y"]), [FoldPad()], {"Relu": 1, "MaxPool": 1})
    clip = ("Clip", ["x", np.array(0, np.float32), np.array(6, np.float32)], "r")
    nodes = [clip, ("Concat", ["r", "r"], "k", {"axis": 1}), pad("k", "a"), pool("MaxPool", "a", "y")]
    before_after(build(X, nodes, ["y"]), [FoldPad()], {"Clip": 1, "Concat": 1, "MaxPool": 1})


@pytest.mark.parametrize(
    "nodes",
    [
        [pad("x", "a"), pool("MaxPool", "a", "y")],
        [("LeakyRelu", "x", "r", {"alpha": 0.1}), pad("r", "a"), pool("MaxPool", "a", "y")],
        [("Relu", "x", "r"), pad("r", "a"), pool("MaxPool", "a", "y", dilations=(2, 2))],
    ],
    ids=["any_sign", "leaky", "dilated"],
)
def test_zeros_before_max_that_must_stay(nodes):
    model = before_after(build(X, nodes, ["y"]), [FoldPad()])
    assert "Pad" in {node.op_type for node in model.graph}


def test_pads_add_up():
    nodes = [pad("x", "a"), pad("a", "y", (0, 1, 0, 1, 0, 0, 2, 0))]
    before_after(build(X, nodes, ["y"]), [MergePads()], {"Pad": 1})
    nodes = [pad("x", "a"), pad("a", "y", value=1)]
    before_after(build(X, nodes, ["y"]), [MergePads()], {"Pad": 2})
