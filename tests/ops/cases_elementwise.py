"""Arithmetic with broadcasting, comparison, logic, casts, activations."""

from __future__ import annotations

from itertools import product

import numpy as np
from onnx import TensorProto, helper

from tests.ops.harness import Array, Case, In, Shape, constant, everywhere

BINARY = ("Add", "Sub", "Mul", "Div")

CONSTANTS: list[tuple[Shape, Shape]] = [
    ((2, 3, 4, 5), ()),
    ((2, 3, 4, 5), (5,)),
    ((2, 3, 4, 5), (4, 1)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((2, 3, 4, 5), (1, 3, 1, 1)),
    ((2, 3, 4, 5), (3, 1, 5)),
    ((2, 3, 4, 5), (2, 1, 1, 5)),
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((1, 4, 4, 4), (4,)),
    ((3,), (3,)),
    ((), ()),
    ((3,), (2, 3)),
    ((4, 1), (3, 1, 5)),
    ((2, 3, 1, 1), (1, 3, 4, 5)),
    ((2, 3, 2, 2, 2), (3, 1, 2, 1)),
    ((1, 2, 3, 2, 2, 2), (2, 1, 1, 2, 1)),
]
"""Computed shape, constant shape."""

PAIRS: list[tuple[Shape, Shape]] = [
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (2, 3, 1, 1)),
    ((2, 3, 1, 1), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (1, 3, 1, 1)),
    ((2, 3, 4, 5), (2, 1, 4, 5)),
    ((1, 3, 4, 5), (1, 1, 4, 5)),
    ((2, 3, 4, 5), (2, 1, 1, 1)),
    ((2, 3, 4, 5), (1, 1, 1, 1)),
    ((2, 3, 4, 5), ()),
    ((2, 3, 4, 5), (5,)),
    ((4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 1), (2, 3, 1, 5)),
    ((2, 3, 1, 1), (2, 1, 4, 5)),
    ((4, 1), (1, 5)),
    ((1, 3), (2, 1)),
    ((2, 3, 4), (3, 1)),
    ((1,), ()),
    ((), ()),
    ((2, 1, 3, 1, 2), (1, 4, 1, 2, 2)),
    ((1, 2, 1, 2, 1, 2), (2, 1, 2, 1, 2)),
]


def _far_from_zero(*shape: int) -> Array:
    values = constant(*shape, seed=3)
    return np.asarray(np.sign(values) * (np.abs(values) + 0.5), np.float32)


def _scalar(value: float) -> Array:
    return np.array(value, np.float32)


def _bools(*shape: int) -> Array:
    return np.arange(int(np.prod(shape))).reshape(shape) % 3 > 0


def _twice(op: str) -> Case:
    """A node that reads one tensor twice."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3, 4))
    node = helper.make_node(op, ["x", "x"], ["y"], name="node")
    graph = helper.make_graph([node], "twice", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3, 4))])
    opsets = [helper.make_opsetid("", 14)]
    return Case(op, 14, id=f"{op}-twice", model=helper.make_model(graph, opset_imports=opsets, ir_version=8))


def _chain(id: str, nodes: list, shape: Shape, kind: int = TensorProto.FLOAT, refused: dict | None = None) -> Case:
    """A few nodes x → y whose middle tensors the row is about."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "chain", [x], [helper.make_tensor_value_info("y", kind, None)])
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return Case(id, 18, id=id, model=model, refused=refused or {})


