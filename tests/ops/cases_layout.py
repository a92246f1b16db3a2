"""Reshape, Transpose, slices, index lists and other movers."""

from __future__ import annotations

import itertools

import numpy as np
from onnx import helper, numpy_helper

from tests.ops.harness import FLOAT, Case, In, constant, ints

_LAST = 2**63 - 1


def _slice(shape, starts, ends, axes, steps, **rest):
    return Case("Slice", 13, (shape, ints(*starts), ints(*ends), ints(*axes), ints(*steps)), **rest)


def _unread_part(batch: int, *rest: int):
    split = helper.make_node("Split", ["x", "sizes"], ["a", "b", "c"], axis=1)
    add = helper.make_node("Add", ["a", "c"], ["y"])
    x = helper.make_tensor_value_info("x", FLOAT, (batch, 6, *rest))
    sizes = numpy_helper.from_array(ints(2, 2, 2), "sizes")
    y = helper.make_tensor_value_info("y", FLOAT, (batch, 2, *rest))
    graph = helper.make_graph([split, add], "unread", [x], [y], [sizes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


_RESHAPES = [
    Case("Reshape", 13, ((2, 4, 3, 3), ints(0, 2, -1, 3))),
    Case("Reshape", 13, ((1, 4, 3, 3), ints(4, 9))),
    Case("Reshape", 13, ((1, 6, 4, 4), ints(3, 2, 4, 4))),
    Case("Reshape", 13, ((2, 12), ints(1, 2, 2, 3, 1, 2))),
    Case("Reshape", 13, ((1, 1, 1, 1), np.zeros(0, np.int64))),
    Case("Flatten", 13, ((2, 3, 4, 5),), {"axis": 2}),
    Case("Flatten", 13, ((2, 3, 4, 5),), {"axis": 0}),
    Case("Squeeze", 13, ((2, 3, 1, 1), ints(-1, -2))),
    Case("Unsqueeze", 13, ((2, 3), ints(0, 3))),
]

_TRANSPOSES = [
    *(Case("Transpose", 13, ((2, 3),), {"perm": p}) for p in [(0, 1), (1, 0)]),
    *(Case("Transpose", 13, ((2, 3, 4),), {"perm": p}) for p in itertools.permutations(range(3))),
    *(Case("Transpose", 13, ((2, 3, 4, 5),), {"perm": p}) for p in itertools.permutations(range(4))),
    *(
        Case("Transpose", 13, ((2, 3, 2, 3, 4),), {"perm": p})
        for p in [(0, 1, 3, 4, 2), (4, 3, 2, 1, 0), (0, 2, 1, 4, 3), (1, 4, 0, 3, 2), (0, 2, 1, 3, 4)]
    ),
    Case("Transpose", 13, ((1, 3, 2, 2, 4, 3),), {"perm": (0, 1, 4, 2, 5, 3)}),
    Case("Transpose", 13, ((2, 3, 2, 3, 2, 3),), {"perm": (5, 3, 1, 4, 2, 0)}),
    Case("Transpose", 13, ((1, 3, 1, 5),), {"perm": (3, 2, 0, 1)}),
    Case("Transpose", 13, ((3, 1, 5),), {"perm": (1, 0, 2)}),
]

_SLICES = [
    _slice((1, 6, 4, 4), [1], [3], [1], [1]),
    _slice((2, 6, 4), [-4], [-1], [1], [1]),
    _slice((2, 4, 8, 4), [4], [_LAST], [2], [1]),
    _slice((1, 4, 8, 8), [1, 2], [7, 6], [2, 3], [1, 1]),
    _slice((2, 4, 8, 7), [0, 1, 2, 3], [1, 4, 8, 7], [0, 1, 2, 3], [1, 1, 1, 1]),
    _slice((2, 4, 8, 4), [1], [_LAST], [2], [2]),
    _slice((2, 3, 8, 9), [0, 1], [_LAST, _LAST], [2, 3], [2, 2]),
    _slice((2, 3, 8, 9), [0, 1], [_LAST, 7], [2, 3], [1, 3]),
    _slice((2, 7, 3, 3), [0], [_LAST], [1], [2]),
    _slice((2, 8, 3), [1], [_LAST], [1], [4]),
    _slice((5, 3), [4], [0], [0], [-2]),
    _slice((2, 5, 3, 3), [-1], [-_LAST], [1], [-1]),
    _slice((2, 3, 4, 5), [-1, -1], [-_LAST, -_LAST], [2, 3], [-1, -1]),
    _slice((2, 3, 4, 37), [-1], [-_LAST], [3], [-1]),
    _slice((2, 3, 40, 2), [38], [2], [2], [-3]),
    _slice((2, 3), [1], [2], [1], [1]),
    _slice((2, 3), [0], [_LAST], [1], [1]),
    _slice((6,), [1], [5], [0], [2]),
    _slice((2, 3), [1], [1], [1], [1], refused={"caffe": "empty|size 0|nothing", "bvlc": "empty|size 0|nothing"}),
]

_SPLITS = [
    Case("Split", 13, ((2, 6, 4, 4), ints(1, 2, 3)), {"axis": 1}, 3),
    Case("Split", 11, ((2, 6, 4),), {"axis": -1}, 2),
    Case("Split", 18, ((1, 5, 4, 4),), {"axis": 1, "num_outputs": 2}, 2),
    Case("Split", 13, ((2, 4), ints(4)), {"axis": 1}, 1),
    Case("Split", 13, ((4, 3), ints(1, 3)), {"axis": 0}, 2),
    *(
        Case("Split", 13, id=f"Split-unread-part-{rest}", model=_unread_part(*rest))
        for rest in ((2, 2), (1, 7, 8), (1, 8, 7))
    ),
]

_CONCATS = [
    *(Case("Concat", 13, ((2, 3, 4, 5), (2, 3, 4, 5)), {"axis": a}) for a in (0, 1, -2, 3)),
    Case("Concat", 13, ((2, 4), (2, 1), (2, 3)), {"axis": 1}),
    Case("Concat", 13, ((1, 4, 3, 3), constant(1, 2, 3, 3)), {"axis": 1}),
    Case("Concat", 13, (np.full((2, 1, 3), 0.5, np.float32), (2, 4, 3)), {"axis": 1}),
    Case("Concat", 13, ((2, 4, 3),), {"axis": 1}),
    Case("Concat", 13, ((2, 4, 3), np.zeros((2, 0, 3), np.float32)), {"axis": 1}),
]

_GATHERS = [
    Case("Gather", 13, ((2, 4, 3, 3), ints(2, 0, 1)), {"axis": 1}),
    Case("Gather", 13, ((2, 4, 6), np.array(-2, np.int64)), {"axis": 1}),
    Case("Gather", 13, ((2, 4, 6), np.array([[0, 5], [2, 2]], np.int64)), {"axis": 2}),
    Case("Gather", 13, ((4, 6), np.array(3, np.int64)), {"axis": 0}),
    Case("Gather", 13, ((2, 3, 7, 8), ints(1, 3, 5)), {"axis": 2}),
    Case("Gather", 13, ((2, 3, 8, 7), ints(0, 3, 6)), {"axis": 3}),
    Case("Gather", 13, ((2, 6, 3, 3), ints(0, 3, 1, 4, 2, 5)), {"axis": 1}, id="Gather-shuffle"),
    Case("Gather", 13, ((2, 12), ints(*np.arange(12).reshape(3, 4).T.ravel())), {"axis": 1}, id="Gather-shuffle2d"),
    Case("Gather", 13, ((2, 3, 12), ints(*np.arange(12).reshape(3, 4).T.ravel())), {"axis": 2}, id="Gather-stride"),
    Case("Gather", 13, ((2, 4, 3), ints(*np.repeat(np.arange(4), 3))), {"axis": 1}, id="Gather-repeat"),
    Case("Gather", 13, ((2, 4, 3), ints(*np.tile(np.arange(4), 3))), {"axis": 1}, id="Gather-tile"),
    Case("Gather", 13, ((2, 40, 3), ints(*np.random.default_rng(0).permutation(40))), {"axis": 1}, id="Gather-random"),
    Case("Gather", 13, ((2, 3, 5, 40), ints(*np.random.default_rng(0).permutation(40))), {"axis": 3}, id="Gather-w"),
    Case("Gather", 13, (constant(9, 5), In((2, 3), "int64", -9, 8)), {"axis": 0}),
    Case("Gather", 13, (constant(9, 5), In((), "int64", 0, 8)), {"axis": 0}),
    Case("Gather", 13, (constant(3, 9, 2), In((2, 4), "int64", 0, 8)), {"axis": 1}),
    Case(
        "Gather",
        13,
        ((4, 6), In((3,), "int64", 0, 3)),
        {"axis": 0},
        refused={"caffe": "constant", "bvlc": "constant"},
    ),
    Case("GatherElements", 13, ((3, 4), np.array([[0, 1, 2, 0], [-1, 0, 1, 2]], np.int64)), {"axis": 0}),
    Case("GatherElements", 13, ((2, 3, 4), np.array([[[3, 0, 0]], [[1, 2, 2]]], np.int64)), {"axis": 2}),
    Case("GatherND", 13, ((2, 3, 4), np.array([[0, 1], [1, -1]], np.int64))),
    Case("GatherND", 13, ((2, 3, 4), np.array([[1], [0]], np.int64)), {"batch_dims": 1}),
    Case("ReverseSequence", 10, ((4, 3, 2), ints(4, 1, 3)), {"time_axis": 0, "batch_axis": 1}),
    Case("Compress", 11, ((2, 5, 3), np.array([True, False, True, True, False])), {"axis": 1}),
    Case("Compress", 11, ((2, 3), np.array([True, False, True, True, False, True]))),
]

_SCATTERS = [
    Case("ScatterND", 16, ((4, 5), np.array([[1], [3]], np.int64), (2, 5))),
    Case("ScatterND", 16, (np.zeros((4, 5), np.float32), np.array([[0, 1], [3, 4]], np.int64), (2,))),
    Case(
        "ScatterND",
        16,
        ((2, 3, 4), np.array([[[0, 1], [0, 2]], [[1, 1], [1, 2]]], np.int64), (2, 2, 4)),
        id="ScatterND-range",
    ),
    *(
        Case("ScatterND", 18, ((4, 5), np.array([[1], [3]], np.int64), (2, 5)), {"reduction": r})
        for r in ("add", "mul", "max", "min")
    ),
    Case(
        "ScatterND",
        18,
        ((4, 5), np.array([[1], [1]], np.int64), (2, 5)),
        {"reduction": "add"},
        refused={"caffe": "reduction 'add'", "bvlc": "reduction 'add'"},
    ),
    Case("ScatterElements", 16, ((3, 4), np.array([[2, 0, 1, 2]], np.int64), (1, 4)), {"axis": 0}),
    Case("ScatterElements", 16, ((2, 3, 4), np.full((2, 3, 1), 2, np.int64), (2, 3, 1)), {"axis": -1}),
]

_ONE_HOTS = [
    Case("OneHot", 11, (In(shape, dtype, low, 6), np.array(5, dtype), constant(2)), {"axis": axis})
    for shape, dtype, low in [((2, 3), "int64", -7), ((4,), "int32", 0), ((1, 2, 3), "int64", 0)]
    for axis in (-1, 0, 1)
]

_REPEATS = [
    Case("Expand", 13, ((1, 3, 1, 1), ints(2, 3, 4, 5))),
    Case("Expand", 13, ((3, 1), ints(2, 1, 4))),
    Case("Expand", 13, ((2, 3), ints(1, 1))),
    Case("Tile", 13, ((2, 3, 4), ints(2, 1, 3))),
    Case("Tile", 13, ((2, 3), ints(1, 1))),
]

_BLOCKS = [
    *(
        Case("DepthToSpace", 13, ((n, b * b * 3, 2, 3),), {"blocksize": b, "mode": m})
        for n, b, m in itertools.product((1, 2), (1, 2, 3), ("DCR", "CRD"))
    ),
    *(Case("SpaceToDepth", 13, ((n, 3, 6, 12),), {"blocksize": b}) for n, b in itertools.product((1, 2), (1, 2, 3))),
    Case("Col2Im", 18, ((2, 12, 12), ints(4, 5), ints(2, 2))),
    Case("Col2Im", 18, ((1, 18, 12), ints(6, 7), ints(3, 3)), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("Col2Im", 18, ((1, 4, 10), ints(4, 5), ints(2, 2)), {"pads": [0, 0, 1, 1], "strides": [2, 1]}),
    Case("Col2Im", 18, ((1, 8, 6), ints(4, 4), ints(2, 2)), {"dilations": [2, 1]}),
]

_OTHERS = [
    Case("CenterCropPad", 18, ((2, 3, 7, 5), ints(4, 8)), {"axes": [2, 3]}),
    Case("CenterCropPad", 18, ((3, 4), ints(5, 3))),
    *(
        Case("Trilu", 14, ((2, 3, 4), np.array(k, np.int64)), {"upper": u})
        for k, u in [(0, 1), (1, 0), (-1, 1), (-1, 0)]
    ),
    *(
        Case("CumSum", 14, ((2, 5, 3, 4), np.array(a, np.int64)), {"exclusive": e, "reverse": r})
        for a, e, r in [(0, 0, 0), (1, 1, 0), (2, 0, 1), (-1, 1, 1)]
    ),
]

CASES = [
    *_RESHAPES, *_TRANSPOSES, *_SLICES, *_SPLITS, *_CONCATS, *_GATHERS, *_SCATTERS, *_ONE_HOTS, *_REPEATS, *_BLOCKS,
    *_OTHERS,
]  # fmt: skip
