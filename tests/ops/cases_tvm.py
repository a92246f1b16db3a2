"""What needs no Caffe layer: rows for the TVM dialects alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.ops.harness import FLOAT, Array, Case, In, Shape


def _row(
    op: str, opset: int, *inputs: Shape | In | Array | None, outputs: int = 1, name: str = "", **attributes: Any
) -> Case:
    return Case(op, opset, inputs, attributes, outputs, id=name and f"{op}{opset}-{name}", targets=())


def _index(shape: Shape, size: int) -> In:
    """Indices of an axis, negative ones too."""
    return In(shape, "int64", -size, size - 1)


def _extreme_of_least(last: int) -> Case:
    """ArgMax of rows in which nothing is larger than the least number of the type."""
    least = np.array([[-np.inf, -np.inf, -np.inf], [0, -np.inf, 0]], np.float32)
    nodes = [
        helper.make_node("Min", ["x", "least"], ["low"]),
        helper.make_node("ArgMax", ["low"], ["y"], name="node", axis=1, select_last_index=last),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, (2, 3))
    graph = helper.make_graph(
        nodes, "case", [x], [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(least, "least")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return Case("ArgMax", 13, id=f"ArgMax-least-last{last}", model=model, targets=())


INDICES = [
    *(_row("GatherElements", 13, (3, 4, 5), _index((2, 4, 3), 3), axis=axis) for axis in (0, 2)),
    _row("GatherElements", 13, In((3, 4), "int64"), _index((3, 6), 4), axis=-1, name="integers"),
    _row("GatherElements", 13, In((3, 4), "bool"), _index((3, 6), 4), axis=1, name="booleans"),
    _row("GatherND", 13, (3, 4, 5), _index((2, 6, 1), 3)),
    _row("GatherND", 13, (3, 4, 5), _index((3, 2, 1), 4), batch_dims=1),
    _row("GatherND", 13, (2, 3, 4, 5), _index((2, 3, 4, 2), 4), batch_dims=2),
    *(
        _row("ScatterElements", 18, (3, 4), _index((2, 4), 3), (2, 4), axis=0, reduction=reduction)
        for reduction in ("none", "add", "mul", "max", "min")
    ),
    _row("ScatterElements", 18, In((2, 3, 4), "int32"), _index((2, 3, 6), 4), In((2, 3, 6), "int32"), axis=2),
    *(
        _row("ScatterND", 18, (4, 5, 2), _index((3, 2), 4), (3, 2), reduction=reduction)
        for reduction in ("none", "add", "mul", "max", "min")
    ),
    _row("ReverseSequence", 10, (4, 3, 2), In((3,), "int64", 0, 4), time_axis=0, batch_axis=1),
    _row("ReverseSequence", 10, (3, 4), In((3,), "int64", 1, 4), time_axis=1, batch_axis=0),
]

ORDER = [
    *(_extreme_of_least(last) for last in (0, 1)),
    *(
        _row("ArgMax", 13, In((3, 5), "uint8", 0, 1), axis=axis, select_last_index=last)
        for axis in (0, 1)
        for last in (0, 1)
    ),
    _row("CumSum", 14, In((2, 5), "int64"), np.array(1), reverse=1),
    _row("OneHot", 11, In((2, 3), "int64", -7, 7), np.array(5), (2,), axis=1),
]

BITS = [
    *(
        _row("BitShift", 11, In((4, 9), kind, 0, 90), In((4, 9), kind, 0, 31), direction=direction)
        for kind in ("uint8", "uint32")
        for direction in ("LEFT", "RIGHT")
    ),
    *(
        _row("Mod", 13, In((4, 9), kind, -90, 90), In((4, 9), kind, 1, 31), fmod=fmod)
        for kind in ("int8", "int32", "int64")
        for fmod in (0, 1)
    ),
    _row("Mod", 13, In((4, 9), "int32", -90, 90), np.array([-7], np.int32)),
]

CASES = [*INDICES, *ORDER, *BITS]
