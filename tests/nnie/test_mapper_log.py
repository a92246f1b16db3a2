"""What the mapper says, in the forms users have quoted."""

from __future__ import annotations

import pytest

from onnx2caffe.targets.nnie.mapper_log import read_log
from onnx2caffe.targets.nnie.rules import load_rules

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
     '"HiSVP Development Guide.pdf" to extend caffe!', "E05", ""),
    ("model->seg[0].dst_num(22) should be [1,16]", "E09", ""),
    ("model->net_seg_num(9) should be [1, 8]", "E09", ""),
    ("node->shape.whc.width(5000) must be [8,4096]", "E10", ""),
    ("layer[conv1] value[0.000001] is too small", "M02", ""),
    ("./nnie_mapper_12: undefined symbol: _ZN6google8protobuf8internal26fixed_address_empty_stringE", "M03", ""),
    ("data containing only zeros; set max value to 1e-6.", "M01", ""),
    ("HI_MPI_SVP_NNIE_LoadModel failed!", "M04", ""),
    ("layer name: [x]. error:something nobody has seen", "", "x"),
]  # fmt: skip

HARMLESS = [
    ("M01", "data containing no zeros"),
    ("M02", "layer[conv1] value[0.5] is small"),
    ("M03", "./nnie_mapper_12: undefined symbol: _ZN5caffe3NetIfE"),
    ("M04", "HI_MPI_SVP_NNIE_LoadModel done"),
]
"""Lines that only resemble the messages of rules about logs."""


def test_a_log_with_nodes():
    permute, zeros = read_log(LOG, RULES, "mapper_error.log", {"Transpose_174": ["/head/Transpose"]})
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


def test_an_error_without_a_known_text_is_told():
    (finding,) = read_log("ERROR: file: parseFooPara  line: 12\nfoo is bad\n", RULES)
    assert (finding.rule, finding.severity, finding.words) == ("", "refused", "foo is bad")
    assert "Foo" in finding.text


def test_progress_is_no_finding():
    assert read_log("begin net parsing\nend net parsing\nnet quantalizing(CPU)\nSuccessfully!\n", RULES) == []
