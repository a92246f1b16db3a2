"""Networks of well-known sizes with synthetic weights, for measuring only: bench_models.py NAME FILE writes one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from nanodet_m import nanodet

__all__ = ["MODELS"]


class Chain:
    """A net under construction; `x` is the tensor the next layer reads."""

    def __init__(self, size: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.x, self.channels, self.size = "data", 3, size
        self._rng = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [*(inputs or (self.x,))], [name], name=f"n_{name}", **attributes))
        self.x = name
        return name

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        scale = (2 / max(int(np.prod(shape[1:])), 1)) ** 0.5
        array = self._rng.standard_normal(shape, np.float32) * np.float32(scale)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, outputs: int, kernel: int = 3, stride: int = 1, group: int = 1) -> str:
        w = self.weight(outputs, self.channels // group, kernel, kernel)
        pads = [kernel // 2] * 4
        self.channels = outputs
        return self.op(
            "Conv",
            self.x,
            w,
            self.weight(outputs),
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=pads,
            group=group,
        )

    def dense(self, inputs: int, outputs: int) -> str:
        return self.op("Gemm", self.x, self.weight(outputs, inputs), self.weight(outputs), transB=1)

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "bench",
            [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, self.size, self.size])],
            [helper.make_tensor_value_info(self.x, TensorProto.FLOAT, None)],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def resnet18() -> onnx.ModelProto:
    """11.7 M weights, 224 x 224."""
    net = Chain(224)
    net.conv(64, 7, 2)
    net.op("Relu")
    net.op("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        shortcut, channels = net.x, net.channels
        net.conv(width, 3, stride)
        net.op("Relu")
        body = net.conv(width)
        if stride > 1 or channels != width:
            net.x, net.channels = shortcut, channels
            shortcut = net.conv(width, 1, stride)
        net.op("Add", body, shortcut)
        net.op("Relu")
    net.op("GlobalAveragePool")
    net.op("Flatten")
    net.dense(512, 1000)
    return net.model()


def mobilenetv2() -> onnx.ModelProto:
    """3.5 M weights, 224 x 224."""
    net = Chain(224)

    def relu6() -> None:
        net.op("Clip", net.x, "lo", "hi")

    net.conv(32, 3, 2)
    relu6()
    for expand, width, units, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ):  # fmt: skip
        for unit in range(units):
            shortcut, channels = net.x, net.channels
            hidden = channels * expand
            if expand > 1:
                net.conv(hidden, 1)
                relu6()
            net.conv(hidden, 3, stride if unit == 0 else 1, hidden)
            relu6()
            body = net.conv(width, 1)
            if unit and channels == width:
                net.op("Add", body, shortcut)
    net.conv(1280, 1)
    relu6()
    net.op("GlobalAveragePool")
    net.op("Flatten")
    net.dense(1280, 1000)
    net.weights += [numpy_helper.from_array(np.float32(v), k) for k, v in (("lo", 0), ("hi", 6))]
    return net.model()


def vgg16() -> onnx.ModelProto:
    """138 M weights (553 MB), 224 x 224."""
    net = Chain(224)
    for width, units in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(units):
            net.conv(width)
            net.op("Relu")
        net.op("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    net.op("Flatten")
    for inputs, outputs in ((25088, 4096), (4096, 4096), (4096, 1000)):
        net.dense(inputs, outputs)
    return net.model()


MODELS = {"resnet18": resnet18, "mobilenetv2": mobilenetv2, "nanodet_m": nanodet, "vgg16": vgg16}


if __name__ == "__main__":
    onnx.save(MODELS[sys.argv[1]](), sys.argv[2])
