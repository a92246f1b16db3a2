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
from tests.nnie.models import save as save_nnie
from tests.nnie.models import warped
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
    assert "option when converting with onnx2caffe: --cut NAME" in ran.out
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


@pytest.mark.parametrize("folder", [".", "cfgs"])
def test_a_cfg_names_its_net(cli, folder: str):
    """A path counts from where the check runs or from the cfg's folder."""
    Path("cfgs").mkdir()
    name = write(BAD, f"{folder}/net.prototxt").name
    cfg = write(f"[net_type] 9\n[prototxt_file] {name}\n", "cfgs/my.cfg")
    ran = cli("check", "--cfg", cfg)
    assert ran.code == 1
    assert "net.prototxt:2: refused E01: layer 'it'" in ran.out
    assert "cfgs/my.cfg:1: refused E11: [net_type] 9" in ran.out
    assert "W28" not in ran.out


@pytest.mark.parametrize(
    ("text", "says"), [("[net_type] 0\n", "has no [prototxt_file]"), ("[prototxt_file] a\n", "a: no such file")]
)
def test_a_cfg_without_a_net(cli, text: str, says: str):
    ran = cli("check", "--cfg", write(text, "my.cfg"))
    assert ran.code == 2
    assert says in ran.err


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


def test_a_model_is_checked_as_it_would_be_converted(cli, tmp_path):
    """What `convert` leaves to the CPU is said as such, by `inspect` in the same words; refused only where asked."""
    model = save_nnie(warped(), tmp_path)
    ran = cli("check", model)
    assert ran.code == 0
    (line,) = (line for line in ran.out.splitlines() if line.startswith("on the CPU  GridSample 'n_warped': "))
    summary = next(line for line in ran.out.splitlines() if line.startswith("NNIE: "))
    assert {line, summary} <= set(cli("inspect", model).out.splitlines())
    assert cli("convert", model, "-o", "out", "--no-proof").out.splitlines().count(summary) == 1
    report = json.loads(cli("check", model, "--json").out)
    assert (report["summary"], [node["node"] for node in report["on_cpu"]]) == (summary, ["n_warped"])
    ran = cli("check", model, "--no-partition")
    assert ran.code == 1
    assert "refused node: GridSample: " in ran.out
    assert not set(ran.out.splitlines()) & {line, summary}
    assert [f.nodes for f in onnx2caffe.check(model, target="caffe").at_least("refused")] == [("n_warped",)]
    assert onnx2caffe.check(model, target="caffe", partition=True).at_least("refused") == []


def test_a_model_without_a_net_is_refused(cli, tmp_path):
    """`convert` ends with 3 there."""
    model = save_nnie(warped(), tmp_path)
    rules = write("[X1]\nseverity = 'refused'\nwhen = { types = ['Convolution'] }\n", "my.toml")
    assert cli("convert", model, "-o", "out", "--no-proof", "--rules", rules).code == 3
    ran = cli("check", model, "--rules", rules)
    assert ran.code == 1
    assert {nodes for f in onnx2caffe.check(model, rules=rules).at_least("refused") for nodes in f.nodes} >= {"n_c1"}


def test_alike_findings_share_a_line_and_the_worst_stand_first(cli):
    layers = [layer("ReLU", "relu_param { negative_slope: 0.1 }", bottom="data", name=f"r{i}") for i in range(4)]
    path = write(net(*layers, layer("Permute", "permute_param { order: 0 order: 3 }", name="p")))
    ran = cli("check", path)
    lines = ran.out.splitlines()
    assert lines[0] == "net.prototxt:6: refused E01: layer 'p': order [0, 3, 1, 2]"
    assert lines[1] == (
        "net.prototxt:2: slow W20: 4 layers: negative_slope 0.1 is not 0: 'r0' (line 2), 'r1' (line 3), 'r2' (line 4) …"
    )
    assert [line for line in lines if line.startswith(("E01 (", "W20 ("))] == ["E01 (refused)", "W20 (slow)"]
    assert cli("check", path, "-v").out.splitlines()[1].endswith("'r2' (line 4), 'r3' (line 5)")
    found = json.loads(cli("check", path, "--json").out)["findings"]
    assert [f["line"] for f in found if f["rule"] == "W20"] == [2, 3, 4, 5]


def test_alike_messages_of_a_log_share_a_line(cli):
    log = write("data containing only zeros\n" * 2 + "Aborted\nerror: a\nAborted\n", "l")
    lines = cli("check", "--mapper-log", log).out.splitlines()
    unknown = "a message of the mapper's that no rule knows"
    assert lines[:3] == [
        f"l:3: refused ?: 2 times: {unknown}: Aborted: line 3, line 5",
        f"l:4: refused ?: {unknown}: error: a",
        "l:1: slow M01: 2 times: a tensor of zeros in calibration: line 1, line 2",
    ]
    assert sum("a rule of your own (--rules" in line for line in lines) == 1


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
        (["check", "net.prototxt", "--no-partition"], "for an ONNX file"),
        (["check", "--mapper-log", "l", "--partition"], "for an ONNX file"),
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
