"""Activations from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.passes.activations import MergeClips, RaiseActivations, RaiseHardSigmoid
from tests.passes.check import before_after, build, noise

X = {"x": [2, 4, 3, 5]}
PASSES = [MergeClips(), RaiseHardSigmoid(), RaiseActivations()]


def f(*numbers):
    return np.array(numbers[0] if len(numbers) == 1 else numbers, dtype=np.float32)


def check(nodes, expect, passes=PASSES):
    return before_after(build(X, nodes, ["y"]), passes, expect, rtol=4e-6)


@pytest.mark.parametrize(
    "tail",
    [
        [("Mul", ["x", "c"], "m"), ("Div", ["m", f(6)], "y")],
        [("Div", ["c", f(6)], "m"), ("Mul", ["m", "x"], "y")],
        [("Mul", ["c", f(1 / 6)], "m"), ("Mul", ["x", "m"], "y")],
        [("Div", ["x", f(6)], "m"), ("Mul", ["c", "m"], "y")],
    ],
    ids=["div_last", "div_gate", "mul_gate", "div_x"],
)
@pytest.mark.parametrize("relu6", [True, False])
def test_hard_swish(tail, relu6):
    clip = [("Clip", ["a", f(0), f(6)], "c")] if relu6 else [("Relu", "a", "r"), ("Min", [f(6), "r"], "c")]
    check([("Add", [f(3), "x"], "a"), *clip, *tail], {"HardSwish": 1})


def test_hard_swish_of_hard_sigmoid():
    nodes = [("HardSigmoid", "x", "g", {"alpha": 1 / 6, "beta": 0.5}), ("Mul", ["g", "x"], "y")]
    check(nodes, {"HardSwish": 1})
    nodes = [("HardSigmoid", "x", "g", {"alpha": 0.2, "beta": 0.5}), ("Mul", ["g", "x"], "y")]
    check(nodes, {"HardSigmoid": 1, "Mul": 1})


def test_hard_swish_needs_its_own_constants():
    nodes = [("Add", ["x", f(3)], "a"), ("Clip", ["a", f(0), f(6)], "c"), ("Mul", ["x", "c"], "m")]
    check([*nodes, ("Div", ["m", f(5)], "y")], {"Add": 1, "Clip": 1, "Mul": 1, "Div": 1})
    check([*nodes[:2], ("Relu", "x", "z"), ("Mul", ["z", "c"], "m"), ("Div", ["m", f(6)], "y")], None)


@pytest.mark.parametrize(
    "nodes",
    [
        [("Add", ["x", f(3)], "a"), ("Clip", ["a", f(0), f(6)], "c"), ("Div", ["c", f(6)], "y")],
        [("Mul", ["x", f(0.2)], "m"), ("Add", [f(0.4), "m"], "a"), ("Clip", ["a", f(0), f(1)], "y")],
        [("Div", ["x", f(6)], "m"), ("Add", ["m", f(0.5)], "a"), ("Relu", "a", "r"), ("Min", ["r", f(1)], "y")],
        [("Sub", ["x", f(1)], "a"), ("Clip", ["a", f(0), f(4)], "c"), ("Mul", ["c", f(0.25)], "y")],
    ],
)
def test_hard_sigmoid(nodes):
    check(nodes, {"HardSigmoid": 1})


def test_no_hard_sigmoid():
    check([("Clip", ["x", f(0), f(1)], "y")], {"Clip": 1})
    check([("Mul", ["x", f(-1)], "a"), ("Clip", ["a", f(0), f(1)], "y")], {"Mul": 1, "Clip": 1})
    nodes = [("Add", ["x", f(3)], "a"), ("Clip", ["a", f(1), f(6)], "c"), ("Div", ["c", f(6)], "y")]
    check(nodes, {"Add": 1, "Clip": 1, "Div": 1})


ERF = [("Div", ["x", f(np.sqrt(2))], "d"), ("Erf", "d", "e"), ("Add", ["e", f(1)], "g")]
CUBE = {
    "pow": [("Pow", ["x", f(3)], "p"), ("Mul", ["p", f(0.044715)], "q"), ("Add", ["x", "q"], "s")],
    "mul": [
        ("Mul", ["x", "x"], "p"),
        ("Mul", ["p", f(0.044715)], "q"),
        ("Add", [f(1), "q"], "r"),
        ("Mul", ["x", "r"], "s"),
    ],
}
TAILS = {
    "x_half_last": [("Mul", ["x", "g"], "m"), ("Mul", ["m", f(0.5)], "y")],
    "half_x_first": [("Mul", ["x", f(0.5)], "m"), ("Mul", ["m", "g"], "y")],
    "half_gate": [("Mul", [f(0.5), "g"], "m"), ("Mul", ["m", "x"], "y")],
}


@pytest.mark.parametrize("tail", TAILS)
def test_gelu(tail):
    check([*ERF, *TAILS[tail]], {"Gelu": 1})


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("cube", CUBE)
def test_gelu_tanh(cube, tail):
    nodes = [*CUBE[cube], ("Mul", ["s", f(np.sqrt(2 / np.pi))], "u"), ("Tanh", "u", "e"), ("Add", ["e", f(1)], "g")]
    model = check([*nodes, *TAILS[tail]], {"Gelu": 1})
    assert next(iter(model.graph)).attributes["approximate"].as_string() == "tanh"


def test_gelu_with_a_rounded_constant_is_another_function():
    nodes = [("Div", ["x", f(1.414)], "d"), *ERF[1:], *TAILS["half_gate"]]
    check(nodes, {"Div": 1, "Erf": 1, "Add": 1, "Mul": 2})


def test_mish_and_softplus():
    check([("Softplus", "x", "s"), ("Tanh", "s", "t"), ("Mul", ["x", "t"], "y")], {"Mish": 1})
    check([("Exp", "x", "e"), ("Add", ["e", f(1)], "a"), ("Log", "a", "y")], {"Softplus": 1})
    spelled = [("Exp", "x", "e"), ("Add", [f(1), "e"], "a"), ("Log", "a", "s"), ("Tanh", "s", "t")]
    check([*spelled, ("Mul", ["t", "x"], "y")], {"Mish": 1})
    check([("Exp", "x", "e"), ("Add", ["e", f(2)], "a"), ("Log", "a", "y")], {"Exp": 1, "Add": 1, "Log": 1})


def test_log_softmax():
    check([("Softmax", "x", "s", {"axis": 1}), ("Log", "s", "y")], {"LogSoftmax": 1})


@pytest.mark.parametrize("last", [("Reciprocal", ["a"], "y"), ("Div", [f(1), "a"], "y")])
def test_sigmoid(last):
    check([("Neg", "x", "n"), ("Exp", "n", "e"), ("Add", ["e", f(1)], "a"), last], {"Sigmoid": 1})
    check([("Exp", "x", "e"), ("Add", ["e", f(1)], "a"), last], {"Exp": 1, "Add": 1, last[0]: 1})


def test_prelu_and_leaky_relu():
    nodes = [("Relu", "x", "p"), ("Neg", "x", "n"), ("Relu", "n", "q"), ("Mul", ["q", -noise(4, 1, 1)], "m")]
    check([*nodes, ("Add", ["p", "m"], "y")], {"PRelu": 1})
    check([("Mul", ["x", f(0.1)], "m"), ("Max", ["x", "m"], "y")], {"LeakyRelu": 1})
    check([("Mul", ["x", f(1.5)], "m"), ("Max", ["x", "m"], "y")], {"Mul": 1, "Max": 1})


@pytest.mark.parametrize(
    ("nodes", "expect"),
    [
        ([("Relu", "x", "a"), ("Clip", ["a", None, f(6)], "y")], {"Clip": 1}),
        ([("Max", ["x", f(-1)], "a"), ("Min", ["a", f(2)], "y")], {"Clip": 1}),
        ([("Max", [f([[0]]), "x"], "y")], {"Relu": 1}),
        ([("Clip", ["x", f(-1), f(1)], "a"), ("Relu", "a", "y")], {"Clip": 1}),
        ([("Clip", ["x", f(2), f(3)], "a"), ("Clip", ["a", f(0), f(1)], "y")], {"Clip": 1}),
        ([("Relu", "x", "a"), ("Relu", "a", "y")], {"Relu": 1}),
        ([("Max", ["x", noise(4, 1, 1)], "y")], {"Max": 1}),
        ([("Max", ["x", np.zeros((1, 1, 1, 1, 1), np.float32)], "y")], {"Max": 1}),
    ],
)
def test_clips(nodes, expect):
    check(nodes, expect, [MergeClips()])


def test_clip_read_inside_stays():
    nodes = [("Relu", "x", "a"), ("Clip", ["a", None, f(1)], "b"), ("Add", ["a", "b"], "y")]
    check(nodes, {"Relu": 1, "Clip": 1, "Add": 1}, [MergeClips()])
