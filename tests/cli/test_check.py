"""`onnx2caffe check`: what it prints, what it returns."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

import onnx2caffe
from onnx2caffe.cli.parser import _SOCS
from onnx2caffe.targets.nnie.socs import SOCS
from tests.nnie.nets import layer, net
from tests.verify.models import save

BAD = net(layer("Permute", "permute_param { order: 0 order: 3 }"))
GOOD = net(layer("Convolution", "convolution_param { num_output: 4 kernel_size: 3 }"))
LEAKY = net(layer("ReLU", "relu_param { negative_slope: 0.1 }", top="data"))


def write(text: str, name: str = "net.prototxt") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def test_a_good_net(cli):
    ran = cli("check", write(GOOD))
    assert ran.code == 0
    assert ran.out == "target nnie: nothing found\n"
    assert "is_check_prototxt" in ran.err


def test_a_bad_net(cli):
    ran = cli("check", write(BAD), "--soc", "hi3559av100")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0] == "net.prototxt:2: refused E01: layer 'it': order [0, 3, 1, 2]"
    assert any("Permute can only support" in line for line in lines)
    assert "option --cut NAME" in ran.out
    assert lines[-1].startswith("target nnie: 1 refused")
    assert "nnie_mapper_11 alone" in ran.err


@pytest.mark.parametrize(("severity", "code"), [("refused", 0), ("wrong", 0), ("unproven", 0), ("slow", 1)])
def test_fail_on(cli, severity: str, code: int):
    assert cli("check", write(LEAKY), "--fail-on", severity).code == code


def test_json(cli):
    ran = cli("check", write(BAD), "--json")
    report = json.loads(ran.out)
    assert (ran.code, report["failing"], report["counts"]["refused"]) == (1, 1, 1)
    (finding,) = report["findings"]
    assert finding["rule"] == "E01"
    assert all(finding[part] for part in ("words", "remedy", "source", "strength", "line", "file"))


def test_user_rules(cli):
    rules = write("[W20]\nseverity = 'refused'\n", "my.toml")
    assert cli("check", write(LEAKY), "--rules", rules).code == 1


def test_a_cfg(cli):
    cfg = write("[prototxt_file] net.prototxt\n[net_type] 9\n", "net.cfg")
    ran = cli("check", write(GOOD), "--cfg", cfg)
    assert ran.code == 1
    assert "net.cfg:2: refused E11: [net_type] 9 is not one of 0, 1, 2" in ran.out


@pytest.mark.parametrize(
    ("target", "type", "code"), [("caffe", "Interp", 0), ("bvlc", "Interp", 1), ("bvlc", "New", 1)]
)
def test_other_targets(cli, target: str, type: str, code: int):
    parameters = "interp_param { height: 4 width: 4 }" if type == "Interp" else ""
    assert cli("check", write(net(layer(type, parameters))), "--target", target).code == code


def test_a_net_that_does_not_load_in_caffe(cli):
    ran = cli("check", write(net(layer("ReLU", bottom="nothing"))), "--target", "caffe")
    assert ran.code == 1
    assert "unknown bottom blob 'nothing'" in ran.out


def test_a_model_is_checked_by_its_nodes(cli, tmp_path):
    model = save("classifier", tmp_path)
    report = onnx2caffe.check(model)
    assert {finding.file for finding in report.findings} <= {str(model)}
    assert all(finding.nodes for finding in report.at_least("refused"))
    assert onnx2caffe.check(model, target="caffe").findings == ()


def test_our_own_export_names_the_onnx_nodes_and_a_log_too(cli, tmp_path):
    model = save("classifier", tmp_path)
    onnx2caffe.convert(model, "net", name="net", proof=False)
    (layer, nodes) = next((k, v) for k, v in json.loads(Path("net/net.map.json").read_text())["layers"].items() if v)
    log = write(f"ERROR: file: parsePermutePara  line: 6149\nlayer name: [{layer}]. error:strange\n", "log.txt")
    report = onnx2caffe.check("net/net.prototxt", rules=write("[W16.when]\npattern = 'x'\n", "r.toml"), mapper_log=log)
    assert {tuple(nodes)} == {f.nodes for f in report.findings if f.layer == layer}
    (said,) = onnx2caffe.check(mapper_log=Path("net") / ".." / log.name).findings
    assert (said.words, said.nodes) == ("strange", ())


def test_a_log_beside_a_model_names_its_nodes(cli, tmp_path):
    model = save("classifier", tmp_path)
    onnx2caffe.convert(model, "net", name="net", target="nnie", proof=False)
    layers = json.loads(Path("net/net.map.json").read_text())["layers"]
    (layer, nodes) = next((name, nodes) for name, nodes in layers.items() if nodes)
    log = write(f"layer name: [{layer}_hp]. error:strange\n", "log.txt")
    (said,) = (f for f in onnx2caffe.check(model, mapper_log=log).findings if f.file == "log.txt")
    assert said.nodes == tuple(nodes)


def test_a_log_of_unknown_errors_alone_fails(cli):
    """The layer is named by a blob, in a net of others; what no rule knows is shown and counts."""
    log = write("begin net parsing\nF1130 12:00:00.000001 7 a.cpp:1] Odd blob 'it_1'\nSegmentation fault\n", "l")
    ran = cli("check", write(net(layer("ReLU", top="it_1"))), "--mapper-log", log)
    assert ran.code == 1
    assert "l:2: refused ?: layer 'it': a message of the mapper's that no rule knows: F1130" in ran.out
    assert "l:3: refused ?: a message of the mapper's that no rule knows: Segmentation fault" in ran.out
    assert cli("check", "--mapper-log", log, "--fail-on", "refused").code == 1


def test_an_old_prototxt(cli):
    text = (
        'name: "old" input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8\n'
        'layers { name: "p" type: POOLING bottom: "data" top: "p" pooling_param { kernel_size: 3 stride: 2 } }\n'
        'layers { name: "e" type: ELTWISE bottom: "data" bottom: "p" top: "e" }\n'
    )
    ran = cli("check", write(text))
    assert ran.out.startswith("net.prototxt:3: refused E06: layer 'e': bottoms 1x3x8x8, 1x3x4x4\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "layer {",
        "layer { name: }",
        "}",
        "layer { name: 'x\n' }",
        "just words",
        "a: [",
        "\0",
        "a {" * 9999,
    ],
)
def test_what_is_no_prototxt(cli, text: str):
    ran = cli("check", write(text))
    assert ran.code == 2
    assert "net.prototxt" in ran.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["check"], "nothing to check"),
        (["check", "missing.prototxt"], "missing.prototxt"),
        (["check", "net.prototxt", "--soc", "ss928"], "ATC"),
        (["check", "net.prototxt", "--soc", "hi0000"], "hi3516dv300"),
        (["check", "net.prototxt", "--target", "bvlc", "--soc", "hi3516dv300"], "target nnie"),
        (["check", "net.prototxt", "--cfg", "missing.cfg"], "missing.cfg"),
        (["check", "net.prototxt", "--rules", "missing.toml"], "missing.toml"),
        (["check", "--mapper-log", "missing.log"], "missing.log"),
        (["check", "net.onnx", "--cfg", "net.cfg"], "prototxt"),
        (["check", "net.prototxt", "--fail-on", "everything"], "everything"),
    ],
)
def test_wrong_usage(cli, words: list[str], text: str):
    write(GOOD)
    ran = cli(*words)
    assert ran.code == 2
    assert text in ran.err


def test_the_help_lists_the_chips_there_are():
    assert sorted(_SOCS) == sorted(SOCS)


@pytest.mark.parametrize("option", ["", "--cfg", "--rules", "--mapper-log"])
@pytest.mark.parametrize(
    ("path", "says"),
    [("pipe", "no regular file"), ("/dev/zero", "no regular file"), ("a\0b", "null byte"), (".", "is a folder, not ")],
)
def test_paths_that_are_no_text(cli, option: str, path: str, says: str):
    os.mkfifo("pipe")
    ran = cli("check", *([write(GOOD), option] if option else []), path)
    assert ran.code == 2
    assert says in ran.err


def test_a_pipe_and_a_deep_file_as_maps_beside_the_net(cli):
    os.mkfifo("a.map.json")
    write('{"format": ' + "[" * 100_000, "b.map.json")
    assert cli("check", write(GOOD)).code == 0


def test_rules_nested_deep(cli):
    ran = cli("check", write(GOOD), "--rules", write(f"a = {'[' * 100_000}", "my.toml"))
    assert ran.code == 2
    assert "is not TOML" in ran.err


@pytest.mark.parametrize("target", ["nnie", "caffe"])
@pytest.mark.parametrize(
    "layers",
    [
        [layer("ReLU"), layer("TanH")],
        [layer("Slice", top="a,a")],
        [layer("ReLU", top="data", bottom="it", name="b")],
        [net()],
    ],
    ids=["twice", "in-one-layer", "before-it-is-made", "input"],
)
def test_blobs_that_caffe_would_refuse(cli, target: str, layers: list[str]):
    ran = cli("check", write(net(*layers)), "--target", target)
    assert ran.code == 1
    assert "produced by several layers" in ran.out or "unknown bottom" in ran.out


def test_blobs_of_training_are_not_made_twice(cli):
    layers = [layer("ReLU", "include { phase: TRAIN }"), layer("TanH", "include { phase: TEST }")]
    assert cli("check", write(net(*layers)), "--target", "caffe").code == 0


def test_a_chain_of_3000_layers(cli):
    names = [f"b{number}" for number in range(3001)]
    layers = [layer("AbsVal", bottom=a, name=b) for a, b in zip(["data", *names], names, strict=False)]
    start = time.monotonic()
    assert cli("check", write(net(*layers)), "--target", "nnie").code == 0
    assert time.monotonic() - start < 60
