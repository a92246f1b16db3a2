"""Ends of a network whose sizes depend on data, from reading to map.json."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import onnx2caffe
from onnx2caffe import cli, mapfile
from onnx2caffe.canon import is_unsized
from onnx2caffe.errors import NotConvertible, NumbersDiffer, RuntimeCrash
from onnx2caffe.frontend import from_proto
from onnx2caffe.mapfile import Place, Port
from onnx2caffe.tvm.common import unsized
from onnx2caffe.tvm.registry import DIALECTS
from tests.tvm.harness import emitted, run

UNSIZED = "the shape of its output depends on data"


def model(body: str, outputs: str = "int64[a, b] y") -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => ({outputs}) {{ r = Relu (x) {body} }}'
    )


NON_ZERO = model("y = NonZero (r)")
ALONE = '<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (int64[2, a] y) { y = NonZero (x) }'


SCRIPT = """
import sys
import numpy as np, tvm

net = tvm.runtime.vm.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
for x in np.load(sys.argv[2]):
    net.set_input("main", x=x)
    r, y = net.run()
    print(r.numpy().tolist(), y.numpy().tolist())
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(NON_ZERO, path)
    return path


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_export_is_proved_and_its_map_says_what_is_unknown(dialect: str, path, tmp_path, running) -> None:
    running(dialect)
    done = onnx2caffe.export_tvm(path, tmp_path / "out", dialect=dialect)
    assert done.proof is not None
    assert [(row.tensor, row.judgement.verdict) for row in done.proof.rows] == [("r", "equal"), ("y", "equal")]
    export = mapfile.read(done.map_file)
    assert export.outputs == [Port("y", (2, -1), "int64")]
    assert export.segments[0].outputs == {"y": Place("0", (2, -1))}


