"""StripQdq. The oracle: on inputs that lie on the grid, and scales that are powers of two, rounding changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

from onnx2caffe import canon, frontend
from onnx2caffe.frontend import invariants
from onnx2caffe.passes.strip_qdq import StripQdq
from tests.passes.check import counts, infer_all

X = "float[1,4,6,6] x"
SCALES = "float s = {0.5}, float t = {0.125}, float u = {0.25}"
ZEROS = "uint8 z = {100}, uint8 o = {0}, int8 i = {-3}, int8 n = {0}"
OPSETS = '"": {opset}, "com.microsoft": 1'
GRID = 0.5 * np.random.default_rng(0).integers(-60, 90, (1, 4, 6, 6)).astype(np.float32)
"""Beyond both ends of what (s, z) can hold, which are -50 and 77.5."""


def model(
    body: str, *, inputs: str = X, output: str = "float y", constants: str = "", opset: int = 13
) -> onnx.ModelProto:
    known = ", ".join(filter(None, (SCALES, ZEROS, constants)))
    head = f"<ir_version: 8, opset_import: [{OPSETS.format(opset=opset)}]>"
    text = f"{head} g ({inputs}) => ({output}) <{known}> {{{body}}}"
    proto = parser.parse_model(text)
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    used = {name for node in proto.graph.node for name in node.input}
    for initializer in [i for i in proto.graph.initializer if i.name not in used]:
        proto.graph.initializer.remove(initializer)
    return proto


def run(proto: onnx.ModelProto, x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in proto.graph.output]
    return dict(zip(names, session.run(names, {"x": x}), strict=True))


@dataclass(frozen=True)
class Row:
    """A model in ONNX's text form, and the ops that are left of it."""

    id: str
    body: str
    left: dict[str, int]
    constants: str = ""
    output: str = "float y"
    opset: int = 13
    inputs: str = X


PAIR = "y = DequantizeLinear(q, s, z)"
Q = "q = QuantizeLinear(x, s, z) "
W = f"int8[3,4,3,3] w = {{{', '.join(str(k % 7 - 3) for k in range(108))}}}"
M = f"int8[6,3] m = {{{', '.join(str(k % 5 - 2) for k in range(18))}}}"

