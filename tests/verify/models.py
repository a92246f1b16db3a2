"""Five small nets with the structures of real ones; weights are seeded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["MODELS", "save"]


class Builder:
    """Nodes named like their output, weights drawn so that values keep their size."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def const(self, name: str, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, name: str, *shape: int) -> str:
        fan = int(np.prod(shape[1:])) or 1
        return self.const(name, (self.rng.standard_normal(shape) * np.sqrt(2 / fan)).astype(np.float32))

    def node(self, op: str, inputs: list[str], output: str | list[str], **attributes: object) -> str:
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"n_{outputs[0]}", **attributes))
        return outputs[0]

    def conv(self, x: str, output: str, cin: int, cout: int, kernel: int = 3, group: int = 1, **more: object) -> str:
        w = self.weights(f"{output}_w", cout, cin // group, kernel, kernel)
        b = self.const(f"{output}_b", (0.3 * self.rng.standard_normal(cout)).astype(np.float32))
        pads = more.pop("pads", [kernel // 2] * 4)
        return self.node("Conv", [x, w, b], output, kernel_shape=[kernel] * 2, pads=pads, group=group, **more)

    def model(self, shape: list[int], outputs: list[str], opset: int = 13) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def classifier() -> onnx.ModelProto:
    """Conv, Relu, a pool that rounds up, strided and dilated convs, global pool, Gemm, Softmax."""
    b = Builder(1)
    b.conv("x", "c1", 3, 8)
    b.node("Relu", ["c1"], "r1")
    b.node("MaxPool", ["r1"], "p1", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    b.conv("p1", "c2", 8, 12, strides=[2, 2])
    b.node("LeakyRelu", ["c2"], "r2", alpha=0.1)
    b.conv("r2", "c3", 12, 12, dilations=[2, 2], pads=[2, 2, 2, 2])
    b.node("Add", ["c3", "r2"], "a3")
    b.node("Relu", ["a3"], "r3")
    b.node("GlobalAveragePool", ["r3"], "g")
    b.node("Flatten", ["g"], "f", axis=1)
    w, bias = b.weights("fc_w", 10, 12), b.const("fc_b", b.rng.standard_normal(10).astype(np.float32))
    b.node("Gemm", ["f", w, bias], "fc", transB=1)
    b.node("Softmax", ["fc"], "prob", axis=1)
    return b.model([1, 3, 32, 32], ["prob"])


def branches() -> onnx.ModelProto:
    """Split in unequal parts, branches, Concat in another order, depthwise convs, channel shuffle."""
    b = Builder(2)
    b.conv("x", "c1", 3, 12)
    sizes = b.const("sizes", np.array([5, 7], np.int64))
    b.node("Split", ["c1", sizes], ["s0", "s1"], axis=1)
    b.node("Sigmoid", ["s0"], "g0")
    b.node("Tanh", ["s1"], "g1")
    b.node("Concat", ["g1", "g0"], "cat1", axis=1)
    b.conv("cat1", "dw", 12, 12, group=12)
    b.node("Relu", ["dw"], "r_dw")
    b.conv("r_dw", "pw", 12, 12, kernel=1)
    b.node("Concat", ["pw", "c1"], "cat2", axis=1)
    b.node("Reshape", ["cat2", b.const("sh1", np.array([1, 2, 12, 16, 16], np.int64))], "u1")
    b.node("Transpose", ["u1"], "u2", perm=[0, 2, 1, 3, 4])
    b.node("Reshape", ["u2", b.const("sh2", np.array([1, 24, 16, 16], np.int64))], "shuffled")
    b.conv("shuffled", "c2", 24, 6, group=2, kernel=1)
    b.node("AveragePool", ["c2"], "ap", kernel_shape=[2, 2], strides=[2, 2])
    return b.model([1, 3, 16, 16], ["ap", "r_dw"])


def detector() -> onnx.ModelProto:
    """The head of a GFL detector: Reshape, Transpose, Softmax, MatMul, and two levels joined."""
    b = Builder(3)
    b.conv("x", "stem", 3, 16, strides=[2, 2])
    b.node("Relu", ["stem"], "feat")
    b.conv("feat", "down", 16, 16, strides=[2, 2])
    b.node("Relu", ["down"], "feat2")
    levels = []
    for name, source, size in (("a", "feat", 8), ("b", "feat2", 4)):
        b.conv(source, f"{name}_box", 16, 32, kernel=1)
        shape = b.const(f"{name}_shape", np.array([1, 32, size * size], np.int64))
        b.node("Reshape", [f"{name}_box", shape], f"{name}_flat")
        b.node("Transpose", [f"{name}_flat"], f"{name}_rows", perm=[0, 2, 1])
        levels.append(f"{name}_rows")
    b.node("Concat", levels, "rows", axis=1)
    b.node("Reshape", ["rows", b.const("bins", np.array([1, 320, 8], np.int64))], "binned")
    b.node("Softmax", ["binned"], "dist", axis=2)
    b.node("MatMul", ["dist", b.const("project", np.arange(8, dtype=np.float32).reshape(8, 1))], "expected")
    b.node("Reshape", ["expected", b.const("four", np.array([1, 80, 4], np.int64))], "boxes")
    return b.model([1, 3, 16, 16], ["boxes", "rows"])


def decoder() -> onnx.ModelProto:
    """Transposed convolution, nearest upsampling, a skip connection, a gate per channel."""
    b = Builder(4)
    b.conv("x", "e1", 4, 8)
    b.node("Relu", ["e1"], "e1r")
    b.conv("e1r", "e2", 8, 16, strides=[2, 2])
    b.node("Relu", ["e2"], "e2r")
    w, bias = b.weights("up_w", 16, 8, 2, 2), b.const("up_b", b.rng.standard_normal(8).astype(np.float32))
    b.node("ConvTranspose", ["e2r", w, bias], "up", kernel_shape=[2, 2], strides=[2, 2])
    b.node("Add", ["up", "e1r"], "skip")
    b.node("GlobalAveragePool", ["skip"], "pooled")
    b.conv("pooled", "se", 8, 8, kernel=1)
    b.node("Sigmoid", ["se"], "gate")
    b.node("Mul", ["skip", "gate"], "gated")
    b.node("Resize", ["gated", "", b.const("scales", np.array([1, 1, 2, 2], np.float32))], "big", mode="nearest",
           coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    b.conv("big", "mask", 8, 3)
    b.node("Sigmoid", ["mask"], "y")
    return b.model([1, 4, 16, 16], ["y"])


def arithmetic() -> onnx.ModelProto:
    """BatchNorm in front of a nonlinearity, PRelu, constants, Clip, an average pool, reductions, two products."""
    b = Builder(5)
    rng = b.rng
    stats = [
        b.const("bn_s", rng.uniform(0.5, 1.5, 6).astype(np.float32)),
        b.const("bn_b", rng.standard_normal(6).astype(np.float32)),
        b.const("bn_m", rng.standard_normal(6).astype(np.float32)),
        b.const("bn_v", rng.uniform(0.5, 1.5, 6).astype(np.float32)),
    ]
    b.node("BatchNormalization", ["x", *stats], "bn")
    b.node("PRelu", ["bn", b.const("slope", rng.uniform(0.1, 0.4, (6, 1, 1)).astype(np.float32))], "pr")
    b.conv("pr", "c1", 6, 6)
    b.node("Clip", ["c1", b.const("lo", np.float32(-1).reshape(())), b.const("hi", np.float32(1.5).reshape(()))], "cl")
    b.node("Mul", ["cl", b.const("two", np.array([1.7], np.float32))], "scaled")
    b.node("Tanh", ["scaled"], "t")
    b.node("Mul", ["t", "pr"], "prod")
    b.node("Max", ["prod", "cl"], "mx")
    b.node("AveragePool", ["mx"], "av", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], count_include_pad=1)
    b.node("Sub", ["av", "mx"], "sub")
    b.node("ReduceMean", ["sub"], "mean", axes=[2, 3], keepdims=0)
    w = b.weights("m_w", 6, 6)
    b.node("MatMul", ["mean", w], "mm")
    b.node("Elu", ["mm"], "y", alpha=1.0)
    return b.model([1, 6, 12, 12], ["y", "t"])


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f for f in (classifier, branches, detector, decoder, arithmetic)
}


def save(name: str, folder: Path) -> Path:
    """Write a model; its path."""
    path = folder / f"{name}.onnx"
    onnx.save(MODELS[name](), path)
    return path
