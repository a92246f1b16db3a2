"""Random small ONNX graphs: 1 to 12 nodes, ranks 1 to 5, opsets 7 to the newest onnxruntime reads, shared tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, shape_inference

Draw = Callable[[st.SearchStrategy[Any]], Any]
OPSETS = (7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23)
MOST_ELEMENTS = 4096


@dataclass
class Graph:
    """A graph under construction: float tensors and their shapes."""

    draw: Draw
    opset: int
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    _names: int = 0

    def name(self, what: str) -> str:
        self._names += 1
        return f"{what}{self._names}"

    def pick(self, *ranks: int) -> str | None:
        """A tensor of one of the ranks, later ones more often."""
        fitting = [n for n, s in self.shapes.items() if len(s) in ranks]
        return self.draw(st.sampled_from(fitting[-4:] + fitting)) if fitting else None

    def int(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def one(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def constant(self, array: np.ndarray) -> str:
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int, positive: bool = False) -> str:
        array = np.random.default_rng(self.int(0, 999)).standard_normal(shape)
        return self.constant((np.abs(array) + 0.3 if positive else array).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> bool:
        """Append a node if it is legal and its results are small."""
        names = [self.name("t") for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, name=self.name("n"), **attributes)
        found = infer(node, self.shapes, self.constants, self.opset)
        if found is None or any(not s or int(np.prod(s)) > MOST_ELEMENTS or 0 in s for s in found.values()):
            return False
        self.nodes.append(node)
        self.shapes.update(found)
        return True

    def axes(self, op: str, x: str, axes: list[int], since: int, **attributes: Any) -> bool:
        """An op whose axes became an input at opset `since`."""
        if self.opset >= since:
            return self.add(op, x, self.ints(*axes), **attributes)
        return self.add(op, x, axes=axes, **attributes)


def infer(
    node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]], constants: list[onnx.TensorProto], opset: int
) -> dict[str, tuple[int, ...]] | None:
    """Static shapes of a node's outputs, or None when onnx finds none."""
    schema = onnx.defs.get_schema(node.op_type, opset)
    known = {c.name: c for c in constants if c.name in node.input}
    types = {n: helper.make_tensor_type_proto(TensorProto.FLOAT, shapes[n]) for n in node.input if n in shapes}
    types |= {n: helper.make_tensor_type_proto(c.data_type, list(c.dims)) for n, c in known.items()}
    opsets = [helper.make_opsetid("", opset)]
    try:
        found = shape_inference.infer_node_outputs(schema, node, types, known, opset_imports=opsets, ir_version=8)
    except (shape_inference.InferenceError, RuntimeError):
        return None
    dims = {k: v.tensor_type.shape.dim for k, v in found.items()}
    if any(not d.HasField("dim_value") for ds in dims.values() for d in ds):
        return None
    return {k: tuple(d.dim_value for d in ds) for k, ds in dims.items()}


