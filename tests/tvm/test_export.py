"""`onnx2caffe tvm` from end to end: files, map, and what happens when the numbers are wrong."""

from __future__ import annotations

import itertools
import json
import struct
import subprocess

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2caffe
from onnx2caffe import cli, mapfile
from onnx2caffe.errors import NumbersDiffer, RuntimeMissing, UsageError
from onnx2caffe.mapfile import Place, TvmSegment
from onnx2caffe.programs import Translation
from onnx2caffe.runtimes.workers.tvm_program import saved
from onnx2caffe.tvm import registry
from onnx2caffe.tvm.families import load_families
from onnx2caffe.tvm.registry import DIALECTS
from onnx2caffe.verify import tvm as proving
from onnx2caffe.verify.measure import Verdict


@pytest.fixture
def model(tmp_path):
    """Conv, Relu, Upsample, Conv, Add: the names of inputs and outputs are none in C."""
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal(shape) for name, shape in {"w": (4, 3, 3, 3), "v": (4, 4, 1, 1)}.items()}
    nodes = [
        helper.make_node("Conv", ["in.put:0", "w"], ["a"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="second"),
        helper.make_node("Upsample", ["b", "s"], ["c"], name="third", mode="nearest"),
        helper.make_node("Conv", ["c", "v"], ["d"], name="fourth"),
        helper.make_node("Add", ["d", "c"], ["out/put"], name="fifth"),
    ]
    constants = [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()]
    constants.append(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s"))
    x = helper.make_tensor_value_info("in.put:0", TensorProto.FLOAT, (1, 3, 5, 6))
    y = helper.make_tensor_value_info("out/put", TensorProto.FLOAT, (1, 4, 10, 12))
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8), path)
    return path