def test_the_map_says_what_runs_the_library(path, tmp_path, running, capsys) -> None:
    running("relay")
    known = tmp_path / "known.onnx"
    onnx.save(model("y = Neg (r)", "float[2, 3] y"), known)
    executors = []
    for given in (path, known):
        assert cli.main(["tvm", str(given), "-o", str(tmp_path / given.stem), "--no-compare", "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        executors.append(mapfile.read(Path(said["map"])).segments[0].build["executor"])
        assert [output["shape"] for output in said["outputs"]] == [[2, -1] if given == path else [2, 3]]
    assert executors == ["vm", "graph"]


@pytest.mark.parametrize("linked", [True, False])
def test_a_library_of_relay_needs_no_other_file(linked: bool, tmp_path, running) -> None:
    """One output of a known size, one of an unknown one; from objects linked by hand too."""
    python = running("relay").python
    onnx.save(model("y = NonZero (r)", "float[2, 3] r, int64[a, b] y"), tmp_path / "net.onnx")
    target = "host" if linked else f"llvm -mtriple={platform.machine()}-linux-gnu"
    folder = tmp_path / "out"
    library = onnx2caffe.export_tvm(tmp_path / "net.onnx", folder, target=target, compare=False).files["library"]
    if not linked:
        subprocess.run(["tar", "xf", library], cwd=folder, check=True)
        subprocess.run(["gcc", "-shared", "-o", "net.so", "lib0.o", "devc.o"], cwd=folder, check=True)
    np.save(tmp_path / "x.npy", np.array([[[1, 0, 2], [0, -3, 4]], np.zeros((2, 3))], np.float32))
    command = [python, "-c", SCRIPT, folder / "net.so", tmp_path / "x.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "[[1.0, 0.0, 2.0], [0.0, 0.0, 4.0]] [[0, 0, 1], [0, 2, 2]]",
        "[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]] [[], []]",
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("target", ["opencl", "mali"])
def test_a_gpu_has_none_of_them(target: str, dialect: str, path, tmp_path, capsys) -> None:
    arguments = ["--target", target, "--dialect", dialect, "-o", str(tmp_path / "out")]
    assert cli.main(["tvm", str(path), *arguments]) == 3
    assert f"--target {target}: the shape of output 'y' depends on data\n" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["host", "hi3516dv300"])
def test_same_bytes_every_time(target: str, path, tmp_path, running) -> None:
    """TVM itself would write addresses into the virtual machine's code."""
    running("relay")
    first, second = (
        onnx2caffe.export_tvm(path, tmp_path / name, target=target, compare=False).files["library"] for name in "ab"
    )
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_compare_runs_it(dialect: str, path, running, capsys) -> None:
    running(dialect)
    assert cli.main(["compare", str(path), "--runtime", dialect, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(row["tensor"], row["verdict"]) for row in said["rows"]] == [("r", "equal"), ("y", "equal")]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_number_of_them_is_caught(dialect: str, alone: bool, path, tmp_path, running, monkeypatch) -> None:
    """Also where no tensor of a known size is left to look at for the step that did it."""
    running(dialect)
    if alone:
        onnx.save(parser.parse_model(ALONE), path)
    total = unsized._total
    monkeypatch.setattr(unsized, "_total", lambda net, ones: net("subtract", total(net, ones), net.like(1, ones)))
    with pytest.raises(NumbersDiffer, match=r"(?s)'y' differs.*shape.*breaks a tensor is: lowering of NonZero 'y'"):
        onnx2caffe.export_tvm(path, tmp_path / "out", dialect=dialect)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("dialect", "problem", "words"), [("relay", AssertionError, "TVM infers"), ("relax", RuntimeCrash, "shape")]
)
def test_a_size_that_is_known_is_checked(dialect: str, problem: type[Exception], words: str, running) -> None:
    """By Relay's types; Relax' leave it to the run."""
    tvm = running(dialect)
    loaded, program = emitted(NON_ZERO, dialect)
    calls = program.program.calls
    calls[-1] = replace(calls[-1], types=[replace(calls[-1].types[0], shape=(3, -1))])
    with pytest.raises(problem, match=words):
        run(tvm, loaded, program, [{"x": np.ones((2, 3), np.float32)}])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_function_may_hold_one_and_name_its_attributes_otherwise(dialect: str, running) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "mine" : 1]> g (float[3, 2] x) => (float[3, a] y, int64[a] n) {
        r = Relu (x) y, n = mine.Distinct <along = -1> (r)
    }
    <domain: "mine", opset_import: ["" : 18]> Distinct <along> (p) => (q, s) {
        q, i, v, s = Unique <axis: int = @along> (p)
    }"""
    loaded, program = emitted(parser.parse_model(text), dialect)
    x = np.array([[1, 1], [2, 2], [0, -1]], np.float32)
    ((distinct, counts),) = run(running(dialect), loaded, program, [{"x": x}])
    np.testing.assert_array_equal(distinct, [[1], [2], [0]])
    np.testing.assert_array_equal(counts, [2])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("readers", ["z = Transpose (y)", "z = Identity (y) u = Neg (z)"])
def test_nothing_inside_a_net_may_read_them(readers: str, dialect: str) -> None:
    last = "u" if "u =" in readers else "z"
    reading = model(f"y = NonZero (r) {readers}", f"int64[a, b] y, int64[c, d] {last}")
    with pytest.raises(NotConvertible, match=f"NonZero 'y': {UNSIZED}, and '?{last}'? reads it"):
        emitted(reading, dialect)


def test_plain_c_has_none_of_them(path, tmp_path, capsys) -> None:
    assert cli.main(["tvm", str(path), "--target", "c", "-o", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert f"NonZero 'y': {UNSIZED}\n" in said
    assert "--target with a machine instead of c has them" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("body", ["y = Compress (r, c)", "s = CastLike (x, n) y = Range (s, s, s)"])
def test_no_other_node_counts_as_an_end(body: str) -> None:
    constants = "n = Constant <value_int = 1> () c = Cast <to = 9> (k)"
    given = model(
        f"k = ReduceMax <keepdims = 0> (x) {constants} {body.replace('(s, s, s)', '(k, k, k)')}", "float[a] y"
    )
    nodes = list(from_proto(given).model.graph)
    assert not any(map(is_unsized, nodes))
