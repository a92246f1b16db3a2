"""What the mapper says, in the forms users have quoted."""

from __future__ import annotations

import time

import pytest

from onnx2caffe import api
from onnx2caffe.errors import UnreadableFile
from onnx2caffe.targets.nnie.mapper_log import Names, read_log
from onnx2caffe.targets.nnie.rules import Rule, load_rules

RULES = load_rules()

LOG = """\
Mapper Version 1.1.2.0_B050 (NNIE_1.1) 1812171743151709
begin net parsing....
ERROR: file: parsePermutePara  line: 6149
layer name: [Transpose_174]. error:Permute can only support (0,1,2,3) -> (0,2,3,1) order!
WARNING: file: Inference::computeNonlinearQuantizationDelta  line: 92
data containing only zeros; set max value to 1e-6.
"""


MESSAGES = [
    ("layer name: [Reshape_1]. error:reshape only support C/H/W, not N!", "E02", "Reshape_1"),
    ("reshape only support C/H/W, not N!", "E02", ""),
    ("layer name: [plus0]. error: All inputs must have the same shape!", "E06", "plus0"),
    ("[ERROR] layer name: [a[0]. error: All inputs must have the same shape!", "E06", "a[0"),
    ("Layer Crop1 with type Crop is not supported, please refer to chapter 3.1.4 and FAQ of "
     '"HiSVP Development Guide.pdf" to extend caffe!', "E05", "Crop1"),
    ("Layer a layer with type Crop is not supported", "E05", "a layer"),
    ("model->seg[0].dst_num(22) should be [1,16]", "E09", ""),
    ("model->net_seg_num(9) should be [1, 8]", "E09", ""),
    ("node->shape.whc.width(5000) must be [8,4096]", "E10", ""),
    ("layer[conv1] value[0.000001] is too small", "M02", "conv1"),
    ("./nnie_mapper_12: undefined symbol: _ZN6google8protobuf8internal26fixed_address_empty_stringE", "M03", ""),
    ("data containing only zeros; set max value to 1e-6.", "M01", ""),
    ("layer[Conv_0] data containing only zeros", "M01", "Conv_0"),
    ("F1130 12:00:00.000001 7 insert_splits.cpp:29] Unknown bottom blob 'x'", "E18", ""),
    ("F1130 12:00:00.000001 7 eltwise_layer.cpp:47] Check failed: a == b", "E18", ""),
    ("HI_MPI_SVP_NNIE_LoadModel failed!", "M04", ""),
    ("layer name: [x]. error:something nobody has seen", "", "x"),
]  # fmt: skip

UNKNOWN = [
    ("ERROR: layer Conv_0 something unheard of!", "refused", "Conv_0", ("/c/Conv",)),
    ("ERROR: file: parseFooPara  line: 12", "refused", "", ()),
    ("E1130 12:00:00.000001 7 some.cpp:29] strange (blob 'it')", "refused", "Conv_0", ("/c/Conv",)),
    ("F1130 12:00:00.000001 7 io.cpp:36] Check failed: fd != -1 File not found: Conv_0.txt", "refused", "", ()),
    ("Check failed: something", "refused", "", ()),
    ("the stride of /c/pool.1 is not supported.", "refused", "/c/pool.1", ("/c/MaxPool",)),
    ("Error in data: layer [data] is odd", "refused", "data", ()),
    ("failed on data, 64 of conv", "refused", "", ()),
    ("failed on blob [64]", "refused", "conv", ()),
    ("Segmentation fault (core dumped)", "refused", "", ()),
    ("Aborted", "refused", "", ()),
    ("terminate called after throwing an instance of 'std::bad_alloc'", "refused", "", ()),
    ("./nnie_mapper_12: error while loading shared libraries: libx.so", "refused", "", ()),
    ("W1130 12:00:00.000001 7 some.cpp:29] odd: /c/pool.1", "slow", "/c/pool.1", ("/c/MaxPool",)),
    ("WARNING: it is odd", "slow", "", ()),
]  # fmt: skip
"""Lines that no rule knows, and what of a net they name."""

NAMES = Names(
    {"Conv_0": ["/c/Conv"], "/c/pool.1": ["/c/MaxPool"], "/c/pool": [], "data": [], "conv": []},
    {"it": "Conv_0", "64": "conv"},
)

