"""The reference: inner tensors of the user's own file, in every form in which that file may come."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx2caffe.errors import NoReference
from onnx2caffe.runtimes.ort import Reference

X = np.array([[1.0, -2.0]], np.float32)


def model(dtype=np.float32) -> onnx.ModelProto:
    """z = relu(x · w + 0.1), both nodes of one name."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weights = np.array([[1.0, 2.0], [3.0, 1.0]], dtype)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="same"),
        helper.make_node("Add", ["y", "b"], ["t"], name="same"),
        helper.make_node("Cast", ["t"], ["c"], to=kind),
        helper.make_node("Relu", ["c"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, ["batch", 2])],
        [helper.make_tensor_value_info("z", kind, ["batch", 2])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array(0.1, dtype), "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("optimise", [False, True])
def test_inner_tensors(optimise):
    reference = Reference(model().SerializeToString(), ["y", "z", "y", "w", "nonsense"])
    assert reference.tensors == ("z", "y", "w")
    results = reference.run({"x": X}, ["y", "z"], optimise)
    np.testing.assert_allclose(results["y"], [[-5, 0]])
    np.testing.assert_allclose(results["z"], [[0, 0.1]])


@pytest.mark.parametrize("location", ["w.bin", "deep/er/w.bin"])
def test_external_data_beside_the_file(tmp_path, location, monkeypatch):
    (tmp_path / location).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model(), tmp_path / "m.onnx", save_as_external_data=True, location=location, size_threshold=0)
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "m.onnx", (tmp_path / "m.onnx").relative_to(tmp_path)):
        np.testing.assert_allclose(Reference(path, ["y"]).run({"x": X}, ["y"])["y"], [[-5, 0]])


@pytest.mark.parametrize("external", [False, True])
def test_float16_as_it_is_and_widened(tmp_path, external):
    path = tmp_path / "half.onnx"
    onnx.save(model(np.float16), path, save_as_external_data=external, location="half.bin", size_threshold=0)
    half = Reference(path, ["t"]).run({"x": X}, ["t", "z"])
    wide = Reference(path, ["t"], widen=True).run({"x": X}, ["t", "z"])
    assert [half["t"].dtype, wide["t"].dtype, wide["z"].dtype] == [np.float16, np.float32, np.float32]
    np.testing.assert_array_equal(wide["t"], X @ [[1, 2], [3, 1]] + np.float32(np.float16(0.1)))
    assert half["t"][0, 0] != wide["t"][0, 0]


def test_a_sequence_is_no_tensor():
    proto = model()
    proto.graph.node.append(helper.make_node("SequenceConstruct", ["y"], ["s"]))
    assert Reference(proto.SerializeToString(), ["s", "y"]).tensors == ("z", "y")


def test_what_onnxruntime_refuses_has_no_reference():
    proto = model()
    proto.graph.node.append(helper.make_node("Nonsense", ["y"], ["n"], domain="nowhere"))
    with pytest.raises(NoReference, match="Nonsense") as caught:
        Reference(proto.SerializeToString()).run({"x": X}, ["z"])
    assert caught.value.exit_code == 3


def test_what_fails_while_it_runs_has_no_reference():
    with pytest.raises(NoReference):
        Reference(model().SerializeToString()).run({"x": np.ones((1, 3), np.float32)}, ["z"])


def test_feeds_are_cast_and_further_ones_ignored():
    reference = Reference(model().SerializeToString())
    np.testing.assert_allclose(reference.run({"x": X.astype(np.float64), "q": X}, ["z"])["z"], [[0, 0.1]])


def test_nothing_wanted():
    assert Reference(model().SerializeToString(), ["y"]).run({"x": X}, []) == {}


def test_a_node_that_fails_is_named_by_its_name():
    proto = model()
    bits = helper.make_node("NonZero", ["i"], ["n"], name="the one")
    proto.graph.node.extend([helper.make_node("Cast", ["y"], ["i"], to=onnx.TensorProto.INT8), bits])
    proto.graph.output.append(helper.make_tensor_value_info("n", onnx.TensorProto.INT64, None))
    with pytest.raises(NoReference, match="'the one'"):
        Reference(proto.SerializeToString()).run({"x": X}, ["z"])
