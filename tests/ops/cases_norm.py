"""Normalisations, reductions, arg-extremes, softmax."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.ops.harness import Array, Case, In, Shape, constant, everywhere, ints

REDUCTIONS = ("Mean", "Max", "Min", "Sum", "Prod", "L1", "L2", "SumSquare", "LogSumExp")


def _axes(rank: int) -> list[tuple[int, ...]]:
    return [axes for count in range(1, rank + 1) for axes in combinations(range(rank), count)]


def _reduce(op: str, shape: Shape, axes: tuple[int, ...], keepdims: int) -> Case:
    name = f"Reduce{op}"
    return Case(name, 18, (shape, ints(*axes)), {"keepdims": keepdims}, id=f"{name}-{shape}-{axes}-{keepdims}")


REDUCE = [
    *(_reduce("Mean", (2, 3, 4, 5), axes, i % 2) for i, axes in enumerate(_axes(4))),
    *(_reduce("Sum", (2, 3, 4, 5), axes, (i + 1) % 2) for i, axes in enumerate(_axes(4))),
    *(_reduce("Max", (2, 3, 4, 5), axes, i % 2) for i, axes in enumerate(_axes(4)[::2])),
    *(
        _reduce(op, shape, axes, keepdims)
        for op in REDUCTIONS
        for shape, axes, keepdims in (
            ((2, 3, 4, 5), (1,), 1),
            ((2, 3, 4, 5), (2, 3), 1),
            ((2, 3, 4, 5), (2,), 0),
            ((2, 3, 4, 5), (0, 2), 0),
            ((3, 4, 5), (2,), 1),
            ((3, 4, 5), (0,), 0),
            ((2, 3, 1, 2, 4), (1, 3), 0),
            ((2, 1, 4), (1,), 1),
            ((5,), (0,), 0),
        )
    ),
    *(Case(f"Reduce{op}", 13, ((2, 3, 4),), {"keepdims": 0}) for op in ("Mean", "Max", "L2")),
    Case("ReduceLogSum", 18, (In((2, 3, 4), low=0.5, high=2.0), ints(1)), {"keepdims": 0}),
    Case("ReduceLogSumExp", 18, (In((2, 30), low=-200.0, high=200.0), ints(1)), id="ReduceLogSumExp-far"),
    Case("ReduceSum", 13, (In((2, 3, 4), "int64"), ints(1))),
    Case("ReduceMax", 18, (In((2, 3, 4), "int32"), ints(-1))),
    *(Case(op, 20, (In((2, 3, 4), "bool"), ints(1))) for op in ("ReduceMax", "ReduceMin")),
    Case("ReduceMean", 18, (In((2, 3), "int32"), ints(1)), refused=everywhere("INT32 rounds")),
]


def _model(nodes: list[onnx.NodeProto], x: In, output: str, kind: int) -> onnx.ModelProto:
    source = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype)), x.shape)
    result = helper.make_tensor_value_info(output, kind, None)
    graph = helper.make_graph(nodes, "model", [source], [result], [numpy_helper.from_array(ints(4), "k")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _top_k(read: str) -> onnx.ModelProto:
    """TopK of whose two outputs only one is read."""
    node = helper.make_node("TopK", ["x", "k"], ["values", "indices"], name="node")
    return _model([node], In((2, 9)), read, TensorProto.FLOAT if read == "values" else TensorProto.INT64)


def _hardmax_of_integers() -> onnx.ModelProto:
    """Hardmax of data with many equal elements."""
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Hardmax", ["f"], ["y"], name="node", axis=1),
    ]
    return _model(nodes, In((2, 25, 3), "int32"), "y", TensorProto.FLOAT)


ARG = [
    *(
        Case(op, 13, (x,), {"axis": axis, "keepdims": keepdims, "select_last_index": last})
        for op in ("ArgMax", "ArgMin")
        for last in (0, 1)
        for x, axis, keepdims in (
            (In((2, 5, 3, 4), "int32", high=3), 1, 1),
            (In((2, 5, 7), "int32", high=3), -1, 0),
            (In((6, 3), "int32", high=2), 0, 0),
            ((2, 3, 4, 5), 2, 0),
            ((4,), 0, 0),
        )
    ),
    *(Case("ArgMax", 13, (In((2, n), "int32", high=30),), {"axis": 1}) for n in (1030, 1031, 5000, 5003)),
    *(
        Case("TopK", 11, (In((3, 9, 4), "int32", high=9), ints(k)), {"axis": axis, "largest": largest}, outputs=2)
        for k, axis, largest in ((3, 1, 1), (1, -1, 1), (4, 2, 0), (2, 0, 0))
    ),
    *(Case("TopK", 13, id=f"TopK-{read}", model=_top_k(read)) for read in ("values", "indices")),
    Case("TopK", 11, ((2, 9), ints(4)), {"sorted": 0}, outputs=2, refused=everywhere("sorted = 0", "relay", "relax")),
]


SOFTMAX = [
    *(
        Case(op, 13, (In(shape, low=-40.0, high=40.0),), {"axis": axis})
        for op in ("Softmax", "LogSoftmax")
        for shape, axis in (
            ((2, 3, 4, 5), 1),
            ((2, 3, 4, 5), 2),
            ((2, 3, 4, 5), -1),
            ((1, 3, 4, 5), 1),
            ((2, 3, 4), 1),
            ((2, 9), 1),
            ((7,), 0),
            ((2, 3, 2, 2, 2), 1),
        )
    ),
    *(Case(op, 11, ((2, 3, 4, 5),), {"axis": a}) for op in ("Softmax", "LogSoftmax", "Hardmax") for a in (0, 1, 3)),
    Case("LogSoftmax", 13, (In((2, 9), low=-900.0, high=900.0),), id="LogSoftmax-far"),
    *(
        Case("Hardmax", 13, (x,), {"axis": axis})
        for x, axis in (((2, 3, 4, 5), 1), ((2, 9), -1), ((4, 3), 0), ((2, 3, 4), 1))
    ),
    Case("Hardmax", 13, id="Hardmax-ties", model=_hardmax_of_integers()),
]


def _positive(*shape: int) -> Array:
    return np.abs(constant(*shape, seed=9)) + np.float32(0.1)


def _statistics(channels: int) -> tuple[Array, ...]:
    return constant(channels), constant(channels, seed=1), constant(channels, seed=2), _positive(channels)


NORM = [
    *(
        Case("BatchNormalization", 15, (shape, *_statistics(shape[1])), {"epsilon": epsilon})
        for shape, epsilon in (((2, 3, 4, 5), 1e-5), ((2, 3, 4), 1e-3), ((4, 3), 1e-5), ((2, 3, 2, 2, 2), 1e-5))
    ),
    *(
        Case("InstanceNormalization", 9, (shape, constant(shape[1]), constant(shape[1], seed=1)), {"epsilon": 1e-3})
        for shape in ((1, 3, 4, 5), (2, 3, 4, 5), (2, 3, 20), (2, 3, 4, 2, 3))
    ),
    *(
        Case("GroupNormalization", 21, (shape, constant(6), constant(6, seed=1)), {"num_groups": groups})
        for shape, groups in (((2, 6, 4, 5), 2), ((2, 6, 4, 5), 6), ((1, 6, 4, 5), 1), ((2, 6, 7), 3))
    ),
    *(
        Case("LayerNormalization", 17, (s, constant(*s[axis:]), constant(*s[axis:], seed=1)), {"axis": axis})
        for s, axis in (
            ((2, 3, 4, 5), -1),
            ((2, 3, 4, 5), 1),
            ((2, 7, 9), 2),
            ((2, 7, 9), -2),
            ((3, 8), 1),
            ((8,), 0),
        )
    ),
    Case("LayerNormalization", 17, ((2, 7, 9), constant(9)), {"epsilon": 1e-2}),
    *(Case("LayerNormalization", 17, ((2, 3, 9), constant(9)), outputs=n) for n in (2, 3)),
    Case("LayerNormalization", 17, ((2, 3, 9), constant(3, 9)), {"axis": 1}, outputs=["y", "", "deviation"]),
    *(
        Case("RMSNormalization", 23, (shape, constant(*shape[axis:])), {"axis": axis})
        for shape, axis in (((2, 3, 4, 5), -1), ((2, 3, 4, 5), 1), ((2, 7, 9), 2), ((8,), 0))
    ),
    *(
        Case("LpNormalization", 9, (shape,), {"axis": axis, "p": p})
        for p in (1, 2)
        for shape, axis in (
            ((2, 3, 4, 5), 1),
            ((2, 3, 4, 5), -1),
            ((2, 3, 4, 5), 0),
            ((4, 6), 1),
            ((2, 5, 3), 1),
            ((6,), 0),
        )
    ),
    Case("LpNormalization", 9, (In((2, 6), low=0.0, high=0.0),), {"axis": 1}, id="LpNormalization-zero"),
    *(
        Case("MeanVarianceNormalization", 13, (shape,), {"axes": axes})
        for shape, axes in (
            ((2, 3, 4, 5), [0, 2, 3]),
            ((2, 3, 4, 5), [2, 3]),
            ((2, 3, 4, 5), [1, 2, 3]),
            ((2, 3, 4, 5), [0, 1]),
            ((2, 3, 4, 5), [1, 3]),
            ((2, 3, 4), [1]),
            ((2, 3, 4), [0, 1, 2]),
        )
    ),
    Case("MeanVarianceNormalization", 13, ((2, 3, 4, 5),)),
    *(
        Case("LRN", 13, (shape,), {"size": size, "alpha": 0.1, "beta": 0.6, "bias": 2.0})
        for shape, size in (
            ((2, 8, 4, 5), 5),
            ((2, 8, 4, 5), 1),
            ((2, 3, 4, 5), 7),
        )
    ),
]

CASES = [*REDUCE, *ARG, *SOFTMAX, *NORM]
