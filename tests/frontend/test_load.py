"""Files, hostile ones too; inputs, outputs and names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from onnx2caffe import canon
from onnx2caffe.errors import FreeDimension, Onnx2CaffeError, UnreadableFile, Unsupported, UsageError
from onnx2caffe.frontend import from_proto, invariants, load
from tests.frontend.build import assert_equal, ops, parsed, run

CORPUS = Path(__file__).parents[3] / "shared"


def gemm(rows: int = 64, columns: int = 64) -> onnx.ModelProto:
    weight = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    x, y = helper.make_tensor_value_info("x", 1, [2, rows]), helper.make_tensor_value_info("y", 1, None)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def weight_of(path: Path) -> np.ndarray:
    node = next(iter(load(path).model.graph))
    array = canon.const(node.inputs[1])
    assert array is not None
    return array


def test_weights_stay_in_the_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(gemm(), path)
    array = weight_of(path)
    assert not array.flags.owndata
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, numpy_helper.to_array(gemm().graph.initializer[0]))
    assert len(load(path).sha256) == 64


def test_large_constants_in_attributes_and_subgraphs_are_read(tmp_path: Path) -> None:
    array = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
    const = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array))
    inner = helper.make_graph(
        [const, helper.make_node("Add", ["x", "c"], ["z"])], "b", [], [helper.make_tensor_value_info("z", 1, None)]
    )
    yes = numpy_helper.from_array(np.asarray(True), "k")
    graph = helper.make_graph(
        [helper.make_node("If", ["k"], ["y"], then_branch=inner, else_branch=inner)],
        "g",
        [helper.make_tensor_value_info("x", 1, [64, 64])],
        [helper.make_tensor_value_info("y", 1, [64, 64])],
        [yes],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(proto, tmp_path / "m.onnx")
    np.testing.assert_array_equal(weight_of(tmp_path / "m.onnx"), array)
    assert_equal(proto)


def external(tmp_path: Path, **changes: str) -> Path:
    proto = gemm()
    path = tmp_path / "model" / "m.onnx"
    path.parent.mkdir()
    tensor = proto.graph.initializer[0]
    (path.parent / "w.bin").write_bytes(b"\0" * 8 + tensor.raw_data)
    (tmp_path / "secret").write_bytes(b"\0" * 8 + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", "offset": "8", "length": "16384", **changes}.items():
        tensor.external_data.add(key=key, value=value)
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data(tmp_path: Path) -> None:
    array = weight_of(external(tmp_path))
    np.testing.assert_array_equal(array, numpy_helper.to_array(gemm().graph.initializer[0]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"location": "../secret"}, "outside"),
        ({"location": "/etc/passwd"}, "outside"),
        ({"location": "link"}, "outside"),
        ({"location": "sub/../../secret"}, "outside"),
        ({"location": "gone.bin"}, "missing"),
        ({"location": "a\0b"}, "path"),
        ({"offset": "16"}, "should be"),
        ({"offset": "-8"}, "should be"),
        ({"length": "99999999999"}, "should be"),
        ({"length": "16"}, "need 16,384 bytes"),
        ({"offset": "many"}, "does not fit"),
    ],
)
def test_external_data_stays_inside_its_folder_and_size(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    path = external(tmp_path, **changes)
    (path.parent / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(UnreadableFile, match=words):
        load(path)


def nested(depth: int) -> bytes:
    """Graphs in attributes of nodes of graphs …, each too large to be skipped."""

    def field(tag: int, body: bytes) -> bytes:
        length, size = b"", len(body)
        while size > 0x7F:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        return bytes([tag]) + length + bytes([size]) + body

    graph = field(0x12, b"n" * 5000)
    for _ in range(depth):
        graph = field(0x0A, field(0x2A, field(0x32, graph)))
    return field(0x3A, graph)


def damaged() -> dict[str, bytes]:
    whole = gemm().SerializeToString()
    claims = gemm()
    claims.graph.initializer[0].dims[:] = [1 << 16, 20480]
    typed = gemm()
    typed.graph.initializer[0].ClearField("raw_data")
    typed.graph.initializer[0].dims[:] = [1 << 16, 20480]
    kind = gemm()
    kind.graph.initializer[0].data_type = 99
    return {
        "empty": b"",
        "text": b"this is no model\n" * 20,
        "half": whole[: len(whole) // 2],
        "cut at the end": whole[:-3],
        "zeros": b"\0" * 1000,
        "ff": b"\xff" * 1000,
        "length 2^63": b"\x3a" + b"\xff" * 8 + b"\x7f" + b"x",
        "no graph": onnx.ModelProto(ir_version=8).SerializeToString(),
        "claims 5 GB, raw": claims.SerializeToString(),
        "claims 5 GB, typed": typed.SerializeToString(),
        "unknown type": kind.SerializeToString(),
        "nested 300 deep": nested(300),
        "other protobuf": onnx.GraphProto(name="g").SerializeToString(),
    }


@pytest.mark.parametrize("data", damaged().values(), ids=damaged())
def test_damaged_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile) as error:
        load(path)
    assert error.value.exit_code == 2


def test_every_flipped_byte_is_survived(tmp_path: Path) -> None:
    """A damaged model is an error of ours, or still a model; never another exception."""
    data = bytearray((parsed("g (float[1, 4] x) => (float[1, 2, 2] y) { r = Relu (x)\n" + RESHAPE)).SerializeToString())
    path = tmp_path / "m.onnx"
    for position in range(len(data)):
        for flip in (0x01, 0x08, 0x80, 0xFF):
            changed = bytearray(data)
            changed[position] ^= flip
            path.write_bytes(changed)
            try:
                load(path)
            except Onnx2CaffeError:
                continue


RESHAPE = "s = Constant <value_ints = [1, 2, 2]> ()\n y = Reshape (r, s) }"


def test_folder_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="folder"):
        load(tmp_path)
    with pytest.raises(UnreadableFile, match="No such file"):
        load(tmp_path / "nothing.onnx")
    with pytest.raises(UnreadableFile, match="null"):
        load("nul\0.onnx")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFile, match="no regular file"):
        load(tmp_path / "pipe")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(UnreadableFile, match="Permission"):
        load(path)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("a = Add (x, y)\n y = Relu (a)", "cycle"),
        ("y = Relu (x)\n y = Neg (x)", "computed twice"),
        ("y = Relu (gone)", "nothing computes"),
        ("z = Relu (x)", "computed by no node"),
        ("x = Relu (x)\n y = Relu (x)", "computed twice"),
    ],
)
def test_broken_graphs(body: str, words: str) -> None:
    with pytest.raises(UnreadableFile, match=words):
        from_proto(parsed(f"g (float[1] x) => (float[1] y) {{ {body} }}"))


def test_nodes_in_any_order() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { a = Relu (x)\n b = Neg (a)\n y = Exp (b) }")
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert ops(from_proto(proto)) == ["Relu", "Neg", "Exp"]


@pytest.mark.parametrize(("opset", "words"), [(29, "28 is the newest"), (1 << 40, "newest")])
def test_opsets_out_of_range(opset: int, words: str) -> None:
    proto = gemm()
    proto.opset_import[0].version = opset
    with pytest.raises(Unsupported, match=words):
        from_proto(proto)


def test_old_opsets_are_read_as_far_as_their_ops_are_still_those_of_today() -> None:
    assert ops(from_proto(parsed("g (bool[2] x) => (bool[2] y) { y = Not (x) }", opset=1))) == ["Not"]
    (node,) = from_proto(parsed("g (float[2] x) => (float[2] y) { y = Exp (x) }", opset=5)).model.graph
    assert node.meta["opaque"] == (
        "version 1 of Exp (ai.onnx 5) has not been read; onnx.version_converter may bring the model to a newer one"
    )


def test_an_optional_input_is_the_tensor_that_it_holds() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { e = OptionalGetElement (x)\n y = Neg (e) }", opset=18)
    proto.graph.input[0].type.CopyFrom(helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2])))
    loaded = from_proto(proto)
    assert ops(loaded) == ["Neg"]
    assert loaded.inputs[0].shape == (2,)


def test_initializers_listed_as_inputs() -> None:
    proto = gemm()
    proto.ir_version = 3
    proto.graph.input.append(helper.make_tensor_value_info("w", 1, [64, 64]))
    assert [i.name for i in assert_equal(proto).inputs] == ["x"]


def test_free_batch_is_one_with_a_note() -> None:
    loaded = from_proto(parsed("g (float[N, 3] x, float[M] z) => (float[N, 3] y) { a = Relu (x)\n y = Add (a, z) }"))
    assert [i.shape for i in loaded.inputs] == [(1, 3), (1,)]
    assert "'x'" in loaded.notes[0].text
    assert "'z'" in loaded.notes[0].text


def test_free_dimensions_are_named_all_at_once() -> None:
    proto = parsed("g (float[N, 3, H, W] x, float[1, T] z) => (float y, float v) { y = Relu (x)\n v = Relu (z) }")
    with pytest.raises(FreeDimension) as error:
        from_proto(proto)
    assert "'x' has free dimensions 2 (H), 3 (W)" in error.value.message
    assert "'z' has free dimensions 1 (T)" in error.value.message
    assert "--input-shape x:1,3,H,W --input-shape z:1,T" in error.value.hint
    loaded = from_proto(proto, input_shapes={"x": (2, 3, 4, 5), "z": (1, 7)})
    assert [o.shape for o in loaded.outputs] == [(2, 3, 4, 5), (1, 7)]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("[1, 3, 8]", "output 'y' is declared [1, 3, 8], but computed [1, 3, 4]"),
        ("[N, 12]", "output 'y' is declared [N, 12], but computed [1, 3, 4]"),
        ("[N, 3, L]", ""),
    ],
)
def test_an_output_of_another_shape_than_declared_is_said(declared: str, said: str) -> None:
    proto = parsed(f"g (float[1, 3, 4] x) => (float{declared} y) {{ y = Relu (x) }}")
    proto.graph.node[0].name = "act"
    assert [(note.text, note.nodes) for note in from_proto(proto).notes] == ([(said, ("act",))] if said else [])


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "double"])
def test_narrowed_types_are_called_by_name(kind: str) -> None:
    (note,) = from_proto(parsed(f"g ({kind}[2] x) => ({kind}[2] y) {{ y = Relu (x) }}")).notes
    assert note.text == f"{kind.replace('double', 'float64')} tensors are read as float32"


def test_a_scale_that_is_no_number_stops() -> None:
    text = "g (float[1, 2, 3, 3] x) => (float y) <float[4] s = {1, 1, 2, nan}> { y = Resize (x, , s) }"
    (node,) = from_proto(parsed(text)).model.graph
    assert node.meta["opaque"] == "its scales are [1.0, 1.0, 2.0, nan]"


def test_a_symbol_fixed_once_is_fixed_everywhere() -> None:
    proto = parsed("g (float[N, H] x, float[N, H] z) => (float y) { y = Add (x, z) }")
    assert from_proto(proto, input_shapes={"x": (2, 5)}).inputs[1].shape == (2, 5)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"q": (1, 3)}, "no input 'q'"), ({"x": (1, 4)}, "not \\[1, 4\\]"), ({"x": (1, 3, 1)}, "has shape"),
     ({"x": (-1, 3)}, "negative")],
)  # fmt: skip
def test_input_shapes_are_checked(given: dict[str, tuple[int, ...]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        from_proto(parsed("g (float[N, 3] x) => (float y) { y = Relu (x) }"), input_shapes=given)


def test_unused_input_is_known_but_not_in_the_model() -> None:
    loaded = from_proto(parsed("g (float[2] x, float[1, H, W] z) => (float[2] y) { y = Relu (x) }"))
    assert [i.name for i in loaded.inputs] == ["x", "z"]
    assert [i.name for i in loaded.model.graph.inputs] == ["x"]


THREE = parsed("g (float[2] x) => (float[2] y) { a = Relu (x)\n b = Neg (a)\n y = Exp (b) }")


def test_outputs_asked_for() -> None:
    loaded = from_proto(THREE, outputs=["b"])
    assert ops(loaded) == ["Relu", "Neg"]
    assert [o.name for o in loaded.outputs] == ["b"]
    named = onnx.ModelProto.FromString(THREE.SerializeToString())
    named.graph.node[0].name = "the first"
    assert [o.name for o in from_proto(named, outputs=["the first", "y", "a"]).outputs] == ["a", "y"]
    with pytest.raises(UsageError) as error:
        from_proto(named, outputs=["the frist"])
    assert "the first" in error.value.hint


def test_dead_branch_never_blocks() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { y = Relu (x)\n d = NonZero (x) }")
    assert ops(from_proto(proto)) == ["Relu"]


def held(loaded_value: ir.Value) -> list[str]:
    return [t.name for t in canon.tensors(loaded_value)]


def test_outputs_that_are_one_value() -> None:
    proto = parsed(
        """g (float[2] x) => (float[2] y, float[2] z, float[2] x2) { y = Relu (x)
            z = Identity (y)
            x2 = Identity (x) }"""
    )
    loaded = from_proto(proto)
    assert ops(loaded) == ["Relu"]
    first, second, third = loaded.model.graph.outputs
    assert first is second
    assert held(first) == ["y", "z"]
    assert third is loaded.model.graph.inputs[0]
    assert held(third) == ["x", "x2"]
    invariants.check(loaded.model)


def test_output_that_is_an_initializer() -> None:
    loaded = from_proto(parsed("g (float[2] x) => (float[2] y, float[2] c) { y = Relu (x)\n" + CONSTANT))
    constant = loaded.model.graph.outputs[1]
    np.testing.assert_array_equal(canon.const(constant), [1, 2])
    assert held(constant) == ["c"]
    invariants.check(loaded.model)


CONSTANT = "c = Constant <value_floats = [1.0, 2.0]> () }"


def test_names_of_new_values_and_nodes() -> None:
    proto = parsed("g (float[1, 2, 3] x) => (float[1, 2, 3] y) { y = Softmax <axis = 1> (x) }", opset=11)
    nodes = list(from_proto(proto).model.graph)
    assert [n.name for n in nodes] == ["y__reshape", "y", "y__reshape__2"]
    assert [n.outputs[0].name for n in nodes] == ["y__reshape", "y__softmax", "y"]
    assert all(canon.sources(n) == ("y",) for n in nodes)


def test_two_nodes_of_one_name() -> None:
    proto = parsed("g (float[2] x) => (float[2] y) { a = Relu (x)\n y = Neg (a) }")
    for node in proto.graph.node:
        node.name = "same"
    first, second = from_proto(proto).model.graph
    assert (first.name, second.name) == ("same", "same__2")
    assert canon.sources(second) == ("same",)


HOSTILE = ['quo"te', "line\nbreak", "nul\0", "../up", "\N{PILE OF POO}", "x" * 300, " ", "a__relu"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data(name: str, tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], [name], name=name), helper.make_node("Neg", [name], ["y"], name=name)]
    info = [helper.make_tensor_value_info(n, 1, [2]) for n in "xy"]
    graph = helper.make_graph(nodes, name, info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), tmp_path / "m.onnx")
    loaded = load(tmp_path / "m.onnx")
    invariants.check(loaded.model)
    assert next(iter(loaded.model.graph)).outputs[0].name == name


def test_long_chain() -> None:
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(2000)]
    info = [helper.make_tensor_value_info(n, 1, [2]) for n in ("t0", "t2000")]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    assert len(ops(from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])))) == 2000


def test_packed_small_types(tmp_path: Path) -> None:
    """Four-bit weights with their scales fold to floats."""
    data = np.random.default_rng(0).integers(0, 256, 8192, dtype=np.uint8)
    tensor = onnx.TensorProto(name="q", data_type=onnx.TensorProto.UINT4, dims=[128, 128], raw_data=data.tobytes())
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    scale = numpy_helper.from_array(np.float32(0.5), "s")
    info = [helper.make_tensor_value_info("x", 1, [2, 128]), helper.make_tensor_value_info("y", 1, None)]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", info[:1], info[1:], [tensor, scale]),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    onnx.save(proto, tmp_path / "m.onnx")
    loaded = load(tmp_path / "m.onnx")
    assert ops(loaded) == ["MatMul"]
    x = np.random.default_rng(1).normal(size=(2, 128)).astype(np.float32)
    np.testing.assert_allclose(run(ir.to_proto(loaded.model), {"x": x})[0], run(proto, {"x": x})[0], rtol=1e-5)


def test_wire_reader_leaves_small_models_as_they_are() -> None:
    from onnx2caffe.frontend.wire import without_payloads

    data = THREE.SerializeToString()
    assert without_payloads(data) == data


PICK = ["add_scalar", "conv_same_upper_s2", "focus_yolov5", "head_nanodet", "lstm", "qdq", "split_18_num_outputs"]


@pytest.mark.parametrize("name", PICK)
def test_patterns(name: str) -> None:
    path = CORPUS / "patterns" / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.parent} is not there")
    assert_equal(onnx.load(path))