def conv(g: Graph) -> bool:
    x = g.pick(3, 4)
    if x is None:
        return False
    channels, axes = g.shapes[x][1], len(g.shapes[x]) - 2
    group = g.one(1, 1, channels, *(d for d in (2, 3) if channels % d == 0))
    outputs = group * g.int(1, 3)
    kernel = [g.int(1, 3) for _ in range(axes)]
    attributes = {"kernel_shape": kernel, "group": group, "strides": [g.int(1, 2) for _ in range(axes)]}
    if g.int(0, 3):
        attributes["pads"] = [g.int(0, 2) for _ in range(2 * axes)]
        attributes["dilations"] = [g.int(1, 2) for _ in range(axes)]
    else:
        attributes["auto_pad"] = g.one("SAME_UPPER", "SAME_LOWER", "VALID")
    bias = [g.weight(outputs)] if g.int(0, 1) else []
    return g.add("Conv", x, g.weight(outputs, channels // group, *kernel), *bias, **attributes)


def deconv(g: Graph) -> bool:
    x = g.pick(3, 4)
    if x is None:
        return False
    channels, axes = g.shapes[x][1], len(g.shapes[x]) - 2
    group = g.one(1, 1, channels)
    kernel, strides = [g.int(1, 4) for _ in range(axes)], [g.int(1, 3) for _ in range(axes)]
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "group": group,
        "pads": [g.int(0, min(kernel) - 1) for _ in range(2 * axes)],
        "output_padding": [g.int(0, s - 1) for s in strides],
    }
    return g.add("ConvTranspose", x, g.weight(channels, g.int(1, 3), *kernel), **attributes)


def pool(g: Graph) -> bool:
    x = g.pick(3, 4)
    if x is None:
        return False
    axes = len(g.shapes[x]) - 2
    op = g.one("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
    if op.startswith("Global"):
        return g.add(op, x)
    kernel = [g.int(1, 4) for _ in range(axes)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": [g.int(1, 3) for _ in range(axes)]}
    if g.int(0, 3):
        attributes["pads"] = [g.int(0, k - 1) for k in kernel * 2]
    else:
        attributes["auto_pad"] = g.one("SAME_UPPER", "SAME_LOWER")
    if g.opset >= 10 and "pads" in attributes:
        attributes["ceil_mode"] = g.int(0, 1)
    if op == "AveragePool":
        attributes["count_include_pad"] = g.int(0, 1)
    return g.add(op, x, **attributes)


def activation(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4, 5)
    plain = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "HardSigmoid")
    op = g.one(*plain, *(("HardSwish",) if g.opset >= 14 else ()), *(("Mish",) if g.opset >= 18 else ()), "Clip")
    if op != "Clip":
        return g.add(op, x)
    low = -g.int(0, 2) * 0.5
    high = low + g.int(1, 6) * 0.5
    if g.opset >= 11:
        return g.add(op, x, *(g.constant(np.array(v, np.float32)) for v in (low, high)))
    return g.add(op, x, min=low, max=high)


def prelu(g: Graph) -> bool:
    x = g.pick(2, 3, 4)
    if x is None:
        return False
    shape = g.shapes[x]
    return g.add("PRelu", x, g.weight(*g.one((shape[1],) + (1,) * (len(shape) - 2), (1,), shape[1:])))


def binary(g: Graph) -> bool:
    a, b = g.pick(1, 2, 3, 4, 5), g.pick(1, 2, 3, 4, 5)
    return g.add(g.one("Add", "Sub", "Mul"), *g.one((a, b), (a, a)))


def with_constant(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4, 5)
    shape = tuple(d if g.int(0, 1) else 1 for d in g.shapes[x])
    shape = g.one(shape, shape[g.int(0, len(shape)) :])
    op = g.one("Add", "Sub", "Mul", "Div", *(("Max", "Min") if g.opset >= 8 else ()))
    k = g.weight(*shape, positive=op == "Div")
    return g.add(op, *(g.one((x, k), (k, x)) if op != "Div" else (x, k)))


def gate(g: Graph) -> bool:
    """Squeeze-and-excitation or a spatial gate."""
    x = g.pick(4)
    if x is None:
        return False
    axes = g.one([2, 3], [1], [1, 2, 3])
    if not g.axes("ReduceMean", x, axes, 18, keepdims=1) or not g.add("Sigmoid", g.nodes[-1].output[0]):
        return False
    return g.add("Mul", *g.one((x, g.nodes[-1].output[0]), (g.nodes[-1].output[0], x)))


def norm(g: Graph) -> bool:
    x = g.pick(2, 3, 4)
    if x is None:
        return False
    shape = g.shapes[x]
    channels = shape[1]
    if g.int(0, 2) or len(shape) == 2:
        stats = [g.weight(channels, positive=i == 3) for i in range(4)]
        return g.add("BatchNormalization", x, *stats, epsilon=g.one(1e-5, 1e-3))
    if int(np.prod(shape[2:])) < 3:
        return False
    return g.add("InstanceNormalization", x, g.weight(channels), g.weight(channels), epsilon=1e-2)


def reduce(g: Graph) -> bool:
    x = g.pick(2, 3, 4, 5)
    if x is None:
        return False
    rank = len(g.shapes[x])
    axes = sorted(g.draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=rank - 1)))
    axes = g.one(axes, [a - rank for a in axes])
    op = g.one("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2")
    return g.axes(op, x, axes, 13 if op == "ReduceSum" else 18, keepdims=g.int(0, 1))