@pytest.mark.parametrize("dialect", DIALECTS)
def test_files(model, dialect, tmp_path, running, capsys) -> None:
    running(dialect)
    folder = tmp_path / "out"
    assert cli.main(["tvm", str(model), "-o", str(folder), "--dialect", dialect, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["proof"]["ok"]
    assert {row["tensor"] for row in said["proof"]["rows"]} == {"a", "b", "c", "out/put"}
    export = mapfile.read(folder / "net.map.json")
    (segment,) = export.segments
    assert isinstance(segment, TvmSegment)
    assert segment.inputs == {"in.put:0": Place("in_put_0", (1, 3, 5, 6))}
    assert segment.outputs == {"out/put": Place("0", (1, 4, 10, 12))}
    assert {path.name for path in folder.iterdir()} == {"net.map.json", *segment.files.values()}
    assert (folder / segment.files["library"]).read_bytes()[:4] == b"\x7fELF"
    assert "in_put_0" in (folder / segment.files["text"]).read_text()


def test_steps_end_with_what_is_emitted(tmp_path, running, capsys) -> None:
    """Also where no pass changes anything."""
    running("relay")
    text = '<ir_version: 8, opset_import: ["": 18]> net (float[2] x) => (float[2] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    options = ["--no-compile", "--no-compare", "--save-intermediate", str(tmp_path / "steps")]
    assert cli.main(["tvm", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out"), *options]) == 0
    assert "not compared: 1 operator, never run" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "steps").glob("*.onnx")) == ["00-load.onnx", "01-final.onnx"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tvm_reads_the_weights_back(model, dialect, tmp_path, running) -> None:
    python = running(dialect).python
    onnx2caffe.export_tvm(model, tmp_path / "out", dialect=dialect, compile=False, compare=False)
    path = tmp_path / "out" / f"net.{dialect}.params"
    reading = """
import sys, tvm
with open(sys.argv[1], "rb") as file:
    for name, array in tvm.runtime.load_param_dict(file.read()).items():
        print(name, *array.shape)
"""
    done = subprocess.run([python, "-c", reading, path], capture_output=True, text=True, check=True)
    read = done.stdout.splitlines()
    assert read[0] == "w 4 3 3 3"
    assert read[1].endswith(" 4 4 1 1")


def test_weights_are_written_in_the_order_of_the_program() -> None:
    """TVM itself writes some names before others by chance, here the last first."""

    def chance(weights: dict[str, bytes]) -> bytes:
        turned, count = dict(reversed(weights.items())), struct.pack("<Q", len(weights))
        names = b"".join(struct.pack("<Q", len(name)) + name.encode() for name in turned)
        return bytes(16) + count + names + count + b"".join(turned.values())

    weights = {"w": b"one", "m": b"three", "f_const": b"two"}
    assert b"".join(saved(weights, chance)) == chance(dict(reversed(weights.items())))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_outputs_that_are_constants_are_compared(dialect, tmp_path, running) -> None:
    running(dialect)
    nodes = "{ y = Relu(x) k = Identity(c) s = Neg(h) }"
    constants = "<float[2,3] c = {1, 2, 3, 4, 5, 6}, float h = {7}>"
    text = f"(float[2] x) => (float[2] y, float[2,3] k, float s) {constants} {nodes}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> net {text}'), tmp_path / "net.onnx")
    export = onnx2caffe.export_tvm(tmp_path / "net.onnx", tmp_path / "out", dialect=dialect, compile=False)
    assert {row.tensor: row.judgement.verdict for row in export.proof.rows} == dict.fromkeys("yks", Verdict.EQUAL)
    assert not export.proof.unjudged


def test_an_export_replaces_the_one_before(model, tmp_path, running) -> None:
    running("relax")
    folder = tmp_path / "out"
    onnx2caffe.export_tvm(model, folder, dialect="relax", compare=False)
    export = onnx2caffe.export_tvm(model, folder, dialect="relax", compare=False, compile=False)
    assert export.proof is None
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        p.name for p in (*export.files.values(), export.map_file)
    )
    assert "library" not in export.files


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_memory_does_not_hold_is_compared_in_rounds(model, dialect, tmp_path, running, monkeypatch) -> None:
    running(dialect)
    said: list[str] = []
    options = {"dialect": dialect, "compile": False, "force": True, "progress": said.append}
    whole = onnx2caffe.export_tvm(model, tmp_path / "out", **options).proof
    monkeypatch.setattr(proving, "_ROUND", 500)  # `a` and `b`, or one of the others
    parts = onnx2caffe.export_tvm(model, tmp_path / "out", **options).proof
    assert sum(text.startswith("building") for text in said) == 1 + 3
    assert [(row.tensor, row.judgement) for row in parts.rows] == [(row.tensor, row.judgement) for row in whole.rows]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_lowering_is_caught_and_named(model, dialect, tmp_path, running, monkeypatch) -> None:
    running(dialect)
    load_families()
    key = registry.BOTH, "Resize"
    right = registry._EMITTERS[key]
    monkeypatch.setitem(registry._EMITTERS, key, lambda op, net: net("negative", right(op, net)))
    with pytest.raises(NumbersDiffer, match="tensor 'c' differs") as caught:
        onnx2caffe.export_tvm(model, tmp_path / "out", dialect=dialect)
    assert "third" in caught.value.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_shape_stops_and_is_named(model, dialect, tmp_path, running, monkeypatch) -> None:
    running(dialect)
    load_families()
    monkeypatch.setitem(
        registry._EMITTERS, (registry.BOTH, "Relu"), lambda op, net: net("mean", op.value(), axis=[1], keepdims=True)
    )
    with pytest.raises(NumbersDiffer, match=r"node 'second': mean: TVM infers .*1, 1, 5, 6"):
        onnx2caffe.export_tvm(model, tmp_path / "out", dialect=dialect)
    assert not (tmp_path / "out").exists()


def test_without_a_tvm_the_command_that_gets_it_is_named(model, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    assert cli.main(["tvm", str(model), "-o", str(tmp_path / "out")]) == 4
    assert "onnx2caffe setup relay" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_python_that_is_named_must_have_it(model, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ONNX2CAFFE_RELAY_PYTHON", "/bin/false")
    with pytest.raises(RuntimeMissing, match="/bin/false"):
        onnx2caffe.export_tvm(model, tmp_path / "out")


@pytest.mark.parametrize("options", [{"dialect": "tflite"}, {"opt_level": 5}, {"opt_level": -1}])
def test_what_there_is_not_is_said_to_callers_too(model, options, tmp_path) -> None:
    with pytest.raises(UsageError, match="there is no"):
        onnx2caffe.export_tvm(model, tmp_path / "out", **options)


MEANINGLESS = [f"llvm -{option}" for option in ("kind=c", "opt-level=7", "opt-level=", "num-cores=" + "9" * 20)]


@pytest.mark.parametrize("text", ["llvm mcpu", "cuda", "", "llvm -mcpu", "llvm -mattr=neon", *MEANINGLESS])
def test_a_target_that_is_none(model, text, tmp_path) -> None:
    assert cli.main(["tvm", str(model), "-o", str(tmp_path / "out"), "--target", text]) == 2


ABI = "-mtriple=armv7a-linux-gnueabi -mabi=odd"
"""What LLVM of Relay's TVM alone looks at, when it compiles."""


@pytest.mark.parametrize(
    ("dialect", "option"),
    [
        ("relay", ABI),
        *itertools.product(
            DIALECTS, ["-foo=bar", "-mcpu=nonsense", "-mtriple=klingon", "-mattr=+avx2,-nonsense", "-mattr=+"]
        ),
    ],
)
def test_a_target_that_tvm_or_llvm_refuse_stops_before_anything_runs(
    model, dialect, option, tmp_path, running, monkeypatch
) -> None:
    running(dialect)
    monkeypatch.setattr(Translation, "make", lambda *_: pytest.fail("the target was not looked at first"))
    with pytest.raises(UsageError, match=r"foo|'nonsense'|klingon|no feature ''|ABI"):
        onnx2caffe.export_tvm(model, tmp_path / "out", dialect=dialect, target=f"llvm {option}")
    assert not (tmp_path / "out").exists()