ARITHMETIC = [
    *(Case(op, 14, (x, _far_from_zero(*c))) for op, (x, c) in product(BINARY, CONSTANTS)),
    *(Case(op, 14, (_far_from_zero(*c), In(x, low=0.5, high=2.0))) for op in BINARY for x, c in CONSTANTS[::3]),
    *(Case(op, 14, (x, In(y, low=-2.0, high=-0.5) if op == "Div" else y)) for op, (x, y) in product(BINARY, PAIRS)),
    *(Case(op, 13, (x, y)) for op in ("Max", "Min") for x, y in PAIRS[::2]),
    *(Case(op, 13, (x, constant(*c))) for op in ("Max", "Min") for x, c in CONSTANTS[::2]),
    *(
        Case(op, 13, ((2, 3, 4), (3, 1), constant(4), (2, 3, 4), np.full(1, 0.1, np.float32)))
        for op in ("Sum", "Mean", "Max")
    ),
    *(Case(op, 13, ((2, 3), (2, 3), (2, 3))) for op in ("Sum", "Mean", "Max", "Min")),
    Case("Sum", 13, ((2, 3),)),
    *(_twice(op) for op in ("Add", "Sub", "Mul", "Max")),
    Case("Add", 14, (In((2, 3), "int64"), np.array([[1, 2, 3]]))),
    *(Case(op, 14, (In((2, 30), "uint8", high=255), np.full(1, 9, np.uint8))) for op in BINARY),
    Case("Sub", 14, (np.full(1, 9, np.uint8), In((2, 30), "uint8", high=255)), id="Sub-uint8-left"),
    *(Case("Mod", 13, (In((2, 30), "int8", low=-128, high=127), np.full(1, 7, np.int8)), {"fmod": f}) for f in (0, 1)),
    *(
        Case("BitShift", 11, (In((2, 30), "uint8", high=255), np.full(1, 2, np.uint8)), {"direction": d})
        for d in ("LEFT", "RIGHT")
    ),
    Case("BitwiseXor", 18, (In((2, 30), "int8", low=-128, high=127), np.full(1, 21, np.int8))),
    Case(
        "Div",
        14,
        (In((2, 3), "uint8"), np.zeros(1, np.uint8)),
        refused=everywhere("division by zero", "relay", "relax"),
    ),
    *(Case("Pow", 15, ((2, 3, 4), _scalar(e))) for e in (0, 1, 2, 3, 4, -1, -2)),
    *(Case("Pow", 15, (In((2, 3), low=0.1, high=3.0), _scalar(e)), id=f"Pow-{e}") for e in (0.5, -0.5, 1.7)),
    Case("Pow", 15, (np.array([0.5, 2.0, 3.0], np.float32), (2, 3))),
    Case("Pow", 15, ((2, 3), (2, 3))),
    Case("Pow", 15, (In((3, 40), low=-9.0, high=9.0), np.array([[1.0], [2.0], [3.0]], np.float32))),
    Case("Pow", 15, (In((3, 40), "int32", low=-3, high=3), np.array([[2], [3], [0]], np.int32)), id="Pow-int-rows"),
    *(Case(op, 13, ((2, 3, 4, 5),)) for op in ("Neg", "Abs", "Exp", "Sign", "Erf", "Reciprocal")),
    *(Case("Erf", 13, (In((3, 40), low=-bound, high=bound),), id=f"Erf-{bound:g}") for bound in (1e-6, 5.0, 1e20)),
    *(Case(op, 13, (In((2, 3), low=0.01, high=9.0),)) for op in ("Sqrt", "Log")),
    *(Case(op, 9, ((2, 3, 4),)) for op in ("Sinh", "Cosh", "Asinh")),
    Case("Acosh", 9, (In((2, 9), low=1.0, high=9.0),)),
    Case("Atanh", 9, (In((2, 9), low=-0.9, high=0.9),)),
    Case("Sin", 7, ((2, 3),), refused=everywhere("no Caffe layer computes it")),
    Case("Sign", 13, (In((3, 5), "int64"),)),
]