def reshape(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4, 5)
    shape = list(g.shapes[x])
    kind = g.int(0, 3)
    if kind == 0:
        return g.add("Flatten", x, axis=g.int(0, len(shape)))
    if kind == 1:
        axes = [i for i, d in enumerate(shape) if d == 1]
        return bool(axes) and len(axes) < len(shape) and g.axes("Squeeze", x, axes, 13)
    if kind == 2 and len(shape) < 5:
        return g.axes("Unsqueeze", x, [g.int(0, len(shape))], 13)
    position = g.int(0, len(shape) - 1)
    for divisor in (2, 3):
        if shape[position] % divisor == 0 and len(shape) < 5 and g.int(0, 1):
            shape[position : position + 1] = [divisor, shape[position] // divisor]
            return g.add("Reshape", x, g.ints(*shape))
    if len(shape) > 1:
        at = g.int(0, len(shape) - 2)
        shape[at : at + 2] = [-1]
    return g.add("Reshape", x, g.ints(*shape))


def transpose(g: Graph) -> bool:
    x = g.pick(2, 3, 4, 5)
    return x is not None and g.add("Transpose", x, perm=g.draw(st.permutations(range(len(g.shapes[x])))))


def slices(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4, 5)
    shape = g.shapes[x]
    axes = sorted(g.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1, max_size=2)))
    starts = [g.int(0, shape[a] - 1) for a in axes]
    ends = [g.one(g.int(s + 1, shape[a]), 2**31 - 1) for s, a in zip(starts, axes, strict=True)]
    if g.opset < 10:
        return g.add("Slice", x, axes=axes, starts=starts, ends=ends)
    steps = [g.int(1, 2) for _ in axes]
    return g.add("Slice", x, g.ints(*starts), g.ints(*ends), g.ints(*axes), g.ints(*steps))


def split(g: Graph) -> bool:
    x = g.pick(2, 3, 4, 5)
    if x is None:
        return False
    shape = g.shapes[x]
    axis = g.int(0, len(shape) - 1)
    if shape[axis] < 2:
        return False
    first = g.int(1, shape[axis] - 1)
    sizes = [first, shape[axis] - first]
    axis = g.one(axis, axis - len(shape)) if g.opset >= 11 else axis
    if g.opset >= 13:
        return g.add("Split", x, g.ints(*sizes), outputs=2, axis=axis)
    return g.add("Split", x, outputs=2, axis=axis, split=sizes)


def concat(g: Graph) -> bool:
    x, y = g.pick(2, 3, 4, 5), g.pick(2, 3, 4, 5)
    return (
        x is not None and y is not None and g.add("Concat", *g.one((x, y), (x, x)), axis=g.int(0, len(g.shapes[x]) - 1))
    )


def gather(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4, 5)
    axis = g.int(0, len(g.shapes[x]) - 1)
    size = g.shapes[x][axis]
    if g.int(0, 2) == 0 and len(g.shapes[x]) > 1:
        return g.add("Gather", x, g.constant(np.array(g.int(0, size - 1), np.int64)), axis=axis)
    indices = g.draw(st.lists(st.integers(-size if g.opset >= 11 else 0, size - 1), min_size=1, max_size=4))
    return g.add("Gather", x, g.ints(*indices), axis=axis)


def matmul(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4)
    shape = g.shapes[x]
    if g.int(0, 3) == 0 and len(shape) >= 2:
        return g.add("MatMul", g.weight(g.int(1, 4), shape[-2]), x)
    if g.int(0, 2) == 0:
        return g.add("MatMul", x, g.pick(2, 3, 4) or x)
    return g.add("MatMul", x, g.weight(shape[-1], g.int(1, 4)))


def gemm(g: Graph) -> bool:
    x = g.pick(2)
    if x is None:
        return False
    trans_a, trans_b, outputs = g.int(0, 1), g.int(0, 1), g.int(1, 4)
    inner = g.shapes[x][0 if trans_a else 1]
    w = g.weight(outputs, inner) if trans_b else g.weight(inner, outputs)
    attributes = {"alpha": g.one(1.0, 0.5), "beta": g.one(1.0, 2.0), "transA": trans_a, "transB": trans_b}
    return g.add("Gemm", x, w, g.weight(*g.one((outputs,), (1, outputs), (1,))), **attributes)


def softmax(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4, 5)
    op = g.one("Softmax", "Softmax", "LogSoftmax")
    rank = len(g.shapes[x])
    return g.add(op, x, axis=g.int(-rank if g.opset >= 11 else 0, rank - 1))


