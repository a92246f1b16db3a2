"""What the analysis claims of a tensor holds for what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx2caffe import frontend, ranges
from onnx2caffe.runtimes import ort

CHAINS = {
    "sigmoid": [("Sigmoid", "x", {})],
    "softplus": [("Softplus", "x", {})],
    "abs": [("Tanh", "x", {}), ("Abs", "t0", {})],
    "relu-tanh": [("Tanh", "x", {}), ("Relu", "t0", {})],
    "add": [("Tanh", "x", {}), ("Add", "t0 c", {})],
    "sub": [("Tanh", "x", {}), ("Sub", "c t0", {})],
    "mul": [("Tanh", "x", {}), ("Mul", "t0 c", {})],
    "mul-unbounded": [("Mul", "x c", {})],
    "clip": [("Clip", "x lo hi", {})],
    "clip-low": [("Clip", "x lo", {})],
    "clip-crossed": [("Clip", "x hi lo", {})],
    "floor": [("Clip", "x lo hi", {}), ("Floor", "t0", {})],
    "ceil-mul": [("Clip", "x lo hi", {}), ("Ceil", "t0", {}), ("Mul", "t0 t1", {})],
    "cast-int": [("Clip", "x lo hi", {}), ("Cast", "t0", {"to": TensorProto.INT64})],
    "cast-bool": [("Clip", "x hi lo", {}), ("Cast", "t0", {"to": TensorProto.BOOL})],
    "greater": [("Greater", "x c", {}), ("Cast", "t0", {"to": TensorProto.FLOAT})],
    "max": [("Tanh", "x", {}), ("Max", "t0 c", {})],
    "concat": [("Tanh", "x", {}), ("Concat", "t0 c", {"axis": 0})],
    "mean": [("Sign", "x", {}), ("ReduceMean", "t0 axes", {})],
    "softmax": [("Softmax", "x", {"axis": 0}), ("ReduceMax", "t0 axes", {})],
}
CONSTANTS = {
    "c": np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4),
    "lo": np.array(-1.5, np.float32),
    "hi": np.array(2, np.float32),
    "axes": np.array([1], np.int64),
}


def _model(chain):
    nodes = [helper.make_node(op, ins.split(), [f"t{i}"], **a) for i, (op, ins, a) in enumerate(chain)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 4))
    y = helper.make_tensor_value_info(f"t{len(chain) - 1}", chain[-1][2].get("to", TensorProto.FLOAT), None)
    used = {name for _, ins, _ in chain for name in ins.split()}
    constants = [numpy_helper.from_array(a, name) for name, a in CONSTANTS.items() if name in used]
    graph = helper.make_graph(nodes, "chain", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("name", CHAINS)
def test_claims_hold(name: str) -> None:
    model = _model(CHAINS[name])
    (output,) = frontend.from_proto(model).model.graph.outputs
    claim = ranges.of(output)
    rng = np.random.default_rng(0)
    for scale in (0.1, 3.0, 100.0):
        x = (scale * rng.standard_normal((3, 4))).astype(np.float32)
        (y,) = ort.session(model.SerializeToString()).run(None, {"x": x})
        y = y.astype(np.float64)
        assert claim.lo <= y.min() or np.isclose(claim.lo, y.min())
        assert y.max() <= claim.hi
        assert not claim.whole or (y == np.round(y)).all()


@pytest.mark.parametrize(
    ("name", "lo", "hi", "whole"),
    [("floor", -2, 2, True), ("add", -3, 4, False), ("cast-int", -2, 2, True), ("cast-bool", 0, 1, True)],
)
def test_claims_say_something(name: str, lo: float, hi: float, whole: bool) -> None:
    (output,) = frontend.from_proto(_model(CHAINS[name])).model.graph.outputs
    assert ranges.of(output) == ranges.Range(lo, hi, whole)
