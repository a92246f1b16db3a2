"""`compare --runtime`: a net in Caffe's runtimes and the model in TVM's, one by one and side by side."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

import onnx2caffe
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm import registry
from onnx2caffe.tvm.registry import DIALECTS

TENSORS = {"c1", "r1", "p1", "c2", "r2", "c3", "a3", "r3", "g", "f", "fc", "prob"}


@pytest.fixture
def net(model: Path, tmp_path: Path) -> tuple[Path, Path]:
    done = onnx2caffe.convert(model, tmp_path / "net", target="caffe", proof=False)
    return done.prototxt, done.caffemodel


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_needs_no_net(dialect, cli, model, running) -> None:
    running(dialect)
    ran = cli("compare", model, "--runtime", dialect, "--json", "--runs", 1)
    assert ran.code == 0
    report = json.loads(ran.out)
    assert {(row["tensor"], row["runtime"]) for row in report["rows"]} == {(name, dialect) for name in TENSORS}
    assert report["unmapped"] == report["notes"] == []


def test_a_size_of_0_is_no_free_one(cli, tmp_path, running) -> None:
    running("relay")
    text = '<ir_version: 8, opset_import: ["": 17]> net (float[0,3] x) => (float[0,3] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    ran = cli("compare", tmp_path / "net.onnx", "--runtime", "relay")
    assert ran.code == 0
    assert "0×3" in ran.out


def test_all_side_by_side(cli, model, net, pycaffe, running) -> None:
    for dialect in DIALECTS:
        running(dialect)
    ran = cli("compare", model, *net, "--runtime", "all", "--runs", 1)
    assert ran.code == 0
    header, *lines, summary = ran.out.splitlines()
    assert header.split() == "ONNX tensor shape onnxruntime builtin pycaffe relay relax verdict".split()
    assert [line.split()[0] for line in lines] == [
        "c1",
        "r1",
        "p1",
        "c2",
        "r2",
        "c3",
        "a3",
        "r3",
        "g",
        "f",
        "fc",
        "prob",
    ]
    assert all(len(line.split()) == 8 and line.endswith("equal") for line in lines)
    assert summary.startswith("proved: 12 tensors equal in builtin ")


def test_one_that_is_wrong_is_named_in_its_column(cli, model, net, running, monkeypatch) -> None:
    running("relay")
    right = registry.emitter("relay", "LeakyRelu")
    monkeypatch.setitem(registry._EMITTERS, ("relay", "LeakyRelu"), lambda op, net: net("negative", right(op, net)))
    asked = ("--runtime", "builtin", "--runtime", "relay", "--runs", 1)
    ran = cli("compare", model, *net, *asked)
    assert ran.code == 1
    (line,) = (line for line in ran.out.splitlines() if line.startswith("r2 "))
    assert line.endswith("differs in relay")
    assert "first that differs: 'r2', layer 'nn.leaky_relu · negative'" in ran.out
    assert "… 7 more rows" in ran.out
    assert "prob" in cli("compare", model, *net, *asked, "--all").out


def test_what_is_missing_stops_where_it_is_named(cli, model, net, running, monkeypatch) -> None:
    running("relax")
    monkeypatch.setenv("ONNX2CAFFE_RELAY_PYTHON", "/bin/false")
    for asked in (["--runtime", "relay"], ["--runtime", "all", "--runtime", "relay"]):
        assert cli("compare", model, *asked).code == 4
    report = json.loads(cli("compare", model, "--runtime", "all", "--json", "--runs", 1).out)
    assert set(report["runtimes"]) == {"relax"}
    assert [note.split(":")[0] for note in report["notes"]] == [
        "builtin and pycaffe are left out", "relay is left out",
    ]  # fmt: skip


def test_a_runtime_without_a_layer_is_left_out(cli, model, net, monkeypatch) -> None:
    monkeypatch.setattr("onnx2caffe.runtimes.builtin.Builtin.missing", lambda self, types: ["Pooling"])
    assert cli("compare", model, *net, "--runtime", "builtin").code == 4
    monkeypatch.setattr("onnx2caffe.comparison._DIALECTS", ())
    ran = cli("compare", model, *net, "--runtime", "all", "--no-caffe-run")
    assert ran.code == 4
    assert "builtin is left out: builtin" in ran.err
    assert "lacks the layer types: Pooling" in ran.err


def test_a_dialect_that_refuses_the_model_is_left_out(cli, model, running, monkeypatch) -> None:
    for dialect in DIALECTS:
        running(dialect)

    def refuse(op, net):
        raise Refused("it leaks")

    monkeypatch.setitem(registry._EMITTERS, ("relax", "LeakyRelu"), refuse)
    ran = cli("compare", model, "--runtime", "relax")
    assert ran.code == 3
    assert "hint: --runtime all leaves out" in ran.err
    ran = cli("tvm", model, "--dialect", "relax")
    assert ran.code == 3
    assert ran.err.endswith("hint: --output TENSOR ends the model in front of them; --dialect relay has them\n")
    ran = cli("compare", model, "--runtime", "all", "--runs", 1)
    assert ran.code == 0
    assert "relax is left out: 1 node cannot be converted" in ran.err
    assert "it leaks" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--runtime", "builtin"),
        ("net.prototxt",),
        ("--runtime", "pycaffe", "--no-caffe-run"),
        ("--runtime", "ncnn"),
    ],
)
def test_wrong_usage(arguments, cli, model, tmp_path) -> None:
    (tmp_path / "net.prototxt").touch()
    assert cli("compare", model, *arguments).code == 2