def pad(g: Graph) -> bool:
    x = g.pick(1, 2, 3, 4)
    rank = len(g.shapes[x])
    mode = g.one("constant", "constant", "edge", "reflect")
    pads = [g.int(0, 2) if g.int(0, 1) else 0 for _ in range(2 * rank)]
    if mode == "reflect" and any(p >= d for p, d in zip(pads, g.shapes[x] * 2, strict=True)):
        return False
    value = g.one(0.0, 1.5)
    if g.opset >= 11:
        return g.add("Pad", x, g.ints(*pads), g.constant(np.array(value, np.float32)), mode=mode)
    return g.add("Pad", x, pads=pads, mode=mode, value=value)


def resize(g: Graph) -> bool:
    x = g.pick(4)
    if x is None:
        return False
    scales = np.array([1, 1, g.one(1.0, 2.0, 3.0, 1.5), g.one(1.0, 2.0, 0.5)], np.float32)
    mode = g.one("nearest", "linear")
    if g.opset < 9:
        return bool((scales >= 1).all()) and g.add("Upsample", x, mode=mode, scales=scales.tolist())
    if g.opset < 10:
        return bool((scales >= 1).all()) and g.add("Upsample", x, g.constant(scales), mode=mode)
    if g.opset < 11:
        return g.add("Resize", x, g.constant(scales), mode=mode)
    transform = g.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes: dict[str, Any] = {"mode": g.one(mode, "cubic"), "coordinate_transformation_mode": transform}
    if attributes["mode"] == "nearest":
        attributes["nearest_mode"] = g.one("floor", "round_prefer_floor", "ceil")
    roi = g.constant(np.zeros(0, np.float32)) if g.opset < 13 else ""
    return g.add("Resize", x, roi, g.constant(scales), **attributes)


def blocks(g: Graph) -> bool:
    x = g.pick(4)
    if x is None:
        return False
    if g.int(0, 1):
        return g.add("SpaceToDepth", x, blocksize=2)
    mode = {"mode": g.one("DCR", "CRD")} if g.opset >= 11 else {}
    return g.add("DepthToSpace", x, blocksize=2, **mode)


def spread(g: Graph) -> bool:
    x = g.pick(2, 3, 4)
    if x is None:
        return False
    if g.int(0, 1):
        return g.add("Tile", x, g.ints(*(g.int(1, 2) for _ in g.shapes[x])))
    return g.opset >= 8 and g.add("Expand", x, g.ints(*(2 if d == 1 and g.int(0, 1) else d for d in g.shapes[x])))


MAKERS = (
    conv, conv, deconv, pool, pool, activation, activation, prelu, binary, binary, with_constant, with_constant, gate,
    norm, reduce, reshape, reshape, transpose, transpose, slices, split, concat, gather, matmul, gemm, softmax, pad,
    resize, blocks, spread,
)  # fmt: skip


@st.composite
def models(draw: Draw) -> onnx.ModelProto:
    """A legal model of 1 to 12 nodes; every unread tensor is an output, and now and then a read one too."""
    g = Graph(draw, draw(st.sampled_from(OPSETS)))
    for _ in range(draw(st.integers(1, 2))):
        rank = draw(st.sampled_from((4, 4, 4, 3, 2, 5, 1)))
        shape = (draw(st.sampled_from((1, 1, 2))), *(draw(st.integers(1, 7)) for _ in range(rank - 1)))
        name = g.name("x")
        g.shapes[name] = shape[:rank] if rank > 1 else (draw(st.integers(1, 9)),)
        g.inputs.append(name)
    for _ in range(draw(st.integers(1, 12))):
        draw(st.sampled_from(MAKERS))(g)
    if not g.nodes:
        g.add("Relu", g.inputs[0])
    return _model(g)


def _model(g: Graph) -> onnx.ModelProto:
    read = {i for n in g.nodes for i in n.input}
    made = [o for n in g.nodes for o in n.output]
    outputs = [o for o in made if o not in read or g.int(0, 9) == 0]
    values = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in g.shapes.items()}
    graph = helper.make_graph(g.nodes, "fuzz", [values[i] for i in g.inputs], [values[o] for o in outputs], g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=8)
