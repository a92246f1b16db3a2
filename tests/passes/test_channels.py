"""AbsorbChannelOrder and MergeGathers."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.channels import AbsorbChannelOrder, MergeGathers
from onnx2caffe.passes.dense import NormalizeGemm
from tests.passes.check import before_after, build, i64, noise
from tests.passes.test_affine import bn, conv, deconv
from tests.passes.test_pad import pool

X = {"x": [2, 6, 8, 8]}
ORDER = i64(3, 0, 4, 1, 5, 2)


def gather(x, y, order=ORDER):
    return ("Gather", [x, order], y, {"axis": 1})


@pytest.mark.parametrize("bias", [None, noise(6)], ids=["no_bias", "bias"])
@pytest.mark.parametrize("between", [[], ["Relu"], ["Relu", "MaxPool", "Sigmoid"]], ids=len)
@pytest.mark.parametrize("linear", [conv, deconv], ids=["conv", "deconv"])
def test_behind(linear, between, bias):
    nodes, last = [linear("x", noise(6, 6, 3, 3), "a", bias=bias)], "a"
    for i, op in enumerate(between):
        nodes.append(pool(op, last, f"v{i}") if op == "MaxPool" else (op, last, f"v{i}"))
        last = f"v{i}"
    expect = {nodes[0][0]: 1, **dict.fromkeys(between, 1), "Softmax": 1}
    nodes += [gather(last, "g"), ("Softmax", "g", "y", {"axis": 3})]
    before_after(build(X, nodes, ["y"]), [AbsorbChannelOrder()], expect)


@pytest.mark.parametrize("linear", [conv, deconv], ids=["conv", "deconv"])
def test_before(linear):
    nodes = [gather("x", "g"), ("Relu", "g", "r"), linear("r", noise(6, 6, 3, 3), "y", bias=noise(6))]
    before_after(build(X, nodes, ["y"]), [AbsorbChannelOrder()], {"Relu": 1, nodes[-1][0]: 1})


@pytest.mark.parametrize(
    ("pads", "left"), [((0, 0, 1, 2, 0, 0, 1, 0), 0), ((0, 1, 0, 0, 0, -1, 0, 0), 1)], ids=["map", "channels"]
)
def test_before_a_pad(pads, left):
    nodes = [gather("x", "g"), ("Pad", ["g", i64(*pads)], "p", {"mode": "constant"}), conv("p", noise(6, 6, 3, 3), "y")]
    before_after(
        build(X, nodes, ["y"]), [AbsorbChannelOrder()], {"Conv": 1, "Pad": 1} | ({"Gather": 1} if left else {})
    )


def test_before_several_dense_ops():
    nodes = [gather("x", "g"), conv("g", noise(3, 6, 3, 3), "y"), conv("g", noise(4, 6, 1, 1), "z")]
    before_after(build(X, nodes, ["y", "z"]), [AbsorbChannelOrder()], {"Conv": 2})


def test_around_gemm():
    nodes = [("MatMul", ["x", noise(5, 6)], "a"), gather("a", "g"), ("Relu", "g", "y")]
    model = build({"x": [3, 5]}, nodes, ["y"])
    before_after(model, [NormalizeGemm(), AbsorbChannelOrder()], {"Gemm": 1, "Relu": 1})


@pytest.mark.parametrize(
    "nodes",
    [
        # groups cannot mix channels
        [conv("x", noise(6, 3, 3, 3), "a", group=2), gather("a", "g"), ("Softmax", "g", "y", {"axis": 3})],
        [gather("x", "g"), conv("g", noise(6, 1, 3, 3), "y", group=6)],
        # repeats and drops channels
        [conv("x", noise(6, 6, 3, 3), "a"), gather("a", "g", i64(0, 0, 1)), ("Relu", "g", "y")],
        # numbers per channel in between
        [conv("x", noise(6, 6, 3, 3), "a"), bn("a", "b", 6), gather("b", "y")],
        # another reader sees the old order
        [conv("x", noise(6, 6, 3, 3), "a"), gather("a", "g"), ("Concat", ["a", "g"], "y", {"axis": 1})],
        [gather("x", "g"), conv("g", noise(6, 6, 1, 1), "a"), ("Add", ["a", "g"], "y")],
        # not the channel axis
        [conv("x", noise(6, 6, 1, 1), "a"), ("Gather", ["a", i64(*range(7, -1, -1))], "y", {"axis": 2})],
    ],
    ids=["group_before", "group_behind", "selection", "bn", "reader", "reader_of_gather", "axis"],
)
def test_stays(nodes):
    model = before_after(build(X, nodes, ["y"]), [AbsorbChannelOrder()])
    assert "Gather" in {node.op_type for node in model.graph}


def test_gather_of_gather():
    before_after(build(X, [gather("x", "a"), gather("a", "y", i64(4, 4, 0))], ["y"]), [MergeGathers()], {"Gather": 1})
    nodes = [gather("x", "a"), ("Gather", ["a", np.array(2)], "y", {"axis": 1})]
    before_after(build(X, nodes, ["y"]), [MergeGathers()], {"Gather": 1})
    nodes = [gather("x", "a"), ("Gather", ["a", i64(1)], "y", {"axis": 2})]
    before_after(build(X, nodes, ["y"]), [MergeGathers()], {"Gather": 2})