ROWS = [
    Row("pair", Q + PAIR, {"Clip": 1}),
    Row("int8", "q = QuantizeLinear(x, s, i) y = DequantizeLinear(q, s, i)", {"Clip": 1}),
    Row("no_zero_point", "q = QuantizeLinear(x, s) y = DequantizeLinear(q, s)", {"Clip": 1}),
    Row("int16", "q = QuantizeLinear(x, s, k) y = DequantizeLinear(q, s, k)", {"Clip": 1}, "int16 k = {7}", opset=21),
    Row("behind_relu6", "c = Clip(x, lo, hi) q = QuantizeLinear(c, s, o) y = DequantizeLinear(q, s, o)", {"Clip": 1},
        "float lo = {0}, float hi = {6}"),
    Row("behind_sigmoid", "a = Sigmoid(x) b = Mul(a, lo) q = QuantizeLinear(b, s, o) y = DequantizeLinear(q, s, o)",
        {"Sigmoid": 1, "Mul": 1}, "float lo = {0}"),
    Row("twice", Q + "a = DequantizeLinear(q, s, z) r = QuantizeLinear(a, s, z) y = DequantizeLinear(r, s, z)",
        {"Clip": 1}),
    Row("per_channel", "q = QuantizeLinear<axis = 1>(x, v, e) y = DequantizeLinear<axis = 1>(q, v, e)",
        {"Max": 1, "Min": 1}, "float[4] v = {0.5, 0.25, 0.125, 0.5}, uint8[4] e = {100, 90, 128, 0}"),
    Row("read_with_other_steps", Q + "y = DequantizeLinear(q, u, o)", {"Clip": 1, "Mul": 1, "Add": 1}),
    Row("two_readers", Q + "a = DequantizeLinear(q, s, z) b = DequantizeLinear(q, s, z) y = Add(a, b)",
        {"Clip": 1, "Add": 1}),
    Row("reshape", Q + "r = Reshape(q, k) y = DequantizeLinear(r, s, z)", {"Clip": 1, "Reshape": 1},
        "int64[2] k = {4, 36}"),
    Row("transpose", Q + "r = Transpose<perm = [0, 2, 3, 1]>(q) y = DequantizeLinear(r, s, z)",
        {"Clip": 1, "Transpose": 1}),
    Row("max_pool", Q + "r = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(q) y = DequantizeLinear(r, s, z)",
        {"Clip": 1, "MaxPool": 1}),
    Row("pad", Q + "r = Pad(q, k, z) y = DequantizeLinear(r, s, z)", {"Clip": 1, "Pad": 1},
        "int64[8] k = {0, 0, 1, 0, 0, 0, 2, 1}"),
    Row("pad_with_zero", Q + "r = Pad(q, k) y = DequantizeLinear(r, s, z)", {"Clip": 1, "Pad": 1},
        "int64[8] k = {0, 0, 1, 0, 0, 0, 2, 1}"),
    Row("resize", Q + 'r = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric">(q, "", k) '
        "y = DequantizeLinear(r, s, z)", {"Clip": 1, "Resize": 1}, "float[4] k = {1, 1, 2, 2}"),
    Row("split", Q + "a, b = Split<axis = 1>(q, k) c = DequantizeLinear(a, s, z) d = DequantizeLinear(b, s, z) "
        "y = Concat<axis = 1>(d, c)", {"Clip": 1, "Split": 1, "Concat": 1}, "int64[2] k = {1, 3}"),
    Row("concat", "h = Relu(x) " + Q + "r = QuantizeLinear(h, s, z) c = Concat<axis = 1>(q, r) "
        "y = DequantizeLinear(c, s, z)", {"Clip": 2, "Concat": 1, "Relu": 1}),
    Row("cast", Q + "y = Cast<to = 1>(q)", {"Clip": 1, "Mul": 1, "Add": 1}),
    Row("output_of_integers", Q.replace("q =", "y ="), {"Clip": 1, "Mul": 1, "Add": 1}, output="uint8 y"),
    Row("output_of_moved_integers", Q + "y = Reshape(q, k)", {"Clip": 1, "Reshape": 1, "Mul": 1, "Add": 1},
        "int64[2] k = {4, 36}", output="uint8 y"),
    Row("integers_are_output_too", Q + PAIR, {"Clip": 1, "Mul": 1, "Add": 1}, output="float y, uint8 q"),
    Row("qlinear_conv", Q + "r = QLinearConv(q, s, z, w, u, n, t, z) y = DequantizeLinear(r, t, z)",
        {"Clip": 2, "Conv": 1}, W),
    Row("qlinear_matmul", Q + "r = QLinearMatMul(q, s, z, m, u, n, t, z) y = DequantizeLinear(r, t, z)",
        {"Clip": 2, "MatMul": 1}, M),
    Row("conv_integer", Q + "r = ConvInteger(q, w, z, n) c = Cast<to = 1>(r) y = Mul(c, t)",
        {"Clip": 1, "Conv": 1, "Mul": 2, "Add": 1}, W),
    Row("matmul_integer_without_zero_point", "q = QuantizeLinear(x, s, o) r = MatMulInteger(q, m) c = Cast<to = 1>(r) "
        "y = Mul(c, t)", {"Clip": 1, "MatMul": 1, "Mul": 2, "Add": 1}, M),
    Row("accumulators_dequantised", Q + "r = ConvInteger(q, w, z) y = DequantizeLinear(r, t)",
        {"Clip": 1, "Conv": 1, "Mul": 1, "Add": 1}, W),
    Row("qlinear_add", Q + "r = com.microsoft.QLinearAdd(q, s, z, q, s, z, s, o) y = DequantizeLinear(r, s, o)",
        {"Clip": 2, "Add": 1}),
    Row("qlinear_mul", Q + "r = com.microsoft.QLinearMul(q, s, z, q, s, z, u, o) y = DequantizeLinear(r, u, o)",
        {"Clip": 2, "Mul": 1}),
    Row("qlinear_leaky", Q + "r = com.microsoft.QLinearLeakyRelu<alpha = 0.5>(q, s, z, u, z) "
        "y = DequantizeLinear(r, u, z)", {"Clip": 2, "LeakyRelu": 1}),
    Row("qlinear_concat", Q + "r = com.microsoft.QLinearConcat<axis = 1>(s, o, q, s, z, q, s, z) "
        "y = DequantizeLinear(r, s, o)", {"Clip": 2, "Concat": 1}),
    Row("qlinear_average", Q + "r = com.microsoft.QLinearAveragePool<kernel_shape = [2, 2], strides = [2, 2]>"
        "(q, s, z, t, z) y = DequantizeLinear(r, t, z)", {"Clip": 2, "AveragePool": 1}),
    Row("qgemm", Q + "f = Reshape(q, k) r = com.microsoft.QGemm(f, s, z, m, u, n, c, t, z) "
        "y = DequantizeLinear(r, t, z)", {"Clip": 2, "Reshape": 1, "Gemm": 1},
        f"{M}, int32[3] c = {{5, -7, 100}}, int64[2] k = {{24, 6}}"),
    Row("qgemm_to_float", Q + "f = Reshape(q, k) y = com.microsoft.QGemm<transB = 1, alpha = 0.5>(f, s, z, p, u, n)",
        {"Clip": 1, "Reshape": 1, "Gemm": 1}, f"{M.replace('[6,3] m', '[3,6] p')}, int64[2] k = {{24, 6}}"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_equal_on_the_grid(row: Row):
    proto = model(row.body, inputs=row.inputs, constants=row.constants, output=row.output, opset=row.opset)
    expected = run(proto, GRID)
    loaded = frontend.from_proto(proto)
    strip = StripQdq()
    assert strip.call(loaded.model).modified
    invariants.check(loaded.model)
    assert counts(loaded.model) == row.left
    found = infer_all(loaded.model, {"x": GRID})
    for info, value in zip(loaded.outputs, loaded.model.graph.outputs, strict=True):
        assert info.name in {tensor.name for tensor in canon.tensors(value)}
        np.testing.assert_allclose(found[value.name or ""], expected[info.name].astype(np.float32), atol=1e-4)


@pytest.mark.parametrize(("axis", "opset"), [(1, 13), (2, 12)])
def test_softmax_within_one_step(axis: int, opset: int):
    """onnxruntime's kernel cuts fractions off where others round."""
    attributes = f"axis = {axis}, opset = {opset}"
    body = f"{Q}r = com.microsoft.QLinearSoftmax<{attributes}>(q, s, z, e, o) y = DequantizeLinear(r, e, o)"
    proto = model(body, constants="float e = {0.00390625}")
    x = np.round(GRID / 8) / 2
    loaded = frontend.from_proto(proto)
    StripQdq().call(loaded.model)
    assert counts(loaded.model)["Softmax"] == 1
    (value,) = loaded.model.graph.outputs
    np.testing.assert_allclose(infer_all(loaded.model, {"x": x})[value.name or ""], run(proto, x)["y"], atol=1 / 256)


DYNAMIC = "q, a, b = DynamicQuantizeLinear(x) "


@pytest.mark.parametrize(
    ("body", "constants", "op"),
    [
        ("r = ConvInteger(q, w, b, n) c = Cast<to = 1>(r) f = Mul(a, u) y = Mul(c, f)", W, "Conv"),
        ("r = MatMulInteger(q, m, b) c = Cast<to = 1>(r) f = Mul(u, a) y = Mul(f, c)", M, "MatMul"),
        ("r = MatMulInteger(q, m, b) c = Cast<to = 1>(r) y = Mul(c, a)", M, "MatMul"),
    ],
    ids=["conv", "matmul", "scale_alone"],
)
def test_dynamic_scale_cancels(body: str, constants: str, op: str):
    x = np.random.default_rng(0).integers(0, 256, (1, 4, 6, 6)).astype(np.float32)
    x.flat[:2] = 0, 255  # so that the scale is 1
    proto = model(DYNAMIC + body, constants=constants)
    loaded = frontend.from_proto(proto)
    StripQdq().call(loaded.model)
    assert set(counts(loaded.model)) <= {op, "Mul", "Add"}
    (value,) = loaded.model.graph.outputs
    np.testing.assert_allclose(infer_all(loaded.model, {"x": x})[value.name or ""], run(proto, x)["y"], rtol=1e-5)


def test_both_factors_dynamic():
    body = DYNAMIC + "k, c, d = DynamicQuantizeLinear(h) r = MatMulInteger(q, k, b, d) f = Cast<to = 1>(r) "
    body = "h = Relu(x) " + body + "g = Mul(a, c) y = Mul(f, g)"
    loaded = frontend.from_proto(model(body))
    StripQdq().call(loaded.model)
    assert set(counts(loaded.model)) <= {"Relu", "MatMul", "Mul", "Add"}


@pytest.mark.parametrize(
    ("body", "output"),
    [
        (Q + "y = BitwiseNot(q)", "uint8 y"),
        (Q + "r = Reshape(q, k) t2 = QuantizeLinear(x, u, z) p = Reshape(t2, k) c = Concat<axis = 0>(r, p) "
         "y = DequantizeLinear(c, s, z)", "float y"),
        (DYNAMIC + "y = DequantizeLinear(q, s, b)", "float y"),
    ],
    ids=["bits", "two_grids_joined", "dynamic_read_by_another_scale"],
)  # fmt: skip
def test_integers_needed_as_such_stay(body: str, output: str):
    loaded = frontend.from_proto(model(body, output=output, constants="int64[2] k = {4, 36}", opset=18))
    before = counts(loaded.model)
    strip = StripQdq()
    strip.call(loaded.model)
    invariants.check(loaded.model)
    assert strip.count == 0
    assert counts(loaded.model) == before


def test_ranges_by_the_users_names():
    loaded = frontend.from_proto(model(Q + "y = DequantizeLinear(q, s, z)"))
    strip = StripQdq()
    strip.call(loaded.model)
    assert strip.count == 1
    assert strip.ranges == {"x": (-50, 77.5), "y": (-50, 77.5)}


def test_nothing_to_strip():
    loaded = frontend.from_proto(model("y = Relu(x)"))
    strip = StripQdq()
    assert not strip.call(loaded.model).modified
    assert strip.ranges == {}
