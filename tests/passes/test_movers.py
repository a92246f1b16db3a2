"""MergeMovers, and the block normal form under it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx2caffe.decompose.transpose import Blocks, Digits, invert, spell
from onnx2caffe.passes.movers import MergeMovers
from tests.passes.check import before_after, build, i64

SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=5).map(tuple)


def apply(steps, array):
    for op, numbers in steps:
        array = array.reshape(numbers) if op == "Reshape" else array.transpose(numbers)
    return array


@given(SHAPES, st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_chain_of_movers_has_the_index_map_of_its_blocks(shape, random):
    array = np.arange(math.prod(shape)).reshape(shape)
    blocks, moved = Blocks((), ()), array
    for _ in range(3):
        perm = random.sample(range(moved.ndim), moved.ndim)
        joined = blocks.then(Blocks.of(moved.shape, perm))
        if joined is None:
            return
        blocks, moved = joined, moved.transpose(perm)
        cut = random.randint(0, moved.ndim)
        moved = moved.reshape(*moved.shape[:cut], 1, -1)
    flat = blocks.indices() if blocks.moves else np.arange(array.size)
    assert np.array_equal(array.ravel()[flat], moved.ravel())
    spelled = apply(spell(blocks, shape, moved.shape), array)
    assert np.array_equal(spelled, moved)
    digits = Digits.of(blocks, shape, moved.shape)
    if digits is not None:
        order = [i for axis in digits.target for i in axis]
        assert np.array_equal(array.reshape(digits.sizes).transpose(order).ravel(), moved.ravel())


@given(SHAPES, st.randoms(use_true_random=False), st.sampled_from([1, 2, 3, 4, 6, 12]))
@settings(max_examples=300, deadline=None)
def test_split_at_finds_exactly_the_independent_maps(shape, random, rows):
    blocks = Blocks.of(shape, random.sample(range(len(shape)), len(shape)))
    size = math.prod(shape)
    if not blocks.moves or size % rows:
        return
    table = blocks.indices().reshape(rows, -1)
    row, column = divmod(table, size // rows)
    independent = bool((row == row[:, :1]).all() and (column == column[:1]).all())
    parts = blocks.split_at(rows)
    assert (parts is not None) == independent
    if parts is not None and parts[1].moves:
        assert np.array_equal(parts[1].indices(), column[0])


def test_invert_undoes_every_order():
    for perm in itertools.permutations(range(4)):
        assert [perm[i] for i in invert(perm)] == [0, 1, 2, 3]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("nodes", "expect"),
    [
        ([("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}), ("Transpose", "a", "b", {"perm": [0, 3, 1, 2]})], {}),
        (
            [("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}), ("Transpose", "a", "b", {"perm": [0, 2, 1, 3]})],
            {"Transpose": 1},
        ),
        (
            [
                ("Reshape", ["x", i64(-1, 3, 20)], "a", {"allowzero": 0}),
                ("Transpose", "a", "c", {"perm": [0, 2, 1]}),
                ("Reshape", ["c", i64(-1, 4, 5, 3)], "b", {"allowzero": 0}),
            ],
            {"Transpose": 1},
        ),
        (
            [
                ("Reshape", ["x", i64(-1, 60)], "a", {"allowzero": 0}),
                ("Reshape", ["a", i64(-1, 4, 15)], "b", {"allowzero": 0}),
            ],
            {"Reshape": 1},
        ),
        ([("Reshape", ["x", i64(-1, 3, 4, 5)], "b", {"allowzero": 0})], {}),
        (
            [
                ("Reshape", ["x", i64(-1, 3, 1, 20)], "a", {"allowzero": 0}),
                ("Transpose", "a", "b", {"perm": [0, 2, 1, 3]}),
            ],
            {"Reshape": 1},
        ),
        (
            [("Reshape", ["x", i64(-1, 3, 20)], "a", {"allowzero": 0}), ("Transpose", "a", "b", {"perm": [0, 2, 1]})],
            {"Reshape": 1, "Transpose": 1},
        ),
    ],
    ids=["pair", "joined", "reshapes_around", "reshapes", "same_shape", "size_one_axis", "kept"],
)
def test_chains(batch, nodes, expect):
    model = build({"x": [batch, 3, 4, 5]}, [*nodes, ("Relu", "b", "y")], ["y"])
    before_after(model, [MergeMovers()], {**expect, "Relu": 1})


def test_chain_down_to_an_output_keeps_the_output():
    nodes = [("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}), ("Transpose", "a", "y", {"perm": [0, 3, 1, 2]})]
    before_after(build({"x": [2, 3, 4, 5]}, nodes, ["y"]), [MergeMovers()], {})


def test_value_inside_with_other_readers_stays():
    nodes = [
        ("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}),
        ("Transpose", "a", "b", {"perm": [0, 3, 1, 2]}),
        ("Relu", "b", "y"),
        ("Sigmoid", "a", "z"),
    ]
    model = before_after(build({"x": [2, 3, 4, 5]}, nodes, ["y", "z"]), [MergeMovers()])
    assert [node.op_type for node in model.graph] == ["Transpose", "Relu", "Sigmoid"]


def test_joining_two_transposes_is_no_gain_while_the_first_is_read():
    nodes = [
        ("Transpose", "x", "a", {"perm": [0, 2, 3, 1]}),
        ("Transpose", "a", "y", {"perm": [0, 2, 1, 3]}),
        ("Sigmoid", "a", "z"),
    ]
    model = build({"x": [2, 3, 4, 5]}, nodes, ["y", "z"])
    before_after(model, [MergeMovers()], {"Transpose": 2, "Sigmoid": 1})
