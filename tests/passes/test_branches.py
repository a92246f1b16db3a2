"""SumBranches."""

from __future__ import annotations

import pytest

from onnx2caffe.passes.affine import FoldAffineBehind
from onnx2caffe.passes.branches import SumBranches
from tests.passes.check import before_after, build, noise
from tests.passes.test_affine import bn, conv

X = {"x": [2, 4, 7, 8]}


@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("stride", [1, 2])
def test_repvgg(group, stride):
    nodes = [
        conv("x", noise(4, 4 // group, 3, 3), "a", pads=1, group=group, stride=stride),
        bn("a", "b", 4),
        conv("x", noise(4, 4 // group, 1, 1, seed=1), "c", bias=noise(4), group=group, stride=stride),
        bn("c", "d", 4),
        ("Add", ["d", "b"], "s"),
    ]
    if stride == 1:
        nodes += [bn("x", "i", 4), ("Add", ["i", "s"], "t")]
    nodes += [("Relu", "t" if stride == 1 else "s", "y")]
    model = build(X, nodes, ["y"])
    before_after(model, [FoldAffineBehind(), SumBranches()], {"Conv": 1, "Relu": 1}, rtol=1e-5)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_residual_around_one_conv(group):
    nodes = [conv("x", noise(4, 4 // group, 3, 3), "a", pads=1, group=group), ("Add", ["x", "a"], "y")]
    before_after(build(X, nodes, ["y"]), [SumBranches()], {"Conv": 1})


def test_kernels_of_different_shape():
    wide, tall = noise(4, 4, 3, 5), noise(4, 4, 3, 1)
    nodes = [conv("x", wide, "a"), conv("x", tall, "b"), ("Add", ["a", "b"], "y")]
    nodes[0][3]["pads"], nodes[1][3]["pads"] = [1, 2, 1, 2], [1, 0, 1, 0]
    before_after(build(X, nodes, ["y"]), [SumBranches()], {"Conv": 1})


@pytest.mark.parametrize(
    "nodes",
    [
        [conv("x", noise(4, 4, 3, 3), "a", pads=1), conv("x", noise(4, 1, 3, 3), "b", pads=1, group=4)],
        [conv("x", noise(4, 4, 3, 3), "a", pads=1), ("Relu", "x", "b")],
        [conv("x", noise(4, 4, 3, 3), "a", pads=1), ("Mul", ["x", noise(8)], "b")],
        # neither kernel fits in the other
        [conv("x", noise(4, 4, 5, 1), "a"), conv("x", noise(4, 4, 1, 5), "b")],
    ],
    ids=["groups", "not_linear", "along_w", "crossed"],
)
def test_stays(nodes):
    if nodes[0][1][1].shape[2:] == (5, 1):
        nodes[0][3]["pads"], nodes[1][3]["pads"] = [2, 0, 2, 0], [0, 2, 0, 2]
    model = build(X, [*nodes, ("Add", ["a", "b"], "y")], ["y"])
    before_after(model, [SumBranches()], _count(nodes))


def _count(nodes):
    ops = [node[0] for node in nodes] + ["Add"]
    return {op: ops.count(op) for op in ops}


def test_branch_with_another_reader_stays():
    nodes = [conv("x", noise(4, 4, 3, 3), "a", pads=1), ("Add", ["x", "a"], "y"), ("Relu", "a", "z")]
    before_after(build(X, nodes, ["y", "z"]), [SumBranches()], {"Conv": 1, "Add": 1, "Relu": 1})


def test_keep_bn_keeps_the_identity_branch():
    nodes = [conv("x", noise(4, 4, 3, 3), "a", pads=1), bn("x", "b", 4), ("Add", ["b", "a"], "y")]
    expect = {"Conv": 1, "BatchNormalization": 1, "Add": 1}
    before_after(build(X, nodes, ["y"]), [SumBranches(keep_bn=True)], expect)
    before_after(build(X, nodes, ["y"]), [SumBranches()], {"Conv": 1}, rtol=1e-5)
