#!/usr/bin/env python3
"""Build a NanoDet-m as PyTorch exports it: ShuffleNetV2 1.0x, PAN, GFL head with the integral inside.

The net is the published one (backbone widths 24/116/232/464, 96-channel PAN, three levels, 80 classes, 8 bins per box
side); its weights are seeded noise. Every BatchNormalization gets the statistics its input really has on a structured
picture, so that activations stay alive through all layers: with random statistics most of the net would be zeros, and
a comparison of zeros proves nothing.

    python examples/nanodet_m.py -o nanodet_m.onnx [--size 320] [--upsample bilinear|deconv]
        [--decode] [--pixels] [--seed 0]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CLASSES, BINS, WIDTH = 80, 8, 96
STAGES = ((116, 4), (232, 8), (464, 4))
STRIDES = (8, 16, 32)
MEAN, DEVIATION = (103.53, 116.28, 123.675), (57.375, 57.12, 58.395)
"""Of pixels B, G, R, as the published model's training has them (`normalize` in its configuration)."""
OPSET = 11


class Graph:
    """Collects nodes and initializers; every method returns the name of its result."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.norms: list[str] = []
        self._rng = np.random.default_rng(seed)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """One node; several outputs are named .0, .1 and so on."""
        name = f"{kind}_{len(self.nodes)}"
        results = [name] if outputs == 1 else [f"{name}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, results, name=f"node_{name}", **attributes))
        return name

    def constant(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"const_{len(self.constants)}"
        self.constants[name] = array
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape: int, fan_in: int) -> str:
        scale = np.sqrt(2 / fan_in)
        return self.constant((scale * self._rng.standard_normal(shape)).astype(np.float32), f"w_{len(self.constants)}")

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        pad = kernel // 2
        w = self.weights(outputs, inputs // group, kernel, kernel, fan_in=inputs // group * kernel * kernel)
        return self.op(
            "Conv", x, w, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group, dilations=[1, 1]
        )

    def norm(self, x: str, channels: int) -> str:
        """BatchNormalization; mean and variance are filled in by `calibrate`."""
        name = f"bn_{len(self.norms)}"
        self.norms.append(name)
        gamma = self._rng.uniform(0.6, 1.4, channels).astype(np.float32)
        beta = (0.2 * self._rng.standard_normal(channels)).astype(np.float32)
        parts = {"gamma": gamma, "beta": beta, "mean": np.zeros_like(beta), "var": np.ones_like(beta)}
        return self.op(
            "BatchNormalization", x, *(self.constant(v, f"{name}.{k}") for k, v in parts.items()), epsilon=1e-5
        )

    def conv_norm(self, x: str, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        return self.norm(self.conv(x, inputs, outputs, kernel, stride, group), outputs)

    def act(self, x: str) -> str:
        return self.op("LeakyRelu", x, alpha=0.1)


def shuffle(g: Graph, x: str, channels: int, size: int) -> str:
    """Channel shuffle of two groups, spelled as PyTorch exports it."""
    x = g.op("Reshape", x, g.ints(1, 2, channels // 2, size, size))
    x = g.op("Transpose", x, perm=[0, 2, 1, 3, 4])
    return g.op("Reshape", x, g.ints(1, -1, size, size))


def shuffle_unit(g: Graph, x: str, channels: int, size: int) -> str:
    """Stride 1: half of the channels pass, half are convolved."""
    half = channels // 2
    split = g.op("Split", x, outputs=2, axis=1, split=[half, half])
    y = g.act(g.conv_norm(f"{split}.1", half, half))
    y = g.conv_norm(y, half, half, 3, group=half)
    y = g.act(g.conv_norm(y, half, half))
    return shuffle(g, g.op("Concat", f"{split}.0", y, axis=1), channels, size)


def down_unit(g: Graph, x: str, inputs: int, channels: int, size: int) -> str:
    """Stride 2: both branches are convolved; `size` is the side after it."""
    half = channels // 2
    left = g.act(g.conv_norm(g.conv_norm(x, inputs, inputs, 3, 2, inputs), inputs, half))
    right = g.act(g.conv_norm(x, inputs, half))
    right = g.act(g.conv_norm(g.conv_norm(right, half, half, 3, 2, half), half, half))
    return shuffle(g, g.op("Concat", left, right, axis=1), channels, size)


def backbone(g: Graph, x: str, size: int) -> list[str]:
    """ShuffleNetV2 1.0x; the three maps at strides 8, 16, 32."""
    x = g.act(g.conv_norm(x, 3, 24, 3, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs, size, maps = 24, size // 4, []
    for channels, units in STAGES:
        size //= 2
        x = down_unit(g, x, inputs, channels, size)
        for _ in range(units - 1):
            x = shuffle_unit(g, x, channels, size)
        inputs = channels
        maps.append(x)
    return maps


def resize(g: Graph, x: str, scale: float) -> str:
    """Bilinear, half-pixel: F.interpolate(mode="bilinear", align_corners=False)."""
    scales = g.constant(np.array([1, 1, scale, scale], np.float32))
    roi = g.constant(np.empty(0, np.float32))
    return g.op("Resize", x, roi, scales, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")


def double(g: Graph, x: str, upsample: str) -> str:
    if upsample == "bilinear":
        return resize(g, x, 2.0)
    w = g.weights(WIDTH, 1, 4, 4, fan_in=4)
    return g.op("ConvTranspose", x, w, kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1], group=WIDTH)


def pan(g: Graph, maps: list[str], upsample: str) -> list[str]:
    """Top-down and bottom-up sums of 96-channel maps."""
    low, mid, high = (g.conv_norm(m, c, WIDTH) for m, (c, _) in zip(maps, STAGES, strict=True))
    mid = g.op("Add", mid, double(g, high, upsample))
    low = g.op("Add", low, double(g, mid, upsample))
    mid = g.op("Add", mid, resize(g, low, 0.5))
    high = g.op("Add", high, resize(g, mid, 0.5))
    return [low, mid, high]


def head(g: Graph, x: str) -> tuple[str, str]:
    """One level: class scores (1, HW, 80) and box distances in bins (1, HW, 4), the integral taken."""
    for _ in range(2):
        x = g.act(g.conv_norm(x, WIDTH, WIDTH, 3, group=WIDTH))
        x = g.act(g.conv_norm(x, WIDTH, WIDTH))
    x = g.norm(g.conv(x, WIDTH, CLASSES + 4 * BINS), CLASSES + 4 * BINS)
    split = g.op("Split", x, outputs=2, axis=1, split=[CLASSES, 4 * BINS])
    scores = g.op("Reshape", g.op("Sigmoid", f"{split}.0"), g.ints(1, CLASSES, -1))
    scores = g.op("Transpose", scores, perm=[0, 2, 1])
    boxes = g.op("Transpose", g.op("Reshape", f"{split}.1", g.ints(1, 4 * BINS, -1)), perm=[0, 2, 1])
    bins = g.op("Softmax", g.op("Reshape", boxes, g.ints(-1, BINS)), axis=1)
    project = g.constant(np.arange(BINS, dtype=np.float32).reshape(BINS, 1))
    return scores, g.op("Reshape", g.op("MatMul", bins, project), g.ints(1, -1, 4))


def decode(g: Graph, distances: str, size: int) -> str:
    """Distances in cells to boxes (x1, y1, x2, y2) in pixels around the cells' centres."""
    strides, centres = [], []
    for stride in STRIDES:
        cells = (np.arange(size // stride) + 0.5) * stride
        centres.append(np.stack(np.meshgrid(cells, cells), -1).reshape(-1, 2))
        strides.append(np.full((len(centres[-1]), 1), stride))
    stride, centre = (np.concatenate(parts)[None].astype(np.float32) for parts in (strides, centres))
    pixels = g.op("Split", g.op("Mul", distances, g.constant(stride)), outputs=2, axis=2, split=[2, 2])
    middle = g.constant(centre)
    return g.op("Concat", g.op("Sub", middle, f"{pixels}.0"), g.op("Add", middle, f"{pixels}.1"), axis=2)


def picture(size: int, seed: int) -> np.ndarray:
    """Smooth structures and a little noise, as the proof's own inputs are."""
    rng = np.random.default_rng(seed)
    x = 0.3 * rng.standard_normal((1, 3, size, size))
    for cells in (2, 5, 10):
        x += np.kron(rng.standard_normal((1, 3, cells, cells)), np.ones((-(-size // cells),) * 2))[..., :size, :size]
    return x.astype(np.float32)


def calibrate(g: Graph, size: int, seed: int) -> None:
    """Give every BatchNormalization its input's own mean and variance, measured in one run."""
    nodes, wanted = [], []
    for node in g.nodes:
        if node.op_type != "BatchNormalization":
            nodes.append(node)
            continue
        name = node.input[1].removesuffix(".gamma")
        mean, var = f"{name}_mean", f"{name}_var"
        steps = (
            ("ReduceMean", [node.input[0]], f"{mean}_4d", {"axes": [0, 2, 3]}),
            ("Sub", [node.input[0], f"{mean}_4d"], f"{name}_centred", {}),
            ("Mul", [f"{name}_centred"] * 2, f"{name}_square", {}),
            ("ReduceMean", [f"{name}_square"], var, {"axes": [0, 2, 3], "keepdims": 0}),
            ("Squeeze", [f"{mean}_4d"], mean, {"axes": [0, 2, 3]}),
            ("BatchNormalization", [*node.input[:3], mean, var], node.output[0], {"epsilon": 1e-5}),
        )
        nodes += [helper.make_node(kind, inputs, [result], **attributes) for kind, inputs, result, attributes in steps]
        wanted += [mean, var]
    model = assemble(nodes, g.constants, size, wanted)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    measured = dict(zip(wanted, session.run(wanted, {"data": picture(size, seed)}), strict=True))
    for name in g.norms:
        g.constants[f"{name}.mean"], g.constants[f"{name}.var"] = measured[f"{name}_mean"], measured[f"{name}_var"]


def assemble(
    nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], size: int, outputs: list[str]
) -> onnx.ModelProto:
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "nanodet_m",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(v, k) for k, v in constants.items() if k in used],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="example"
    )


def nanodet(size: int = 320, upsample: str = "bilinear", seed: int = 0, decoded: bool = False) -> onnx.ModelProto:
    """The whole net: input `data` (1, 3, size, size), outputs `scores` (1, N, 80) and `boxes` (1, N, 4).

    Boxes are distances in cells, or `decoded` to pixels.
    """
    g = Graph(seed)
    levels = [head(g, m) for m in pan(g, backbone(g, "data", size), upsample)]
    for output, parts in zip(("scores", "boxes"), zip(*levels, strict=True), strict=True):
        joined = g.op("Concat", *parts, axis=1)
        if output == "boxes" and decoded:
            decode(g, joined, size)
        g.nodes[-1].output[0] = output
    calibrate(g, size, seed)
    model = assemble(g.nodes, g.constants, size, ["scores", "boxes"])
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def take_pixels(model: onnx.ModelProto) -> None:
    """Subtract the mean of pixels 0 … 255 and divide by their deviation inside the model."""
    graph = model.graph
    for node in graph.node:
        node.input[:] = ["normalized" if name == "data" else name for name in node.input]
    for kind, value, numbers, made in (
        ("Div", "centred", DEVIATION, "normalized"),
        ("Sub", "data", MEAN, "centred"),
    ):
        constant = np.array(numbers, np.float32).reshape(1, 3, 1, 1)
        graph.initializer.append(numpy_helper.from_array(constant, f"{made}_by"))
        graph.node.insert(0, helper.make_node(kind, [value, f"{made}_by"], [made], name=f"node_{made}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("nanodet_m.onnx"))
    parser.add_argument("--size", type=int, default=320, help="input side, a multiple of 32")
    parser.add_argument("--upsample", choices=("bilinear", "deconv"), default="bilinear")
    parser.add_argument("--decode", action="store_true", help="boxes in pixels instead of distances in cells")
    parser.add_argument("--pixels", action="store_true", help="take pixels 0 ... 255: mean and deviation inside")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.size <= 0 or options.size % 32:
        parser.error("--size must be a positive multiple of 32")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    model = nanodet(options.size, options.upsample, options.seed, options.decode)
    if options.pixels:
        take_pixels(model)
    onnx.save(model, options.output)
    print(f"wrote {options.output}: {len(model.graph.node)} nodes, {options.output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
