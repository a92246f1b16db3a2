"""The mapper's cfg: how it is read, and the rules that need it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onnx2caffe import api
from onnx2caffe.errors import UnreadableFile
from onnx2caffe.targets.nnie.cfg import CFG_RULES, parse_cfg, read_cfg
from onnx2caffe.targets.nnie.examine import examine
from onnx2caffe.targets.nnie.rules import Finding, load_rules
from tests.nnie.models import Graph, save
from tests.nnie.nets import layer, net, sites

RULES = load_rules()
SHARED = Path(__file__).parents[3] / "shared" / "nnie_prototxt"
GOOD = {
    "prototxt_file": "net.prototxt",
    "caffemodel_file": "net.caffemodel",
    "image_list": "pictures.txt",
    "image_type": "1",
    "mean_file": "null",
    "norm_type": "3",
    "data_scale": "0.0039215686",
    "net_type": "0",
    "compile_mode": "0",
    "RGB_order": "BGR",
    "instruction_name": "inst",
}
PICTURE = net(layer("Convolution", "convolution_param { num_output: 8 kernel_size: 3 }"), shape=(1, 3, 32, 32))
CENTRED = PICTURE.replace('"data"', '"centred"')
MEANS = {"centred": (100.0, 110.0, 120.0)}
"""What a head subtracts; of these files only `means.txt` and `bytes.txt` hold that."""
FILES = {
    "means.txt": "100\n110\n120\n",
    "turned.txt": "120\n110\n100\n",
    "one.txt": "100\n",
    "bytes.txt": "25500\n28050\n30600\n",
}


def picture(*shape: int) -> str:
    return net(layer("ReLU"), shape=(1, *shape))


def text(**changes: str) -> str:
    return "".join(f"[{key}] {value}\n" for key, value in (GOOD | changes).items() if value)


BROKEN: list[tuple[str, str, str]] = [
    ("E07", net(layer("ReLU", name="r_hp"), shape=(1, 3, 32, 32)), text()),
    ("E10", picture(4, 32, 32), text()),
    ("E10", picture(1, 32, 32), text(image_type="3")),
    ("E10", picture(3, 32, 7), text()),
    ("E10", picture(3, 5000, 32), text()),
    ("E10", picture(3, 31, 32), text(image_type="3")),
    ("E10", picture(3, 32, 31), text(image_type="5")),
    ("E10", picture(3), text()),
    ("E11", PICTURE, text(net_type="3")),
    ("E11", PICTURE, text(image_type="2")),
    ("E11", PICTURE, text(RGB_order="GBR")),
    ("E11", PICTURE, text(data_scale="0.0001")),
    ("E11", PICTURE, text(data_scale="big")),
    ("E11", PICTURE, text(batch_num="300")),
    ("E11", PICTURE, text(instruction_name="i" * 120)),
    ("E11", PICTURE, text(image_type="0")),
    ("E11", PICTURE, text(caffemodel_file="")),
    ("E11", PICTURE, text(norm_type="5")),
    ("E11", PICTURE, text(norm_type="1", mean_file="")),
    ("E11", PICTURE, text() + "[image_list] more.txt\n"),
    ("E16", PICTURE, text(net_type="1")),
    (
        "E16",
        net(layer("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 2 }", bottom="data,data")),
        text(net_type="0"),
    ),
    ("W17", PICTURE, text(data_scale="0.0039062")),
    ("W17", PICTURE, text(data_scale="0.00784")),
    ("W17", PICTURE, text(RGB_order="RGB")),
    ("W23", PICTURE, text(instructions_name="inst")),
    *(("W27", PICTURE, text(**{key: "nowhere"})) for key in ("prototxt_file", "caffemodel_file", "image_list")),
    *(("W27", PICTURE, text(**{key: "nowhere"})) for key in ("roi_coordinate_file", "gfpq_param_file")),
    ("W27", PICTURE, text(norm_type="5", mean_file="nowhere.txt")),
    ("W27", PICTURE, text(image_list="x" * 999)),
    ("W27", PICTURE, text(image_list=".")),
    ("W28", PICTURE, text(prototxt_file="other.prototxt")),
    ("W28", PICTURE, text(prototxt_file="nowhere/gone.prototxt")),
    *(("W29", CENTRED, text(norm_type=norm)) for norm in ("0", "3")),
    *(("W29", CENTRED, text(norm_type="2", mean_file=f"{name}.txt")) for name in ("turned", "one")),
    ("W29", CENTRED, text(norm_type="5", mean_file="means.txt", data_scale="0.5")),
]

CLEAN: list[tuple[str, str, str]] = [
    ("E07", net(layer("ReLU", name="r_hp"), shape=(1, 3, 32, 32)), text(compile_mode="2")),
    ("E10", picture(3, 31, 31), text()),
    ("E10", picture(64, 7, 7), text(image_type="0", norm_type="0")),
    ("E10", picture(3, 31, 32), text(image_type="5")),
    ("E11", PICTURE, text(data_scale="1", norm_type="5", mean_file="mean.txt", batch_num="0", RGB_order="RGB")),
    (
        "E16",
        net(layer("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 2 }", bottom="data,data")),
        text(net_type="1"),
    ),
    ("W17", PICTURE, text(data_scale="0.0039062", norm_type="0")),
    ("W17", PICTURE, text(data_scale="0.017")),
    ("W17", PICTURE, text(data_scale="0.0078125")),
    ("W17", PICTURE, text(data_scale="0.00392157")),
    ("W23", PICTURE, text(gfpq_param_file="ranges.txt")),
    ("W27", PICTURE, text(norm_type="3", mean_file="nowhere.txt")),
    ("W27", PICTURE, text(norm_type="5", mean_file="mean.txt")),
    ("W28", PICTURE, text(prototxt_file="./net.prototxt")),
    ("W28", PICTURE, text(prototxt_file=r"D:\\elsewhere\\net.prototxt")),
    ("W29", PICTURE, text(norm_type="0")),
    ("W29", CENTRED, text(norm_type="0", image_type="0")),
    ("W29", CENTRED, text(norm_type="1", mean_file="mean.binaryproto")),
    ("W29", CENTRED, text(norm_type="2", mean_file="means.txt")),
    ("W29", CENTRED, text(norm_type="2", mean_file="nowhere.txt")),
    ("W29", CENTRED, text(norm_type="5", mean_file="bytes.txt", data_scale="0.00392157")),
]


def found(prototxt: str, cfg: str, folder: Path) -> list[Finding]:
    named = set(CFG_RULES)
    for name in ("net.caffemodel", "pictures.txt", "mean.txt", "ranges.txt", "other.prototxt"):
        (folder / name).touch()
    for name, held in FILES.items():
        (folder / name).write_text(held)
    parsed = replace(parse_cfg(cfg, folder / "cfg", folder / "net.prototxt"), means=MEANS)
    return [f for f in examine(sites(prototxt, folder), RULES, cfg=parsed) if f.rule in named]


def test_lines_comments_and_blocks():
    cfg = parse_cfg(
        "\ufeff# head\n[image_list] a.txt  # one\n\n  [image_type]\t1\r\n# [image_type] 5\n[image_list] b c.txt\n"
    )
    assert [(s.key, s.value, s.line) for s in cfg.settings] == [
        ("image_list", "a.txt", 2),
        ("image_type", "1", 4),
        ("image_list", "b c.txt", 6),
    ]
    assert cfg.value("image_list", "") == "b c.txt"
    assert cfg.value("net_type", "0") == "0"


def test_what_is_no_cfg(tmp_path: Path):
    with pytest.raises(UnreadableFile, match="line 1"):
        parse_cfg("net_type 0\n")
    with pytest.raises(UnreadableFile):
        read_cfg(tmp_path / "nothing.cfg")


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/nnie_prototxt beside the repository")
@pytest.mark.parametrize("path", sorted((SHARED / "compiled").glob("*.cfg")), ids=lambda p: p.stem)
def test_cfgs_that_the_mapper_took_are_not_refused(path: Path, tmp_path: Path):
    findings = examine(sites(PICTURE, tmp_path), RULES, cfg=read_cfg(path))
    assert not [f for f in findings if f.severity == "refused"]


def test_a_good_cfg(tmp_path: Path):
    assert found(PICTURE, text(), tmp_path) == []


@pytest.mark.parametrize(("rule", "prototxt", "cfg"), BROKEN)
def test_a_cfg_that_breaks_the_rule(rule: str, prototxt: str, cfg: str, tmp_path: Path):
    assert rule in {f.rule for f in found(prototxt, cfg, tmp_path)}


@pytest.mark.parametrize(("rule", "prototxt", "cfg"), CLEAN)
def test_a_cfg_that_does_not(rule: str, prototxt: str, cfg: str, tmp_path: Path):
    assert rule not in {f.rule for f in found(prototxt, cfg, tmp_path)}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"norm_type": "0"}, "[norm_type] 0 subtracts nothing; the head before 'centred' subtracts 100, 110, 120"),
        ({"norm_type": "2", "mean_file": "turned.txt"}, "[mean_file] is 120, 110, 100; the head before 'centred'"),
        (
            {"norm_type": "5", "mean_file": "means.txt", "data_scale": "0.5"},
            "[mean_file] times [data_scale] is 50, 55, 60; the head before 'centred' subtracts 100, 110, 120",
        ),
    ],
)
def test_what_the_cfg_does_and_the_head_did(settings, told, tmp_path: Path):
    (finding,) = (f for f in found(CENTRED, text(**settings), tmp_path) if f.rule == "W29")
    assert told in finding.text


def test_the_map_beside_the_net_tells(tmp_path: Path):
    g = Graph()
    g.node("Sub", ["x", g.constant("m", np.float32([1, 2, 3]).reshape(3, 1, 1))], "centred")
    g.conv("centred", "c", 3, 4)
    done = api.convert(save(g.model({"x": [1, 3, 8, 8]}, ["c"]), tmp_path), tmp_path / "out", proof=False)
    cfg = tmp_path / "out" / "m.cfg"
    cfg.write_text(text(norm_type="0"))
    assert "W29" in {finding.rule for finding in api.check(done.prototxt, cfg=cfg).findings}


def test_a_finding_in_the_cfg_has_its_line(tmp_path: Path):
    (finding,) = found(PICTURE, text(net_type="7"), tmp_path)
    assert (finding.rule, finding.file, finding.line) == ("E11", str(tmp_path / "cfg"), 8)


def test_files_count_from_the_cfg_or_from_here(tmp_path: Path, monkeypatch):
    """A net elsewhere, and a cfg that the mapper reads in another folder than its own."""
    (tmp_path / "cfgs").mkdir()
    for name in ("net.caffemodel", "pictures.txt"):
        (tmp_path / name).touch()
    seen = sites(PICTURE, tmp_path)
    cfg = parse_cfg(text(), tmp_path / "cfgs" / "a.cfg", tmp_path / "net.prototxt")
    assert {f.rule for f in examine(seen, RULES, cfg=cfg)} >= {"W27"}
    monkeypatch.chdir(tmp_path)
    assert not {"W27", "W28"} & {f.rule for f in examine(seen, RULES, cfg=cfg)}
    above = {key: f"../{GOOD[key]}" for key in ("prototxt_file", "caffemodel_file", "image_list")}
    monkeypatch.chdir("/")
    cfg = parse_cfg(text(**above), tmp_path / "cfgs" / "a.cfg", tmp_path / "net.prototxt")
    assert not {"W27", "W28"} & {f.rule for f in examine(seen, RULES, cfg=cfg)}
