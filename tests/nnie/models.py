"""Small models that only partly fit a target, and how tests convert them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Collects nodes; weights are seeded."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._rng = np.random.RandomState(0)

    def node(self, type: str, inputs: list[str], output: str, outputs: list[str] | None = None, **attributes) -> str:
        self.nodes.append(helper.make_node(type, inputs, outputs or [output], name=f"n_{output}", **attributes))
        return output

    def constant(self, name: str, array) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def conv(self, x: str, name: str, channels: int, out: int, kernel: int = 3) -> str:
        weights = self._rng.standard_normal((out, channels, kernel, kernel)) * (2 / (channels * kernel**2)) ** 0.5
        self.constant(f"{name}.w", weights.astype(np.float32))
        self.constant(f"{name}.b", (0.1 * self._rng.standard_normal(out)).astype(np.float32))
        return self.node("Conv", [x, f"{name}.w", f"{name}.b"], name, pads=[kernel // 2] * 4)

    def model(self, inputs: dict[str, list[int]], outputs: list[str], integers: tuple[str, ...] = ()):
        kinds = {name: TensorProto.INT64 if name in integers else TensorProto.FLOAT for name in outputs}
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def warped():
    """conv, relu, sampling at computed places, conv, relu: the middle can be no Caffe layer. One inner output."""
    g = Graph()
    g.node("Relu", [g.conv("x", "c1", 3, 8)], "r1")
    g.node("GridSample", ["r1", "grid"], "warped")
    g.node("Relu", [g.conv("warped", "c2", 8, 6)], "r2")
    g.node("Sigmoid", ["r2"], "s")
    return g.model({"x": [1, 3, 12, 16], "grid": [1, 12, 16, 2]}, ["s", "r1"])


def detector():
    """Two levels of a head: scores through Sigmoid, boxes through a grid and a stride, joined; then the best scores."""
    g = Graph()
    trunk = g.node("Relu", [g.conv("x", "c0", 3, 8)], "r0")
    g.node("MaxPool", [trunk], "p0", kernel_shape=[2, 2], strides=[2, 2])
    boxes, scores = [], []
    for level, (source, size) in enumerate((("r0", 8), ("p0", 4))):
        g.node("Sigmoid", [g.conv(source, f"cls{level}", 8, 5, 1)], f"score{level}")
        g.conv(source, f"box{level}", 8, 4, 1)
        grid = np.stack([*np.meshgrid(np.arange(size), np.arange(size))] * 2)[None].astype(np.float32)
        g.node("Add", [f"box{level}", g.constant(f"grid{level}", grid)], f"moved{level}")
        g.node("Mul", [f"moved{level}", g.constant(f"stride{level}", np.float32(2**level * 8))], f"decoded{level}")
        for name, channels, into in ((f"decoded{level}", 4, boxes), (f"score{level}", 5, scores)):
            shape = g.constant(f"{name}.shape", np.array([1, channels, size * size]))
            into.append(g.node("Reshape", [name, shape], f"{name}.flat"))
    g.node("Concat", boxes, "boxes", axis=2)
    g.node("Concat", scores, "scores", axis=2)
    g.node("Concat", ["boxes", "scores"], "all", axis=1)
    return g.model({"x": [1, 3, 8, 8]}, ["all"])


def classifier():
    """conv, relu, global pooling, dense layer, softmax: legal as a whole."""
    g = Graph()
    g.node("Relu", [g.conv("x", "c1", 3, 8)], "r1")
    g.node("GlobalAveragePool", ["r1"], "pool")
    g.node("Flatten", ["pool"], "flat")
    rng = np.random.RandomState(1)
    g.constant("fc.w", rng.standard_normal((8, 5)).astype(np.float32))
    g.constant("fc.b", rng.standard_normal(5).astype(np.float32))
    g.node("Gemm", ["flat", "fc.w", "fc.b"], "fc")
    g.node("Softmax", ["fc"], "prob", axis=1)
    return g.model({"x": [1, 3, 16, 16]}, ["prob"])


def quantised(head_only: bool):
    """Two convolutions whose inputs are rounded to eight bits and back; or only the first one's input."""
    g = Graph()
    g.constant("scale", np.float32(0.05))
    g.constant("zero", np.uint8(128))
    x = "x"
    for layer in ("c1", "c2"):
        if layer == "c1" or not head_only:
            g.node("QuantizeLinear", [x, "scale", "zero"], f"{layer}.q")
            x = g.node("DequantizeLinear", [f"{layer}.q", "scale", "zero"], f"{layer}.dq")
        x = g.node("Relu", [g.conv(x, layer, 3, 3)], f"{layer}.r")
    return g.model({"x": [1, 3, 9, 8]}, [x])


def save(model, folder: Path, name: str = "m") -> Path:
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def read_map(folder: Path, name: str = "m") -> dict:
    return json.loads((folder / f"{name}.map.json").read_text())