HARMLESS = [
    ("M01", "data containing no zeros"),
    ("M02", "layer[conv1] value[0.5] is small"),
    ("M03", "./nnie_mapper_12: undefined symbol: _ZN5caffe3NetIfE"),
    ("M04", "HI_MPI_SVP_NNIE_LoadModel done"),
]
"""Lines that only resemble the messages of rules about logs."""


def test_a_log_with_nodes():
    permute, zeros = read_log(LOG, RULES, "mapper_error.log", Names({"Transpose_174": ["/head/Transpose"]}))
    assert (permute.rule, permute.layer, permute.line) == ("E01", "Transpose_174", 4)
    assert permute.nodes == ("/head/Transpose",)
    assert "Permute(0,2,3,1)" in permute.remedy
    assert (zeros.rule, zeros.severity, zeros.line) == ("M01", "slow", 6)


@pytest.mark.parametrize(("line", "rule", "layer"), MESSAGES)
def test_a_message(line: str, rule: str, layer: str):
    (finding,) = read_log(f"begin net parsing\n\n  {line}\r\n", RULES)
    assert (finding.rule, finding.layer, finding.line) == (rule, layer, 3)
    assert finding.words


@pytest.mark.parametrize(("rule", "line"), HARMLESS)
def test_a_harmless_line(rule: str, line: str):
    assert rule not in {finding.rule for finding in read_log(f"{line}\n", RULES)}


@pytest.mark.parametrize("rule", [rule for rule in RULES.values() if rule.words], ids=lambda rule: rule.id)
def test_the_words_of_a_rule_are_found_in_a_log(rule: Rule):
    for words in rule.words.split("; "):
        line = words.replace("%d", "7").replace("%s", "it").replace("...", "odd")
        assert rule.id in {finding.rule for finding in read_log(line, RULES)}


@pytest.mark.parametrize(("line", "severity", "layer", "nodes"), UNKNOWN)
def test_what_looks_like_an_error_is_told(line: str, severity: str, layer: str, nodes: tuple[str, ...]):
    (finding,) = read_log(f"begin net parsing\n{line}\n", RULES, names=NAMES)
    assert (finding.rule, finding.severity, finding.words) == ("", severity, line)
    assert (finding.layer, finding.nodes) == (layer, nodes)


def test_no_head_is_lost():
    head = "ERROR: file: parseFooPara  line: 12"
    first, second, third = read_log(f"{head}\n{head}\n\nfoo is bad\n{head}\n", RULES)
    assert [(f.line, f.words) for f in (first, second, third)] == [(1, head), (4, "foo is bad"), (5, head)]


def test_an_error_behind_the_head_of_a_warning_is_an_error():
    (finding,) = read_log("WARNING: file: f  line: 1\nSegmentation fault\n", RULES)
    assert finding.severity == "refused"


def test_an_error_without_a_known_text_is_told():
    (finding,) = read_log("ERROR: file: parseFooPara  line: 12\nfoo is bad\n", RULES)
    assert (finding.rule, finding.severity, finding.words) == ("", "refused", "foo is bad")
    assert "Foo" in finding.text


def test_a_line_without_end_takes_no_time():
    started = time.process_time()
    assert read_log("Layer " * 50_000 + "\nERROR: no more memory", RULES)[0].line == 2
    assert time.process_time() - started < 10  # more than a minute when all of the line is searched


@pytest.mark.parametrize("content", ["ERROR: x".encode("utf-16"), b"\x7fELF\0\0\0"], ids=["utf-16", "binary"])
def test_what_is_no_text_is_told(content: bytes, tmp_path):
    log = tmp_path / "mapper.log"
    log.write_bytes(content)
    with pytest.raises(UnreadableFile, match="NUL"):
        api.check(mapper_log=log)


def test_progress_is_no_finding():
    info = "I1130 12:00:00.000001 7 net.cpp:29] error: 0.1 at layer [Conv_0]"
    lines = ["begin net parsing", "end net parsing", "net quantalizing(CPU) layer [Conv_0]", info, "Successfully!"]
    assert read_log("\n".join(lines), RULES, names=NAMES) == []