COMPARISON = [
    *(
        Case(op, 16, (In((2, 3, 4), "int32", high=3), b))
        for op in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")
        for b in (np.array(2, np.int32), np.array([[1], [2], [0]], np.int32), In((2, 3, 4), "int32", high=3))
    ),
    *(
        Case(op, 16, (b, In((3, 1), "int32", high=3)))
        for op in ("Greater", "LessOrEqual", "Equal")
        for b in (np.array(2, np.int32), In((2, 1, 4), "int32", high=3))
    ),
    *(Case(op, 16, ((2, 3, 4), _scalar(0))) for op in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual")),
    *(Case(op, 7, (In((2, 3, 4), "bool"), In((3, 1), "bool"))) for op in ("And", "Or", "Xor")),
    *(Case(op, 7, (In((2, 3, 4), "bool"), _bools(3, 4))) for op in ("And", "Or", "Xor")),
    Case("Not", 9, (In((2, 3), "bool"),)),
    *(
        Case("Where", 16, (mask, a, b))
        for mask in (In((2, 3, 4), "bool"), In((3, 1), "bool"), _bools(2, 3, 4), _bools(1, 3, 1))
        for a, b in (((2, 3, 4), (2, 3, 4)), ((2, 3, 4), _scalar(-1e9)), (constant(4), (2, 3, 4)), ((4,), (2, 3, 1)))
    ),
    Case("Where", 16, (In((2, 3), "bool"), _scalar(1), _scalar(-3e38)), id="Where-constants"),
    Case("Where", 16, (In((2, 3), "bool"), constant(3), _scalar(0)), id="Where-constant-or-0"),
    Case("Where", 16, (_bools(3, 3), (2, 3, 3), _scalar(-np.inf)), id="Where-masked"),
    Case("Cast", 13, (In((2, 9), "int64", low=-2, high=2),), {"to": TensorProto.FLOAT}),
    Case("Cast", 13, (In((2, 9), "int64", low=-2, high=2),), {"to": TensorProto.BOOL}),
    Case("Cast", 13, (In((2, 3), "bool"),), {"to": TensorProto.FLOAT}),
    Case("DequantizeLinear", 13, (In((2, 3, 4), "uint8", high=255), _scalar(0.1), np.array(7, np.uint8))),
    Case("DequantizeLinear", 13, (In((2, 3, 4), "int8", low=-128, high=127), _far_from_zero(3)), {"axis": -2}),
    *(
        _chain(
            f"{op}-bounded",
            [
                helper.make_node("Tanh", ["x"], ["t"]),
                helper.make_node("Add", ["t", "t"], ["d"]),
                helper.make_node("Add", ["d", "d"], ["e"]),
                helper.make_node(op, ["e"], ["y"], name="node"),
            ],
            (3, 40),
        )
        for op in ("Floor", "Ceil", "Round")
    ),
    _chain(
        "Pow-positive-base",
        [
            helper.make_node("Sigmoid", ["x"], ["base"]),
            helper.make_node("Pow", ["base", "x"], ["y"], name="node"),
        ],
        (3, 4),
    ),
    _chain(
        "Div-of-index",
        [
            helper.make_node("ArgMax", ["x"], ["i"], axis=1),
            helper.make_node("Constant", [], ["width"], value_ints=[5]),
            helper.make_node("Div", ["i", "width"], ["y"], name="node"),
        ],
        (3, 40),
        TensorProto.INT64,
    ),
    _chain(
        "Cast-to-index",
        [
            helper.make_node("Sigmoid", ["x"], ["p"]),
            helper.make_node("Cast", ["p"], ["y"], name="node", to=TensorProto.INT32),
        ],
        (3, 4),
        TensorProto.INT32,
    ),
]

ACTIVATIONS = [
    *(Case(op, 14, (shape,)) for op in ("Relu", "Sigmoid", "Tanh") for shape in ((2, 3, 4, 5), (6,), ())),
    *(Case(op, 9, ((2, 3, 4),)) for op in ("LeakyRelu", "Elu", "Selu")),
    *(Case("LeakyRelu", 9, ((2, 3, 4),), {"alpha": alpha}) for alpha in (0.0, 1.5, -0.3)),
    Case("Elu", 9, ((2, 3, 4),), {"alpha": 0.5}),
    Case("Selu", 9, ((2, 3, 4),), {"alpha": 1.2, "gamma": 0.7}),
    *(Case("Celu", 12, ((2, 3, 4),), {"alpha": alpha}) for alpha in (1.0, 0.4)),
    *(Case(op, 9, (In((2, 90), low=-90.0, high=90.0),)) for op in ("Softplus", "Softsign")),
    Case("HardSigmoid", 9, ((2, 3, 4),)),
    *(Case("HardSigmoid", 9, ((2, 3, 4),), {"alpha": a, "beta": b}) for a, b in ((1 / 6, 0.5), (0.7, 0.1))),
    Case("HardSwish", 14, (In((2, 90), low=-9.0, high=9.0),)),
    Case("Mish", 18, (In((2, 90), low=-9.0, high=30.0),)),
    *(Case("ThresholdedRelu", 10, ((2, 90),), {"alpha": alpha}) for alpha in (1.0, 0.0, -0.5)),
    *(
        Case("Shrink", 9, ((2, 90),), {"lambd": lambd, "bias": bias})
        for lambd, bias in ((0.5, 0.0), (0.5, 0.5), (1.0, 0.25), (0.0, 0.0))
    ),
    *(Case("Gelu", 20, (In((2, 90), low=-9.0, high=9.0),), {"approximate": a}) for a in ("none", "tanh")),
    *(
        Case("PRelu", 16, (x, constant(*slope, seed=2, scale=0.3)))
        for x, slope in (
            ((2, 3, 4, 5), (3, 1, 1)),
            ((2, 3, 4, 5), (1, 3, 1, 1)),
            ((2, 3, 4, 5), (1,)),
            ((2, 3, 4, 5), (5,)),
            ((2, 3, 4, 5), (4, 5)),
            ((2, 3, 4, 5), (3, 4, 5)),
            ((2, 3, 4, 5), (3, 1, 5)),
            ((2, 3, 4, 5), (2, 3, 4, 5)),
            ((4, 3), (3,)),
            ((4, 3, 5), (3, 1)),
            ((2, 3, 2, 2, 2), (3, 1, 1, 1)),
            ((3,), (3,)),
        )
    ),
    Case("PRelu", 16, ((2, 3, 4, 5), (3, 1, 1))),
    *(
        Case("Clip", 13, (In((2, 90), low=-9.0, high=9.0), lo, hi), id=f"Clip-{lo}-{hi}")
        for lo, hi in (
            (_scalar(0), _scalar(6)),
            (_scalar(-1), _scalar(1)),
            (_scalar(0.5), None),
            (None, _scalar(0.5)),
            (_scalar(0), None),
            (None, _scalar(0)),
            (None, None),
            (_scalar(-1000), _scalar(5)),
            (_scalar(3), _scalar(-3)),
            (_scalar(-np.inf), _scalar(2)),
            (In((), low=-2.0, high=-1.0), In((), low=1.0, high=2.0)),
            (_scalar(-1), In((), low=1.0, high=2.0)),
        )
    ),
    Case("Clip", 9, (In((2, 90), low=-1e6, high=1e6),), {"min": 0.0, "max": 6.0}, id="Clip-far"),
]

CASES = [*ARITHMETIC, *COMPARISON, *ACTIVATIONS]
