"""`onnx2caffe tvm --target c`: the C stands alone, runs here and on boards (under qemu), and computes the model."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2caffe
from onnx2caffe import ccode, cli, mapfile
from onnx2caffe.errors import NumbersDiffer, Unsupported
from onnx2caffe.mapfile import TvmSegment
from onnx2caffe.runtimes import c as runtime
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.tvm import csource, registry
from onnx2caffe.tvm.csource import Interface
from onnx2caffe.tvm.families import load_families
from onnx2caffe.tvm.program import Program, Type
from onnx2caffe.verify.measure import Verdict
from tests.ops.harness import difference, reference
from tests.tvm.boards import MACHINES, run

NAMES = {"x": "float", "y": "3/*ü*/\\", "z": "in.put:0\n", "u": "INFINITY", "v": "in.put_0\n"}
"""Names that mean something in C, or nothing anywhere."""
SHAPES = {"x": (1, 3, 12, 10), "z": (1, 8, 6, 5), "y": (1, 8, 6, 6), "u": (1, 8, 6, 5), "v": (1, 8, 6, 5)}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Conv, Relu, MaxPool, Tanh, Add, MatMul; two inputs, three outputs, two of which are one value."""
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((8, 3, 3, 3)), "m": random.standard_normal((5, 6))}
    n = NAMES
    nodes = [
        helper.make_node("Conv", [n["x"], "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Add", ["c", n["z"]], [n["u"]]),
        helper.make_node("Identity", [n["u"]], [n["v"]]),
        helper.make_node("Tanh", [n["u"]], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["e"]),
        helper.make_node("MatMul", ["e", "m"], ["f"]),
        helper.make_node("Transpose", ["f"], [n["y"]], perm=[0, 1, 3, 2]),
    ]
    constants = [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()]
    inputs, outputs = (
        [helper.make_tensor_value_info(n[key], TensorProto.FLOAT, SHAPES[key]) for key in keys]
        for keys in ("xz", "yuv")
    )
    graph = helper.make_graph(nodes, "net", inputs, outputs, constants)
    path = tmp_path_factory.mktemp("c") / "3 odd-name.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


FACE = csource.interface(
    "3 odd-name",
    Program(outputs=[{"input": 0}, {"input": 1}, {"input": 1}]),
    [(NAMES[key], Type("float32", SHAPES[key])) for key in "xz"],
    [(NAMES[key], Type("float32", SHAPES[key])) for key in "yuv"],
)


@pytest.fixture(scope="module")
def exported(model: Path, tmp_path_factory, running) -> Path:
    running("relay")
    folder = tmp_path_factory.mktemp("c") / "out"
    export = onnx2caffe.export_tvm(model, folder, target="c")
    assert export.proof
    assert export.proof.ok
    if runtime.compiler():
        assert "c" in export.proof.runtimes
        assert {row.tensor for row in export.proof.rows if row.runtime == "c"} == {NAMES[key] for key in "yuv"}
    return folder


@pytest.mark.parametrize("name", MACHINES)
def test_the_c_computes_the_model(name: str, model: Path, exported: Path, tmp_path: Path) -> None:
    if missing := MACHINES[name].missing:
        pytest.skip(missing)
    folder = tmp_path / "build"
    shutil.copytree(exported, folder)
    random = np.random.default_rng(1)
    feeds = {NAMES[key]: random.standard_normal(SHAPES[key]).astype(np.float32) for key in "xz"}
    expected = reference(onnx.load(model), feeds)
    for argument, value in zip(FACE.outputs, run(folder, FACE, feeds, MACHINES[name]), strict=True):
        assert difference(expected[argument.tensor], value) <= 1e-5


def test_it_is_pedantic_c99_and_needs_nothing(exported: Path, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("apt-get install gcc")
    for source in exported.glob("*.c"):
        assert not re.search(r"#include.*(tvm|dlpack)", source.read_text())
        command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror=implicit", "-c", "-o", tmp_path / "x.o", source]
        subprocess.run(command, check=True)
        undefined = subprocess.run(["nm", "-u", tmp_path / "x.o"], capture_output=True, text=True, check=True).stdout
        assert not re.search("TVM", undefined)


def test_the_makefile_builds_anew_for_another_compiler(exported: Path, tmp_path: Path) -> None:
    machine = MACHINES["aarch64"]
    if missing := MACHINES["host"].missing or machine.missing:
        pytest.skip(missing)
    folder = tmp_path / "build"
    shutil.copytree(exported, folder)
    library = folder / "build/libnet_3_odd_name_run.a"

    def made(*options: str) -> bytes:
        subprocess.run(["make", "-s", "-C", folder, *options], check=True)
        return library.read_bytes()

    first = made()
    assert made(f"CROSS={machine.cross}") != first
    assert made() == first
    times = library.stat().st_mtime_ns
    assert made() == first
    assert library.stat().st_mtime_ns == times, "nothing is new"


def test_what_the_makefile_built_is_in_no_export_s_way(model: Path, exported: Path, tmp_path: Path, running) -> None:
    running("relay")
    folder = tmp_path / "out"
    shutil.copytree(exported, folder)
    (folder / csource.BUILD).mkdir()
    onnx2caffe.export_tvm(model, folder, target="c", compare=False)


def test_cmake_builds_it(exported: Path, tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("apt-get install cmake")
    subprocess.run(["cmake", "-S", exported, "-B", tmp_path], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "libnet_3_odd_name_run.a").exists()


@pytest.mark.parametrize("name", ["all", "m", "math"])
def test_a_model_may_be_called_as_something_of_c_or_cmake(name: str, tmp_path: Path, running) -> None:
    """CMake's target of all, libm, a header of the C library: an application of the export and libm builds."""
    running("relay")
    if shutil.which("cmake") is None:
        pytest.skip("apt-get install cmake")
    path = tmp_path / f"{name}.onnx"
    text = "net (float[1] x) => (float[1] y) { y = Exp(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'), path)
    export = onnx2caffe.export_tvm(path, tmp_path / "out", target="c", compare=False)
    (segment,) = mapfile.read(export.map_file).segments
    assert isinstance(segment, TvmSegment)
    (tmp_path / "app.c").write_text(
        f'#include "{segment.c["header"]}"\n#include <math.h>\n'
        f"int main(void) {{ float x = 1, y; return {segment.c['function']}(&x, &y) || y != expf(x); }}\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.5)\nproject(app C)\nadd_subdirectory(out)\n"
        f"add_executable(app app.c)\ntarget_link_libraries(app {segment.c['function']})\n"
    )
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"], ["build/app"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_cmake_builds_it_for_a_board_in_a_project(exported: Path, tmp_path: Path) -> None:
    """As docs/tvm.md says."""
    machine = MACHINES["aarch64"]
    if shutil.which("cmake") is None or machine.missing:
        pytest.skip(f"apt-get install cmake {machine.packages}")
    shutil.copytree(exported, tmp_path / "net")
    (tmp_path / "main.c").write_text(
        '#include "net_3_odd_name_run.h"\nint main(void) { return !net_3_odd_name_run; }\n'
    )
    project = ["project(app C)", "add_subdirectory(net)", "add_executable(app main.c)"]
    linked = "target_link_libraries(app PRIVATE net_3_odd_name_run)"
    (tmp_path / "CMakeLists.txt").write_text("\n".join(["cmake_minimum_required(VERSION 3.5)", *project, linked]))
    board = ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_C_COMPILER={machine.cross}gcc"]
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", *board], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "b"], check=True, capture_output=True)
    assert (tmp_path / "b/app").read_bytes()[18:20] == b"\xb7\0", "a program for AArch64"


def test_names_are_identifiers_used_once() -> None:
    names = [argument.name for argument in FACE.arguments]
    assert FACE.name == "net_3_odd_name"
    assert names == ["in_float", "in_in_put_0_", "out_3______", "out_INFINITY", "out_in_put_0_"]
    twice = csource.interface("n", Program(), [("a.b", Type("float32", (1,))), ("a:b", Type("float32", (1,)))], [])
    assert [argument.name for argument in twice.inputs] == ["in_a_b", "in_a_b_2"]


def test_c_that_computes_something_else_is_caught(model: Path, tmp_path: Path, running, monkeypatch) -> None:
    running("relay")
    if runtime.compiler() is None:
        pytest.skip("apt-get install gcc")
    monkeypatch.setattr(csource, "_own", lambda text, own=csource._own: own(text).replace("tanhf(", "sinf("))
    with pytest.raises(NumbersDiffer, match="the C computes another"):
        onnx2caffe.export_tvm(model, tmp_path / "out", target="c")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "nodes",
    [
        "(float[1,3,2,2] x) => (float[1,3,2,2] y, float[1,12] z) { y = Relu(x) z = Flatten(y) }",
        "(float[1,3,2,2] x) => (float[1,12] z, float[1,3,2,2] y) { y = Relu(x) z = Flatten(y) }",
        "(float[2,3] x) => (float[2,3] y, float[1,2,3] z, float[2,3] w, float[2,3] v)"
        " <int64[1] a = {0}> { y = Relu(x) z = Unsqueeze(y, a) w = Squeeze(z, a) v = Sin(w) }",
        "(float[1,2,3,3] x) => (float[1,2,1,1] g, float[1,2] h, float[1,1] o)"
        " <float[2,1] w = {2, 3}> { g = GlobalAveragePool(x) h = Flatten(g) o = MatMul(h, w) }",
        "(float[1,4,2,2] x) => (float[1,2,2,2] y, float[1,8] z, float[1,2,2,2] w)"
        " { y, w = Split<axis = 1, num_outputs = 2>(x) z = Flatten(y) }",
        "(float[1,4] x) => (float[4,1] y, float[2,2] z) <int64[2] a = {4, 1}, int64[2] b = {2, 2}>"
        " { y = Reshape(x, a) z = Reshape(x, b) }",
        "(float[2,3] x) => (float[2,3] y, float[6] z) <float[2,3] c = {1, 2, 3, 4, 5, 6}, int64[1] a = {6}>"
        " { y = Identity(c) z = Reshape(y, a) }",
    ],
)
def test_outputs_that_are_one_another_in_other_shapes(nodes: str, tmp_path: Path, running) -> None:
    running("relay")
    if runtime.compiler() is None:
        pytest.skip("apt-get install gcc")
    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> net {nodes}'), path)
    export = onnx2caffe.export_tvm(path, tmp_path / "out", target="c")
    assert export.proof
    judged = {row.tensor for row in export.proof.rows if row.runtime == "c" and row.judgement.verdict is Verdict.EQUAL}
    assert judged >= {output.name for output in export.outputs}


def test_inputs_that_nothing_reads_are_no_arguments(tmp_path: Path, running) -> None:
    running("relay")
    text = "(float[2] a, float[3] b) => (float[2] y, float[3] z) { y = Relu(a) z = Sin(b) }"
    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> net {text}'), path)
    export = onnx2caffe.export_tvm(path, tmp_path / "out", target="c", outputs=["z"])
    assert "int net_run(const float *in_b, float *out_z);" in export.files["header"].read_text()
    (segment,) = mapfile.read(export.map_file).segments
    assert isinstance(segment, TvmSegment)
    assert segment.c == {"header": "net_run.h", "function": "net_run", "arguments": {"in_b": "b", "out_z": "z"}}


def test_without_inputs_it_is_c99_too(tmp_path: Path, running) -> None:
    running("relay")
    if shutil.which("gcc") is None:
        pytest.skip("apt-get install gcc")
    path = tmp_path / "net.onnx"
    text = "() => (float[2] y) <float[2] c = {1, 2}> { y = Identity(c) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> net {text}'), path)
    export = onnx2caffe.export_tvm(path, tmp_path / "out", target="c")
    command = ["gcc", "-std=c99", "-pedantic-errors", "-fsyntax-only", export.files["c"]]
    subprocess.run(command, check=True)


def test_without_a_compiler_it_is_said(model: Path, tmp_path: Path, running, monkeypatch) -> None:
    running("relay")
    monkeypatch.setattr(runtime, "compiler", lambda: None)
    export = onnx2caffe.export_tvm(model, tmp_path / "out", target="c")
    assert any("the C was not run" in note.text for note in export.notes)


@pytest.mark.parametrize("tool", ["tar", "gzip"])
def test_a_packer_that_is_not_there_is_named(tool: str, model: Path, tmp_path: Path, running, monkeypatch, capsys):
    running("relay")
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == tool else which(name))
    words = ["--target", "c", "--no-compare", "-o", str(tmp_path / "out")]
    assert cli.main(["tvm", str(model), *words]) == 4
    assert f"apt-get install {tool}\n" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_export_of_c_is_replaced_whole(model: Path, tmp_path: Path, running) -> None:
    running("relay")
    onnx2caffe.export_tvm(model, tmp_path, target="c", compare=False)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    onnx2caffe.export_tvm(model, tmp_path, target="c", compare=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    onnx2caffe.export_tvm(model, tmp_path, compile=False, compare=False)
    assert not list(tmp_path.glob("*.c"))


def test_relax_has_no_c(model: Path, tmp_path: Path, capsys) -> None:
    assert cli.main(["tvm", str(model), "--dialect", "relax", "--target", "c", "-o", str(tmp_path / "out")]) == 2
    assert "--dialect relay" in capsys.readouterr().err


def test_c_that_calls_the_runtime_is_refused(tmp_path: Path, running) -> None:
    tvm: Tvm = running("relay")
    program = {
        "inputs": [{"name": "_in0", "dtype": "float32", "shape": [2, 3]}],
        "constants": [],
        "calls": [
            {"fn": "argsort", "args": [{"input": 0}], "attrs": {}, "types": [["int32", [2, 3]]], "several": False}
        ],
        "outputs": [{"call": 0}],
    }
    tvm.load(program, [])
    tvm.write_c("net", 3, tmp_path / "net.tar")
    face = Interface("net", (), (), ())
    with pytest.raises(Unsupported, match="TVMFuncCall"):
        csource.sources(tmp_path / "net.tar", face)


def test_what_tvm_has_no_c_for_is_refused_by_its_node(tmp_path: Path, running, monkeypatch, capsys) -> None:
    """TVM says it of the whole module; the node is that of the first operator that has no C by itself either."""
    running("relay")

    def of_integers(op, net):
        return net.cast(net("acos", net.cast(op.value(), "int32")), "float32")

    load_families()
    monkeypatch.setitem(registry._EMITTERS, (registry.BOTH, "Acos"), of_integers)
    nodes = "{ a = Exp(x) b = Acos(a) y = Tanh(b) }"
    text = f'<ir_version: 10, opset_import: ["": 18]> net (float[2] x) => (float[2] y) {nodes}'
    model = onnx.parser.parse_model(text)
    model.graph.node[1].name = "the one"
    onnx.save(model, tmp_path / "net.onnx")
    words = ["--target", "c", "--no-compare", "-o", str(tmp_path / "out")]
    assert cli.main(["tvm", str(tmp_path / "net.onnx"), *words]) == 3
    assert "error: node 'the one': acos: TVM writes no C: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_constant_that_tvm_has_no_c_for_is_refused_by_its_name(tmp_path: Path, running) -> None:
    running("relay")
    text = "net (float[2] x) => (float[2] y, bool[2] truths) <bool[2] t = {1, 0}> { y = Exp(x) truths = Identity(t) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}'), tmp_path / "net.onnx")
    with pytest.raises(Unsupported, match="output 'truths', which is constant: TVM writes no C: "):
        onnx2caffe.export_tvm(tmp_path / "net.onnx", tmp_path / "out", target="c", compare=False)


def test_memory_for_bytes_gets_no_warning(tmp_path: Path, running) -> None:
    """TVM packs the first of its constants, which gcc ignores for bytes."""
    running("relay")
    if shutil.which("gcc") is None:
        pytest.skip("apt-get install gcc")
    path = tmp_path / "net.onnx"
    constants = "uint8[9] c = {1, 2, 3, 4, 5, 6, 7, 8, 9}, uint8[3] d = {1, 2, 3}"
    text = f"net (uint8[9] x, uint8[3] z) => (uint8[9] y, uint8[3] w) <{constants}> {{ y = Max(x, c) w = Max(z, d) }}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'), path)
    export = onnx2caffe.export_tvm(path, tmp_path / "out", target="c", compare=False)
    assert "aligned(16)" in export.files["c"].read_text()
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Werror", "-fsyntax-only", export.files["c"]], check=True)


@pytest.mark.parametrize("fn", ["abs", "acosh", "asinh", "atanh", "cosh", "trunc", "isinf", "isnan", "erf"])
def test_functions_of_libm(fn: str, tmp_path: Path, running) -> None:
    tvm: Tvm = running("relay")
    kind = "bool" if fn.startswith("is") else "float32"
    given = [{"name": "_in0", "dtype": "float32", "shape": [6]}]
    calls = [{"fn": fn, "args": [{"input": 0}], "attrs": {}, "types": [[kind, [6]]], "several": False}]
    program = {"inputs": given, "constants": [], "calls": calls, "outputs": [{"call": 0}]}
    tvm.load(program, [])
    tvm.build({"kind": "llvm"}, 0)
    x = np.array([0.3, -0.7, 1.5, -np.inf, np.nan, -2.5], np.float32)
    (expected,) = tvm.run([x])
    tvm.write_c("net", 3, tmp_path / "net.tar")
    types = [("x", Type("float32", (6,)))], [("y", Type(kind, (6,)))]
    face = csource.interface("net", Program(outputs=[{"input": 0}]), *types)
    for name, text in csource.sources(tmp_path / "net.tar", face).items():
        (tmp_path / name).write_text(text)
    if MACHINES["host"].missing:
        pytest.skip("apt-get install gcc make")
    ccode.write_build_files(tmp_path, "net", [ccode.CCode(face, csource.file_names("net"))])
    (found,) = run(tmp_path, face, {"x": x}, MACHINES["host"])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
