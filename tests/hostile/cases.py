"""What is tried on `convert`, and how it must end: one row of the table in README.md each.

An attack gets an empty folder, puts files there and returns the arguments; `says` is a part of the message.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile.models import external, graph, save, tensor, with_names
from tests.verify.models import MODELS

__all__ = ["ATTACKS", "Attack"]

Words = list[str | Path]


@dataclass(frozen=True)
class Attack:
    """One hostile input: what it is, how it is made, the exit code and a part of the message (nothing for code 0)."""

    what: str
    make: Callable[[Path], Words | Path] = field(repr=False)
    code: int
    says: str = ""


def model(body: str, **settings: str | int) -> Callable[[Path], Path]:
    return lambda folder: save(graph(body, **settings), folder)  # type: ignore[arg-type]


def changed(change: Callable[[onnx.ModelProto], object], body: str = "{ y = Relu(x) }") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        proto = graph(body)
        change(proto)
        return save(proto, folder)

    return make


def data(content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "m.onnx").write_bytes(content)
        return folder / "m.onnx"

    return make


def spoiled(spoil: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    return data(spoil(MODELS["classifier"]().SerializeToString()))


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "m.onnx")
    return folder / "m.onnx"


def _loop(folder: Path) -> Path:
    (folder / "m.onnx").symlink_to("m.onnx")
    return folder / "m.onnx"


def _zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "m.onnx", "w") as archive:
        archive.writestr("model.onnx", b"\0" * 100)
    return folder / "m.onnx"


FILES = [
    Attack("a path where nothing is", lambda folder: folder / "gone.onnx", 2, "gone.onnx"),
    Attack("a folder", lambda folder: folder, 2, "is a folder"),
    Attack("an empty file", data(b""), 2, "is empty"),
    Attack("a text file", data(b"a model, honestly\n" * 9), 2, "is no readable ONNX model"),
    Attack("a file of zeros", data(bytes(4096)), 2, "is no readable ONNX model"),
    Attack("a zip archive", _zip, 2, "is no readable ONNX model"),
    Attack("a pipe that nobody writes into", _pipe, 2, "no regular file"),
    Attack("a device", lambda _: Path("/dev/zero"), 2, "no regular file"),
    Attack("a symbolic link to itself", _loop, 2, "cannot be read"),
    Attack("a path with NUL in it", lambda _: Path("a\0b.onnx"), 2, "a\\x00b.onnx"),
    Attack("a path of 5,000 characters", lambda _: Path("a" * 5000), 2, "cannot be read"),
    Attack("a model cut in half", spoiled(lambda b: b[: len(b) // 2]), 2, "is no readable ONNX model"),
    Attack("a model without its last byte", spoiled(lambda b: b[:-1]), 2, "is no readable ONNX model"),
    Attack("a model and 1,000 bytes more", spoiled(lambda b: b + b"\xff" * 1000), 2, "is no readable ONNX model"),
    Attack("a model twice in one file", spoiled(lambda b: b + b), 2, "two graph inputs"),
    Attack("a message without a graph", data(onnx.ModelProto(ir_version=8).SerializeToString()), 2, "no graph"),
    Attack(
        "a bias of another length than its layer's",
        model("<float[4,3,1,1] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3] b = {1,2,3}> { y = Conv(x, w, b) }"),
        3,
        "needs blobs of shapes",
    ),
    Attack(
        "slopes of another number than the last axis has",
        model("<float[4] s = {1,2,3,4}> { y = PRelu(x, s) }"),
        3,
        "onnxruntime cannot run",
    ),
    Attack("windows of -1 channels", model("{ y = LRN <size: int = -1> (x) }"), 3, "onnxruntime cannot run"),
    Attack("no opset", changed(lambda m: m.ClearField("opset_import")), 2, "no opset"),
    Attack("opset 9999", changed(lambda m: setattr(m.opset_import[0], "version", 9999)), 3, "opset 9999"),
    Attack("opset -1", changed(lambda m: setattr(m.opset_import[0], "version", -1)), 3, "opset -1"),
    Attack(
        "an ir_version of the future", changed(lambda m: setattr(m, "ir_version", 9999)), 3, "onnxruntime cannot run"
    ),
]


def _linked(folder: Path) -> Path:
    (folder / "inside").mkdir()
    path = external(folder / "inside", location="link")
    (folder / "inside" / "m.bin").rename(folder / "secret")
    (folder / "inside" / "link").symlink_to(folder / "secret")
    return path


def _above(folder: Path) -> Path:
    (folder / "inside").mkdir()
    path = external(folder / "inside", location="../secret")
    (folder / "inside" / "m.bin").rename(folder / "secret")
    return path


def _folder_as_data(folder: Path) -> Path:
    (folder / "sub").mkdir()
    return external(folder, location="sub")


def _pipe_as_data(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return external(folder, location="pipe")


EXTERNAL = [
    Attack("external data in `../`", _above, 2, "outside the model's own folder"),
    Attack("external data at an absolute path", lambda f: external(f, location="/etc/passwd"), 2, "outside"),
    Attack("external data behind a symbolic link to elsewhere", _linked, 2, "outside the model's own folder"),
    Attack("external data that is missing", lambda f: external(f, location="gone.bin"), 2, "is missing"),
    Attack("external data that is a folder", _folder_as_data, 2, "is missing"),
    Attack("external data that is a pipe", _pipe_as_data, 2, "is missing"),
    Attack("external data shorter than said", lambda f: external(f, length="99999"), 2, "which has 16,384 bytes"),
    Attack("external data longer than the tensor", lambda f: external(f, length="4"), 2, "need 16,384 bytes"),
    Attack("external data that claims 5 GB", lambda f: external(f, length=str(5 << 30)), 2, "which has 16,384 bytes"),
    Attack("external data at offset -8", lambda f: external(f, offset="-8"), 2, "at -8"),
    Attack("external data at offset `many`", lambda f: external(f, offset="many"), 2, "does not fit"),
    Attack(
        "external data without a location", lambda f: external(f, location=""), 2, "does not fit its type and shape"
    ),
    Attack("external data at a path with NUL", lambda f: external(f, location="a\0b"), 2, "no usable path"),
]


def claims(dims: list[int], content: bytes = b"\0" * 4) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        proto = graph("<float[1] w = {0}> { y = Add(x, w) }")
        proto.graph.initializer[0].CopyFrom(tensor("w", dims, content))
        return save(proto, folder)

    return make


BIG = "int64[2] big = {50000, 50000}"
BOMBS = [
    Attack("4 bytes that claim to be 5 GB", claims([5 << 28]), 2, "need 5,368,709,120 bytes, 4 are there"),
    Attack("dims whose product overflows", claims([1 << 40, 1 << 40]), 2, "does not fit"),
    Attack("negative dims of a constant", claims([-1, -4]), 2, "does not fit"),
    Attack("a constant without data", claims([2, 2], b""), 2, "does not fit"),
    Attack(
        "ConstantOfShape of 10 GB",
        model(f"<{BIG}> {{ c = ConstantOfShape(big) y = Add(x, c) }}"),
        3,
        "'c': its output would have 2,500,000,000 elements",
    ),
    Attack(
        "Expand to 10 GB",
        model(f"<{BIG}, float[1] one = {{1}}> {{ c = Expand(one, big) y = Add(x, c) }}"),
        3,
        "'c': its output would have 2,500,000,000 elements",
    ),
    Attack(
        "Tile to 10 GB",
        model(f"<{BIG}, float[1,1] one = {{1}}> {{ c = Tile(one, big) y = Add(x, c) }}"),
        3,
        "'c': its output would have 2,500,000,000 elements",
    ),
    Attack(
        "Range of 10^12",
        model(
            "<int64 a = {0}, int64 b = {1000000000000}, int64 d = {1}> "
            "{ r = Range(a, b, d) c = Cast<to = 1>(r) s = ReduceSum(c) y = Add(x, s) }"
        ),
        3,
        "its output would have 1,000,000,000,000 elements",
    ),
    Attack(
        "OneHot of depth 10^10",
        model(
            "<int64 k = {10000000000}, float[2] v = {0, 1}, int64[2] i = {1, 2}> "
            "{ o = OneHot(i, k, v) s = ReduceSum(o) y = Add(x, s) }"
        ),
        3,
        "its output would have 20,000,000,000 elements",
    ),
    Attack(
        "Expand of the input to 2 TB",
        model("<int64[4] s = {1, 3, 500000, 500000}> { y = Expand(m, s) m = GlobalAveragePool(x) }"),
        3,
        "750,000,000,000 elements",
    ),
    Attack(
        "an input of 240 GB",
        model("{ y = Relu(x) }", inputs="float[1,3,150000,150000] x"),
        3,
        "exceeds INT_MAX elements",
    ),
    Attack(
        "Conv pads of 10^9",
        model(
            "<float[1,3,1,1] w = {1, 2, 3}> { y = Conv<pads = [1000000000, 1000000000, 1000000000, 1000000000]>(x, w) }"
        ),
        3,
        "its output would have 4,000,000,032,000,000,064 elements",
    ),
    Attack(
        "Pad by 10^9",
        model("<int64[8] p = {0, 0, 1000000000, 0, 0, 0, 0, 0}> { y = Pad(x, p) }"),
        3,
        "its output would have 24,000,000,192 elements",
    ),
    Attack(
        "Resize by 10^6",
        model('<float[4] s = {1, 1, 1000000, 1000000}> { y = Resize(x, "", s) }'),
        3,
        "its output would have 192,000,000,000,000 elements",
    ),
    Attack(
        "a pool with a kernel of 10^9",
        model("{ y = MaxPool<kernel_shape = [1000000000, 1000000000]>(x) }"),
        3,
        "no window of kernel (1000000000, 1000000000)",
    ),
    Attack(
        "a pool that pads 10^9",
        model("{ y = AveragePool<kernel_shape = [3, 3], pads = [1000000000, 0, 1000000000, 0]>(x) }"),
        3,
        "its output would have 36,000,000,108 elements",
    ),
    Attack(
        "Einsum to 10^11 elements",
        model('<int64[1] k = {192}> { f = Reshape(x, k) y = Einsum<equation = "a,b,c,d,e->abcde">(f, f, f, f, f) }'),
        3,
        "260,919,263,232 elements",
    ),
]


def _chain(folder: Path) -> Words:
    nodes = [f"t{i + 1} = {('Sigmoid', 'Tanh')[i % 2]}(t{i})" for i in range(2000)]
    return [save(graph(f"{{ {' '.join(nodes)} }}", inputs="float[1,2,4,4] t0", outputs="float t2000"), folder)]


def _long_sum(folder: Path) -> Words:
    nodes = [f"t{i + 1} = Add(t{i}, t0)" for i in range(2000)]
    return [save(graph(f"{{ {' '.join(nodes)} }}", inputs="float[1,2,4,4] t0", outputs="float t2000"), folder)]


def _wide(folder: Path) -> Words:
    nodes = [f"t{i} = Sigmoid(x)" for i in range(1000)]
    joined = ", ".join(f"t{i}" for i in range(1000))
    return [save(graph(f"{{ {' '.join(nodes)} y = Concat<axis = 1>({joined}) }}"), folder)]


def _deep_ifs(folder: Path) -> Path:
    inner = graph("{ y = Relu(x) }").graph
    del inner.input[:]
    for depth in range(200):
        node = helper.make_node("If", ["k"], [f"o{depth}"], then_branch=inner, else_branch=inner)
        inner = helper.make_graph([node], "g", [], [helper.make_tensor_value_info(f"o{depth}", 1, None)])
        if inner.ByteSize() > 1 << 16:
            break
    proto = graph("<bool k = {1}> { y = Relu(x) }")
    proto.graph.ClearField("node")
    proto.graph.node.extend(inner.node)
    proto.graph.output[0].name = inner.output[0].name
    return save(proto, folder)


def _recursive(folder: Path) -> Path:
    proto = graph("{ y = Relu(x) }")
    call = helper.make_node("F", ["a"], ["b"], domain="me")
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("me", 1)]
    proto.functions.append(helper.make_function("me", "F", ["a"], ["b"], [call], opsets))
    proto.opset_import.append(opsets[1])
    proto.graph.node[0].CopyFrom(helper.make_node("F", ["x"], ["y"], domain="me"))
    return save(proto, folder)


GRAPHS = [
    Attack("a node that reads itself", model("{ y = Add(y, x) }"), 2, "cycle"),
    Attack("two nodes that read each other", model("{ a = Add(b, x) b = Relu(a) y = Relu(b) }"), 2, "cycle"),
    Attack("a function that calls itself", _recursive, 2, "nested"),
    Attack("Ifs nested deep", _deep_ifs, 0),
    Attack("a chain of 2,000 nodes", _chain, 0),
    Attack("2,000 sums that all read the input", _long_sum, 0),
    Attack("1,000 readers of one tensor, joined", _wide, 0),
    Attack("nodes in the wrong order", model("{ y = Relu(a) a = Sigmoid(x) }"), 0),
    Attack("a tensor that nothing computes", model("{ y = Add(x, z) }"), 2, "nothing computes"),
    Attack("a tensor computed twice", model("{ a = Relu(x) a = Tanh(x) y = Relu(a) }"), 2, "computed twice"),
    Attack("a node that computes the input again", model("{ x = Relu(x) y = Relu(x) }"), 2, "computed twice"),
    Attack(
        "two constants of one name",
        changed(lambda m: m.graph.initializer.extend([tensor("k", [0])] * 2)),
        2,
        "two initializers have the name",
    ),
    Attack("no output", changed(lambda m: m.graph.ClearField("output")), 2, "no output"),
    Attack(
        "an output that nothing computes",
        changed(lambda m: setattr(m.graph.output[0], "name", "z")),
        2,
        "output 'z' is computed by no node",
    ),
    Attack(
        "no input and no node",
        changed(lambda m: (m.graph.ClearField("input"), m.graph.ClearField("node"))),
        2,
        "output 'y' is computed by no node",
    ),
    Attack(
        "an input without a type",
        changed(lambda m: m.graph.input[0].ClearField("type")),
        3,
        "without a type, not a tensor",
    ),
    Attack(
        "a node without an op", changed(lambda m: setattr(m.graph.node[0], "op_type", "")), 3, "ai.onnx 13 has no op"
    ),
    Attack(
        "an op of an unknown domain",
        changed(lambda m: setattr(m.graph.node[0], "domain", "evil")),
        3,
        "the domain 'evil' is unknown",
    ),
    Attack(
        "an op that there is not", changed(lambda m: setattr(m.graph.node[0], "op_type", "Frobnicate")), 3, "Frobnicate"
    ),
    Attack(
        "a node without its input",
        changed(lambda m: m.graph.node[0].ClearField("input")),
        3,
        "0 inputs and 1 outputs do not fit Relu",
    ),
    Attack(
        "a node with 40 inputs",
        changed(lambda m: m.graph.node[0].input.extend(["x"] * 40)),
        3,
        "41 inputs and 1 outputs do not fit Relu",
    ),
]


def declared(*dims: int | str, name: str = "y", where: str = "output") -> Callable[[Path], Path]:
    def change(proto: onnx.ModelProto) -> None:
        values = getattr(proto.graph, where)
        value = values[0] if values else values.add()
        value.CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims)))

    return changed(change, "{ a = Sigmoid(x) y = Relu(a) }")


CONV = "<float[4,3,3,3] w = {" + ", ".join(["1"] * 108) + "}> "
SHAPES = [
    Attack("an input of size 0", model("{ y = Relu(x) }", inputs="float[0,3,8,8] x"), 3, "empty axis"),
    Attack(
        "a tensor of size 0 inside",
        model("<int64[1] a = {0}, int64[1] k = {2}> { e = Slice(x, a, a, k) y = Concat<axis = 2>(x, e) }"),
        0,
    ),
    Attack("a scalar input", model("{ y = Sigmoid(x) }", inputs="float x"), 0),
    Attack("an input of rank 9", model("{ y = Sigmoid(x) }", inputs="float[1,1,1,2,1,1,2,1,3] x"), 0),
    Attack("an output declared in another shape", declared(7, 7), 0),
    Attack("an inner tensor declared in another shape", declared(7, 7, name="a", where="value_info"), 0),
    Attack("negative dims of an inner tensor", declared(-5, 3, name="a", where="value_info"), 0),
    Attack("negative dims of the input", declared(-1, 3, -8, 8, name="x", where="input"), 3, "free dimensions 2 (D2)"),
    Attack("a dimension of 2^62", declared(1 << 62, 3, name="x", where="input"), 3, "exceeds INT_MAX elements"),
    Attack(
        "a stride of 0",
        model(CONV + "{ y = Conv<strides = [0, 0]>(x, w) }"),
        3,
        "strides must only contain positive values",
    ),
    Attack(
        "a negative stride",
        model(CONV + "{ y = Conv<strides = [-1, 1]>(x, w) }"),
        3,
        "strides must only contain positive values",
    ),
    Attack(
        "a dilation of 0",
        model(CONV + "{ y = Conv<dilations = [0, 1]>(x, w) }"),
        3,
        "dilations must only contain positive values",
    ),
    Attack("group 0", model(CONV + "{ y = Conv<group = 0>(x, w) }"), 3, "group 0 does not divide 3 channels"),
    Attack(
        "a group that does not divide",
        model(CONV + "{ y = Conv<group = 2>(x, w) }"),
        3,
        "group 2 does not divide 3 channels",
    ),
    Attack("a group of -1", model(CONV + "{ y = Conv<group = -1>(x, w) }"), 3, "group -1 does not divide 3 channels"),
    Attack(
        "kernel_shape against the weights",
        model(CONV + "{ y = Conv<kernel_shape = [5, 5]>(x, w) }"),
        3,
        "kernel_shape [5, 5] does not fit weights of shape [4, 3, 3, 3]",
    ),
    Attack(
        "pads of the wrong number",
        model(CONV + "{ y = Conv<pads = [1, 1]>(x, w) }"),
        3,
        "pads (1, 1) do not fit 2 axes",
    ),
    Attack(
        "pads below 0",
        model(CONV + "{ y = Conv<pads = [-9, 0, 0, 0]>(x, w) }"),
        3,
        "no window of kernel (3, 3)",
    ),
    Attack(
        "weights of another rank",
        model("<float[4,3] w = {" + ", ".join(["1"] * 12) + "}> { y = Conv(x, w) }"),
        3,
        "kernel (), ",
    ),
    Attack(
        "weights for other channels",
        model("<float[4,2,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8}> { y = Conv(x, w) }"),
        3,
        "needs blobs of shapes [(4, 3, 1, 1)], has [(4, 2, 1, 1)]",
    ),
    Attack("a pool without a kernel", model("{ y = MaxPool(x) }"), 3, "attribute kernel_shape of MaxPool is missing"),
    Attack(
        "a pool with kernel 0",
        model("{ y = MaxPool<kernel_shape = [0, 0]>(x) }"),
        3,
        "kernel_shape must only contain positive values",
    ),
    Attack("an axis out of range", model("{ y = Softmax<axis = 9>(x) }"), 3, "axis 9 does not exist"),
    Attack("perm with an axis twice", model("{ y = Transpose<perm = [0, 1, 1, 3]>(x) }"), 3, "repeated value"),
    Attack(
        "Reshape to another size",
        model("<int64[1] k = {7}> { y = Reshape(x, k) }"),
        3,
        "shape [1, 3, 8, 8] cannot become [7]",
    ),
    Attack(
        "Reshape with two -1",
        model("<int64[2] k = {-1, -1}> { y = Reshape(x, k) }"),
        3,
        "shape [1, 3, 8, 8] cannot become [-1, -1]",
    ),
    Attack(
        "Gather beyond the end",
        model("<int64[1] i = {99}> { y = Gather<axis = 1>(x, i) }"),
        3,
        "outside the data's size 3",
    ),
    Attack(
        "Slice with step 0",
        model("<int64[1] a = {0}, int64[1] b = {2}> { y = Slice(x, a, b, a, a) }"),
        3,
        "steps [0] do not fit",
    ),
    Attack(
        "Split into more than there is",
        model("<int64[2] k = {5, 5}> { y, z = Split<axis = 1>(x, k) }"),
        3,
        "sizes [5, 5] do not fit 3",
    ),
    Attack(
        "an attribute of another type",
        model('{ y = Softmax<axis = "two">(x) }'),
        3,
        "attribute axis of Softmax has type STRING",
    ),
    Attack("an unknown attribute", model("{ y = Relu<evil = 1>(x) }"), 3, "attribute evil of Relu-13 is not known"),
    Attack(
        "operands that do not broadcast",
        model("<float[5] k = {1, 2, 3, 4, 5}> { y = Add(x, k) }"),
        3,
        "Incompatible dimensions",
    ),
    Attack("weights that are not finite", lambda f: _weights(f, np.nan), 0),
    Attack(
        "a negative variance",
        model("<float[3] p = {1, 1, 1}, float[3] v = {-1, -2, -3}> { y = BatchNormalization(x, p, p, p, v) }"),
        0,
    ),
    Attack(
        "strings as data",
        model("{ y = Identity(x) }", inputs="string[3] x", outputs="string[3] y"),
        3,
        "holds strings, not real numbers",
    ),
    Attack(
        "complex numbers",
        model("{ y = Identity(x) }", inputs="complex64[3] x", outputs="complex64[3] y"),
        3,
        "holds complex numbers, not real numbers",
    ),
]


def _weights(folder: Path, value: float) -> Path:
    proto = with_names("n")
    array = np.array(numpy_helper.to_array(proto.graph.initializer[0]))
    array[0, 0, 0, 0] = value
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))
    return save(proto, folder)


def named(name: str) -> Callable[[Path], Path]:
    return lambda folder: save(with_names(name), folder)


def _bytes_as_name(folder: Path) -> Path:
    content = graph("{ abcd = Relu(x) y = Tanh(abcd) }").SerializeToString().replace(b"abcd", b"\xff\xfe\xfd\xfc")
    return data(content)(folder)


NAMES = [
    Attack("names with quotes", named("\"'`"), 0),
    Attack("names with newlines and tabs", named("a\nb\r\tc"), 0),
    Attack("names with NUL", named("a\0b"), 0),
    Attack("names that are paths", named("../../../etc/passwd"), 0),
    Attack("names with braces and comments", named('" } layer { name: # '), 0),
    Attack("names with backslashes", named("\\n\\x41\\"), 0),
    Attack("names with emoji", named("🦙é漢"), 0),
    Attack("names that write from right to left", named("\u202eabc"), 0),
    Attack("names with control sequences", named("\x1b[2J\x07"), 0),
    Attack("names with format marks", named("%s%n{0}$(id)"), 0),
    Attack("names of 300 characters", named("n" * 300), 0),
    Attack("names of one blank", named(" "), 0),
    Attack("the names Caffe gives its own copies", named("c_conv_0_split_0"), 0),
    Attack("the names Caffe gives copies of inputs", named("input_input_0_split_1"), 0),
    Attack("names as this program makes them", named("c__sigmoid1"), 0),
    Attack("names that differ in case only", model("{ A = Relu(x) a = Tanh(A) y = Add(a, A) }"), 0),
    Attack(
        "two nodes of one name",
        changed(lambda m: [setattr(n, "name", "n") for n in m.graph.node], "{ a = Relu(x) y = Tanh(a) }"),
        0,
    ),
    Attack("nodes without a name", changed(lambda m: [setattr(n, "name", "") for n in m.graph.node]), 0),
    Attack(
        "an input without a name",
        changed(lambda m: (setattr(m.graph.input[0], "name", ""), m.graph.node[0].input.__setitem__(0, ""))),
        3,
        "its inputs do not fit",
    ),
    Attack(
        "an output without a name",
        changed(lambda m: setattr(m.graph.output[0], "name", "")),
        2,
        "output '' is computed by no node",
    ),
    Attack("names that are no UTF-8", _bytes_as_name, 2, "UTF-8"),
]

ATTACKS = {
    "Files": FILES,
    "External data": EXTERNAL,
    "Claims of size": BOMBS,
    "Graphs": GRAPHS,
    "Shapes and attributes": SHAPES,
    "Names": NAMES,
}
"""Section -> its rows."""
