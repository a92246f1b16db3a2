"""Groups of tensors that fit into memory."""

from __future__ import annotations

from onnx2caffe.verify.rounds import rounds

SHAPES = {"d": (), "c": (2, 3), "b": (5,), "a": (2, 2)}
ORDER = {"a": 0, "b": 1, "c": 2}


def test_groups_keep_the_order_and_the_limit() -> None:
    assert list(rounds(SHAPES, ORDER, 10)) == [["a", "b"], ["c", "d"]]


def test_a_tensor_beyond_the_limit_is_alone() -> None:
    assert list(rounds(SHAPES, ORDER, 5)) == [["a"], ["b"], ["c"], ["d"]]


def test_a_size_that_depends_on_data_counts_as_one() -> None:
    assert list(rounds({"a": (-1, 3), "b": (4,), "c": (4,)}, ORDER, 7)) == [["a", "b"], ["c"]]


def test_nothing_makes_no_group() -> None:
    assert list(rounds({}, ORDER, 5)) == []
