"""Rounding, integers and what stands for infinity: float32 arithmetic whose results are exact."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from onnx2caffe.tvm.registry import DIALECTS
from tests.ops.harness import FLOAT, Array, Case, In, constant, everywhere

_TYPES = ("int8", "uint8", "int16", "uint16")
_ENDS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}


def _any(dtype: str, *shape: int) -> In:
    return In(shape or (3, 40), dtype, *_ENDS[dtype])


def _scalar(value: float, dtype: str = "float32") -> Array:
    return np.array(value, dtype)


def _round_of_halves(op: str) -> Case:
    """Halves and whole numbers only, both signs."""
    x = helper.make_tensor_value_info("x", TensorProto.INT32, (4, 50))
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["f", "half"], ["h"]),
        helper.make_node("Sub", ["h", "two"], ["s"]),
        helper.make_node(op, ["s"], ["y"], name="node"),
    ]
    constants = [numpy_helper.from_array(_scalar(v), n) for n, v in (("half", 0.5), ("two", 2.0))]
    y = helper.make_tensor_value_info("y", FLOAT, (4, 50))
    graph = helper.make_graph(nodes, "halves", [x], [y], constants)
    opsets = [helper.make_opsetid("", 13)]
    return Case(op, 13, model=helper.make_model(graph, opset_imports=opsets, ir_version=8), id=f"{op}-of-halves")


def _masked_attention() -> Case:
    """Rows of a mask that hide everything: the softmax of nothing is replaced by zeros."""
    x = helper.make_tensor_value_info("x", FLOAT, (3, 4))
    mask = helper.make_tensor_value_info("mask", TensorProto.BOOL, (3, 4))
    nodes = [
        helper.make_node("Where", ["mask", "zero", "hidden"], ["bias"]),
        helper.make_node("Add", ["bias", "causal"], ["biases"]),
        helper.make_node("Add", ["x", "biases"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("ReduceMax", ["biases"], ["most"], axes=[-1]),
        helper.make_node("Equal", ["most", "hidden"], ["nothing"]),
        helper.make_node("Where", ["nothing", "zero", "weights"], ["y"], name="node"),
    ]
    constants = {
        "zero": _scalar(0),
        "hidden": _scalar(-np.inf),
        "causal": np.triu(np.full((3, 4), -np.inf, np.float32), 2),
    }
    y = helper.make_tensor_value_info("y", FLOAT, (3, 4))
    tensors = [numpy_helper.from_array(v, n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "masked", [x, mask], [y], tensors)
    opsets = [helper.make_opsetid("", 13)]
    return Case("Where", 13, model=helper.make_model(graph, opset_imports=opsets, ir_version=8), id="Where-all-masked")


_ROUNDING = [
    *(Case(op, 13, (In((3, 40), low=-1e3, high=1e3),)) for op in ("Floor", "Ceil", "Round")),
    *(Case(op, 13, (In((3, 40), low=-4e6, high=4e6),), id=f"{op}-large") for op in ("Floor", "Ceil", "Round")),
    *(_round_of_halves(op) for op in ("Floor", "Ceil", "Round")),
    *(Case("Cast", 13, (In((3, 40), low=-99, high=99),), {"to": t}) for t in (TensorProto.INT64, TensorProto.INT8)),
    Case(
        "Cast",
        21,
        ((3, 4),),
        {"to": TensorProto.INT4},
        refused=everywhere("rounds them") | dict.fromkeys(DIALECTS, "int4"),
    ),
]

_WRAPPING = [
    *(Case(op, 14, (_any(t), _any(t))) for op in ("Add", "Sub") for t in _TYPES),
    *(Case("Mul", 14, (_any(t), _any(t))) for t in ("int8", "uint8")),
    Case("Add", 14, (_any("uint8"), np.array([[200], [7], [255]], np.uint8)), id="Add-uint8-rows"),
    Case("Mul", 14, (_any("int16"), _any("int16")), refused=everywhere("does not hold")),
    *(Case("Neg", 13, (_any(t),)) for t in ("int8", "int16")),
    Case("Abs", 13, (_any("int8"),)),
    Case("Cast", 13, (In((3, 40), "int64", -999, 999),), {"to": TensorProto.INT32}),
    Case("Cast", 13, (_any("int16"),), {"to": TensorProto.UINT8}),
    Case("Cast", 13, (_any("uint8"),), {"to": TensorProto.INT8}),
    Case("Sub", 14, (In((2, 3), "uint32"),) * 2, refused=everywhere("UINT32 below 0")),
]

_DIVISION = [
    *(Case("Div", 14, (_any(t), In((3, 40), t, 1, 100))) for t in _TYPES),
    *(Case("Div", 14, (_any(t), _scalar(7, t))) for t in _TYPES),
    Case("Div", 14, (In((3, 40), "int64", -9999, 9999), np.array([[3], [-4], [5]])), id="Div-int64-rows"),
    Case("Div", 14, (_scalar(-1000, "int32"), In((3, 40), "int32", 1, 99)), id="Div-int32-left"),
    *(Case("Mod", 13, (_any(t), In((3, 40), t, 1, 100)), {"fmod": f}) for t in _TYPES for f in (0, 1)),
    *(Case("Mod", 13, (In((3, 40), "int64", -99, 99), _scalar(b, "int64")), {"fmod": 0}) for b in (7, -7)),
    Case("Mod", 13, (In((3, 40), "int64", -99, 99), In((3, 40), "int64", -9, -1)), {"fmod": 1}),
    Case("Mod", 13, ((3, 40), In((3, 40), low=0.2, high=0.9)), {"fmod": 1}),
    Case("BitShift", 11, (_any("uint8", 3, 4), np.array([1, 3, 5, 7], np.uint8)), {"direction": "LEFT"}),
    Case("BitShift", 11, (_any("uint16", 3, 4), np.array([1, 3, 5, 7], np.uint16)), {"direction": "RIGHT"}),
    *(Case("BitwiseNot", 18, (_any(t),)) for t in _TYPES),
]

_QUANTISATION = [
    Case("QuantizeLinear", 13, ((2, 3, 4), _scalar(0.1)), refused=everywhere("--strip-qdq")),
    Case(
        "DequantizeLinear",
        21,
        (_any("int8", 2, 6), constant(2, 3), np.full((2, 3), 2, np.int8)),
        {"axis": 1, "block_size": 2},
    ),
    Case("DynamicQuantizeLinear", 11, ((3, 40),), outputs=3, refused=everywhere("--strip-qdq")),
]

_INFINITY = [
    _masked_attention(),
    Case("IsNaN", 13, ((2, 3),)),
    *(Case("IsInf", 10, ((2, 3),), {"detect_negative": n, "detect_positive": p}) for n, p in ((1, 1), (1, 0), (0, 0))),
]

CASES = [*_ROUNDING, *_WRAPPING, *_DIVISION, *_QUANTISATION, *_INFINITY]
