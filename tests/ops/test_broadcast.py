"""The broadcasting plan against numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onnx2caffe.decompose.broadcast import Broadcast, collapse, span

RESULT = st.lists(st.integers(1, 4), max_size=5).map(tuple)


@st.composite
def operands(draw):
    """Shapes that broadcast: parts of one shape with some axes 1."""
    full = draw(RESULT)
    shapes = []
    for _ in range(draw(st.integers(1, 3))):
        kept = tuple(draw(st.sampled_from([1, size])) for size in full)
        shapes.append(kept[draw(st.integers(0, len(kept))) :])
    return shapes


@given(operands())
def test_plan_lines_operands_up(shapes) -> None:
    plan = Broadcast.of(*shapes)
    assert plan.shape == np.broadcast_shapes(*shapes)
    for i, shape in enumerate(shapes):
        factors = [plan.shape[a] if a in plan.repeats(i) else 1 for a in range(len(plan.shape))]
        array = np.arange(np.prod(shape, dtype=int)).reshape(plan.aligned[i])
        assert np.array_equal(np.tile(array, factors), np.broadcast_to(array.reshape(shape), plan.shape))


@given(operands())
def test_gaps_make_an_operand_fit_a_range_of_axes(shapes) -> None:
    plan = Broadcast.of(*shapes)
    for i, aligned in enumerate(plan.aligned):
        first, stop = span(aligned)
        filled = [plan.shape[a] if a in plan.gaps(i) else size for a, size in enumerate(aligned)]
        assert tuple(filled[first:stop]) == plan.shape[first:stop]
        assert set(aligned[:first] + aligned[stop:]) <= {1}


@given(operands(), st.integers(0, 9))
def test_collapse_keeps_the_values_and_no_axis_without_change(shapes, seed) -> None:
    small = np.random.default_rng(seed).random(shapes[0])
    full = np.broadcast_to(small, np.broadcast_shapes(*shapes))
    result = collapse(full)
    assert np.array_equal(np.broadcast_to(result, full.shape), full)
    assert result.size <= small.size
