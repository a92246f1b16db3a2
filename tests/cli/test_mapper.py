"""`onnx2caffe convert --target nnie`: every option of the partition and the marks reaches what it is for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onnx2caffe.canon import Note
from onnx2caffe.cli.shown import say_note
from tests.hostile.conftest import whole_or_nothing
from tests.nnie.models import classifier, detector, save, warped

CUTS = ["score0", "score1", "box0", "box1"]
MODELS = {"classifier": classifier, "detector": detector, "warped": warped}


@pytest.fixture
def convert(cli):
    """Converts a small model into the folder `out`."""

    def run(model: str, *words: object, target: str = "nnie"):
        path = save(MODELS[model](), Path(), model)
        return cli("convert", path, "--target", target, "-o", "out", "--no-proof", "--force", *words)

    return run


def segments() -> list[dict]:
    (path,) = Path("out").glob("*.map.json")
    return json.loads(path.read_text())["segments"]


def net_outputs() -> list[str]:
    return [name for segment in segments() if segment["kind"] == "caffe" for name in segment["outputs"]]


@pytest.mark.parametrize(
    ("words", "outputs"),
    [
        ([], ["box0", "box1", "scores"]),
        (["--tail", "auto"], ["box0", "box1", "scores"]),
        (["--tail", "none"], ["box0", "box1", "cls0", "cls1"]),
        (["--tail", "full"], ["all"]),
        ([word for name in CUTS for word in ("--cut", name)], sorted(CUTS)),
        (["--cut", "cls0"], ["box0", "box1", "cls0", "score1.flat"]),
        (["--cut", "decoded0"], ["box1", "decoded0", "scores"]),
        (["--cut", "decoded0", "--tail", "none"], ["box1", "cls0", "cls1", "decoded0"]),
        (["--no-partition"], ["all"]),
    ],
)
def test_where_the_net_ends(convert, words: list[str], outputs: list[str]):
    assert convert("detector", *words).code == 0
    assert sorted(net_outputs()) == outputs


def test_what_runs_where_is_said(convert):
    ran = convert("detector")
    assert "NNIE: 100.0 % of MACs, " in ran.out
    assert "1 segment · CPU: 8 nodes (Add, Mul, Reshape …: decode)" in ran.out


def test_one_net_says_what_it_has_in_eight_bits(convert):
    ran = convert("detector", "--no-partition")
    assert "NNIE: 100.0 % of MACs, " in ran.out
    assert "1 segment\n" in ran.out
    warning = next(line for line in ran.err.splitlines() if "in 8 bits" in line)
    assert "better on the CPU" in warning
    assert "8 nodes (Add, Mul, Reshape …: decode)" in warning
    assert all(name in warning for name in ("n_moved0", "n_decoded1", "n_all"))
    assert "in 8 bits" not in convert("detector", "--no-partition", "--tail", "full").err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--require-segments", "1"], 1, "becomes 2 segments; 1 are required"),
        (["--require-segments", "2"], 0, ""),
        (["--min-nnie-macs", "0.99", "--cut", "r1"], 1, "99.00% are required"),
        (["--min-nnie-macs", "0.99"], 0, ""),
        (["--no-partition"], 3, "GridSample 'n_warped'"),
        (["--cut", "r3"], 2, "near: "),
        (["--output", "r3"], 2, "near: "),
        (["--output", "far from all"], 2, "near: "),
        (["--report", "far from all"], 2, "near: "),
        (["--rename", "s=one", "--rename", "s=two"], 2, "--rename: 's' is given twice"),
        (["--recipe", "crop=dw", "--recipe", "crop=slice"], 2, "--recipe: 'crop' is given twice"),
        (["--input-shape", "x:1,3,12,16", "--input-shape", "x:1,3,8,8"], 2, "--input-shape: 'x' is given twice"),
        (["--rename", "r9=x"], 2, "no output of a net has that name"),
        (["--rename", "s=a b"], 2, "--rename s=a b: the blob would be called 'a_b'"),
        (["--rename", f"s={'z' * 32}"], 2, f"the blob would be called '{'z' * 31}'"),
        (["--hp", "nobody"], 2, "no tensor, node or layer"),
        (["--cpu", "c1"], 2, "E08"),
        (["--tail", "some"], 2, "invalid choice"),
        (["--require-segments", "0"], 2, "positive"),
        (["--min-nnie-macs", "2"], 2, "share"),
        (["--min-nnie-macs", "nan"], 2, "share"),
        (["--no-partition", "--tail", "none"], 2, "--tail none leaves nodes to ONNX"),
        (["--no-partition", "--tail", "auto"], 2, "--tail auto leaves nodes to ONNX"),
        (["--no-partition", "--cut", "r1"], 2, "--cut r1 leaves nodes to ONNX"),
    ],
)
def test_requirements_and_wrong_names(convert, words: list[str], code: int, text: str):
    ran = convert("warped", *words)
    assert ran.code == code
    assert text in ran.err
    assert Path("out").exists() == (code == 0)


@pytest.mark.parametrize("words", [["--tail", "none"], ["--cut", "r1"]])
def test_a_cut_that_nothing_would_make_is_refused(convert, words: list[str]):
    ran = convert("classifier", *words, target="caffe")
    assert (ran.code, "target caffe without --partition" in ran.err) == (2, True)


@pytest.mark.parametrize("target", ["caffe", "bvlc"])
def test_other_targets_partition_when_asked(convert, target: str):
    assert convert("warped", target=target).code == 3
    assert convert("warped", "--partition", target=target).code == 0
    assert [segment["kind"] for segment in segments()] == ["caffe", "onnx", "caffe"]


@pytest.mark.parametrize(
    "words", [["--hp", "c1"], ["--report", "r1"], ["--cpu", "c2"], ["--single-wk"], ["--rules", "x"]]
)
def test_marks_are_for_the_mapper(convert, words: list[str]):
    ran = convert("classifier", *words, target="caffe")
    assert (ran.code, "for the mapper" in ran.err) == (2, True)


def test_marks(convert):
    assert convert("classifier", "--tail", "full", "--hp", "c1", "--report", "r1", "--cpu", "n_pool").code == 0
    text = Path("out/classifier.marked.prototxt").read_text()
    assert all(f'"{name}"' in text for name in ("n_c1_hp", "r1_report", "n_pool_cpu"))


def test_what_is_unproven_names_its_nodes(convert):
    ran = convert("detector", "--tail", "full")
    (path,) = Path("out").glob("*.map.json")
    notes = [note for note in json.loads(path.read_text())["notes"] if note["text"].startswith("unproven on NNIE")]
    assert notes
    assert all(note["nodes"] for note in notes)
    (joins,) = (note for note in notes if "Concat on axis 2" in note["text"])
    assert set(joins["nodes"]) == {"n_boxes", "n_scores"}
    assert f"{joins['text']} ({', '.join(joins['nodes'])})" in ran.err


def test_a_note_about_many_nodes_shows_the_first(capsys):
    say_note(Note("note", "odd", tuple("abcd")))
    say_note(Note("note", "odd", tuple("abc")))
    say_note(Note("warning", "odd", tuple("abcd")))
    lines = ["note: odd (a, b, c … 4 in all)", "note: odd (a, b, c)", "warning: odd (a, b, c, d)"]
    assert capsys.readouterr().err.splitlines() == lines


def test_one_wk_and_a_name(convert):
    ran = convert("warped", "--single-wk", "--rename", "s=score")
    assert ran.code == 0
    assert "wrote out/warped.wk.prototxt" in ran.out
    assert segments()[-1]["outputs"]["s"]["blob"] == "score"


def test_a_choice_that_sends_nodes_to_the_cpu_has_an_effect(convert):
    ran = convert("detector", "--recipe", "reshape=static", "--recipe", "gather=take", "--tail", "full")
    assert ran.code == 0
    assert "stays ONNX: --recipe reshape=static: " in ran.err
    assert "reshape=static has no effect" not in ran.err
    assert "--recipe gather=take has no effect" in ran.err


def test_rules_of_the_user(convert):
    Path("my.toml").write_text(
        "[X1]\nseverity = 'refused'\nwhen = { types = ['Softmax'], field = 'axis', one_of = [7] }\n"
    )
    assert convert("classifier", "--tail", "full", "--rules", "my.toml").code == 0
    assert "Softmax" not in Path("out/classifier.prototxt").read_text()


def test_files_of_an_export_of_another_name_stay(convert):
    """A model in two nets has a `….seg1`; an export of that name must not take its files."""
    assert convert("warped", "--no-proof").code == 0
    assert Path("out/warped.seg1.prototxt").exists()
    ran = convert("classifier", "--no-proof", "--name", "warped.seg1")
    assert ran.code == 2
    assert "warped.seg1.caffemodel belongs to the export of warped.map.json" in ran.err
    assert whole_or_nothing(Path("out"))
