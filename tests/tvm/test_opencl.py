"""`--target opencl` and `mali`: a device compiles every kernel, and what Relay makes runs there and is equal."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2caffe
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.tvm.registry import DIALECTS
from onnx2caffe.tvm.targets import HOST, PRESETS
from tests.ops.harness import difference, reference
from tests.tvm import opencl
from tests.tvm.arm import runtime
from tests.tvm.boards import MACHINES
from tests.tvm.harness import emitted


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """A convolution, one by channels, pooling, resizing, a sum, a product, Softmax."""
    random = np.random.default_rng(0)
    shapes = {"w": (8, 3, 3, 3), "b": (8,), "d": (8, 1, 3, 3), "m": (8, 5)}
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    weights["scales"] = np.array([1, 1, 2, 2], np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "d"], ["s"], pads=[1, 1, 1, 1], group=8, strides=[2, 2]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Add", ["s", "p"], ["a"]),
        helper.make_node("Resize", ["a", "", "scales"], ["u"], mode="nearest"),
        helper.make_node("Transpose", ["u"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["t", "m"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"], axis=-1),
    ]
    constants = [numpy_helper.from_array(w, name) for name, w in weights.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 12, 10))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 12, 10, 5))
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("target", ["opencl", "mali"])
def test_a_device_compiles_the_kernels(target: str, dialect: str, model, tmp_path: Path, running) -> None:
    running(dialect)
    if (device := opencl.device()) is None:
        pytest.skip(opencl.PACKAGES)
    onnx.save(model, tmp_path / "net.onnx")
    export = onnx2caffe.export_tvm(
        tmp_path / "net.onnx", tmp_path / "out", dialect=dialect, target=target, compare=False
    )
    texts = opencl.sources(export.files["library"].read_bytes())
    kernels = [name for text in texts for name in opencl.names(text)]
    assert len(kernels) >= 9
    assert [name for text in texts for name in device.compiled(text)] == kernels


@pytest.mark.parametrize("target", ["opencl", "mali"])
def test_relay_runs_there(target: str, model, tmp_path: Path, running, app: Path) -> None:
    tvm: Tvm = running("relay")
    _, program = emitted(model, "relay")
    tvm.load(program.program.to_json(), program.program.arrays)
    tvm.build({**PRESETS[target], "host": HOST}, 3)
    tvm.write(tmp_path / "net", tmp_path / "net.so")
    x = np.random.default_rng(1).standard_normal((1, 3, 12, 10)).astype(np.float32)
    (found,) = runtime.run(app, tmp_path / "net.so", {"x": x}, [(1, 12, 10, 5)], MACHINES["host"])
    assert difference(reference(model, {"x": x})["y"], found) <= 1e-5


@pytest.fixture(scope="module")
def app(tmp_path_factory, running) -> Path:
    """TVM's runtime with an OpenCL device, which the packages of `setup relay` have as source alone."""
    if opencl.device() is None or shutil.which("g++") is None:
        pytest.skip(f"{opencl.PACKAGES} g++")
    (package,) = running("relay").python.parents[1].glob("lib/python*/site-packages/tvm")
    folder = tmp_path_factory.mktemp("opencl")
    return runtime.build(folder, package, MACHINES["host"], opencl=True, level="-O0")  # there the device computes
