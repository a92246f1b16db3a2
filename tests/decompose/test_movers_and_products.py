"""The numpy-only mathematics behind layout and matrix products, against numpy itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnx2caffe.decompose.einsum import parse, roles
from onnx2caffe.decompose.matmul import product
from onnx2caffe.decompose.strided import View, nest, view

_SOURCE = np.arange(120).reshape(2, 3, 4, 5)
_VIEWS = {
    "transpose": _SOURCE.transpose(0, 2, 3, 1),
    "range": _SOURCE[:, 1:2, ::2],
    "flip": _SOURCE[:, ::-1],
    "shuffle": np.arange(12).reshape(3, 4).T,
    "repeat": np.repeat(np.arange(5), 3),
    "tile": np.tile(np.arange(5), 3),
    "step": np.arange(8)[::-2],
    "one": np.array([3]),
}


def _read(seen: View, size: int) -> np.ndarray:
    """What a view's own description gives, step by step."""
    x = np.arange(size).reshape([radix.size for radix in seen.axes])
    for axis, radix in enumerate(seen.axes):
        x = x.take(range(radix.start, radix.start + radix.count), axis)
        x = np.flip(x, axis) if radix.backwards else x
    moved = [loop for loop in seen.loops if loop is not None]
    fixed = [axis for axis in range(len(seen.axes)) if axis not in moved]
    ones = [1 if loop is None else count for loop, count in zip(seen.loops, seen.counts, strict=True)]
    return np.broadcast_to(x.transpose([*moved, *fixed]).reshape(ones), seen.counts)


@pytest.mark.parametrize("wanted", _VIEWS.values(), ids=_VIEWS)
def test_views_are_found(wanted) -> None:
    loops = nest(wanted)
    assert loops
    seen = view(loops, 120)
    assert seen
    np.testing.assert_array_equal(_read(seen, 120).ravel(), wanted.ravel())


@given(st.lists(st.integers(0, 23), min_size=1, max_size=24))
def test_a_view_is_right_or_none(indices) -> None:
    loops = nest(np.array(indices))
    seen = view(loops, 24) if loops else None
    if seen:
        assert _read(seen, 24).ravel().tolist() == indices


def test_strides_that_do_not_divide_have_no_view() -> None:
    loops = nest(_SOURCE[..., ::2])
    assert loops
    assert view(loops, 120) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (2, 4, 5))],
)
def test_product_sizes(a, b) -> None:
    sizes = product(a, b)
    assert sizes.result == np.matmul(np.ones(a), np.ones(b)).shape
    left = np.ones(a).reshape(*sizes.left, sizes.rows, sizes.inner)
    right = np.ones(b).reshape(*sizes.right, sizes.inner, sizes.columns)
    assert (left @ right).shape == (*sizes.batch, sizes.rows, sizes.columns)


def test_einsum_labels() -> None:
    equation = parse("b...c, cd -> b...d", [(2, 3, 4, 5), (5, 6)])
    assert [len(term) for term in equation.terms] == [4, 2]
    assert [equation.sizes[label] for label in equation.result] == [2, 3, 4, 6]
    assert parse("ij,jk", [(2, 3), (3, 4)]).result == ("i", "k")
    plan = roles(tuple("bij"), tuple("bjk"), "bik")
    assert (plan.batch, plan.inner, plan.first, plan.second) == (("b",), ("j",), ("i",), ("k",))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ik", [(2, 3)]),
        ("ij,jk", [(2, 3)]),
        ("ij", [(2, 3, 4)]),
        ("ij,jk->ik", [(2, 3), (4, 5)]),
        ("i-j", [(2, 3)]),
    ],
)
def test_einsum_refuses_what_is_no_equation(equation, shapes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(equation, shapes)
