"""`onnx2caffe convert`: files, exit codes, messages; whole or nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx2caffe import assembly, driver, export
from onnx2caffe.caffe.net import Net
from onnx2caffe.targets import base
from onnx2caffe.verify.measure import Verdict
from tests.verify.models import Builder, save

FAST = ("--no-caffe-run",)
UNPROVED = ("--no-proof",)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def refused(tmp_path: Path) -> Path:
    """A model with two nodes that no Caffe can have."""
    b = Builder(0)
    b.conv("x", "c", 3, 4)
    b.node("NonZero", ["c"], "first")
    b.node("NonZero", ["x"], "second")
    model = b.model([1, 3, 8, 8], ["first", "second"])
    for output in model.graph.output:
        output.type.tensor_type.elem_type = TensorProto.INT64
    path = tmp_path / "refused.onnx"
    onnx.save(model, path)
    return path


def test_writes_three_files_into_a_folder_named_after_the_model(cli, model, tmp_path):
    ran = cli("convert", model, *FAST)
    assert (ran.code, ran.err) == (0, "")
    assert names(tmp_path / "classifier") == ["classifier.caffemodel", "classifier.map.json", "classifier.prototxt"]
    assert ran.out.splitlines()[-1].startswith("proved: ")
    assert "builtin" in ran.out.splitlines()[-1]


def test_name_and_folder(cli, model, tmp_path):
    assert cli("convert", model, "-o", "deep/er", "--name", "net", *UNPROVED).code == 0
    assert names(tmp_path / "deep" / "er") == ["net.caffemodel", "net.map.json", "net.prototxt"]


def test_map_holds_what_the_format_says(cli, model, tmp_path):
    cli("convert", model, "--name", "net", "--target", "caffe", *UNPROVED)
    document = json.loads((tmp_path / "classifier" / "net.map.json").read_text())
    assert document["format"] == 1
    assert document["target"] == "caffe"
    assert document["source"]["file"] == "classifier.onnx"
    assert set(document["files"]) == {"net.prototxt", "net.caffemodel"}
    assert document["inputs"] == [{"name": "x", "shape": [1, 3, 32, 32], "dtype": "float32"}]
    assert document["outputs"] == [{"name": "prob", "shape": [1, 10], "dtype": "float32"}]
    (segment,) = document["segments"]
    assert segment["kind"] == "caffe"
    assert segment["inputs"]["x"]["shape"] == [1, 3, 32, 32]
    assert segment["outputs"]["prob"]["shape"] == [1, 10]
    assert {"c1", "r1", "p1", "prob"} <= set(document["tensors"])
    assert document["tensors"]["f"]["shape"] == [1, 12]
    assert "n_c1" in {node for nodes in document["layers"].values() for node in nodes}


@pytest.mark.parametrize("target", ["nnie", "caffe", "bvlc"])
@pytest.mark.parametrize("constant", [False, True])
def test_an_output_that_is_an_input_or_a_constant_is_compared_too(cli, model, target, constant):
    name = onnx.load(model).graph.initializer[0].name if constant else "x"
    ran = cli("convert", model, "--target", target, "--output", name, "--output", "prob", *FAST)
    assert ran.code == 0
    assert "warning" not in ran.err
    assert [line.split()[-1] for line in ran.out.splitlines() if line.split()[0] in (name, "prob")] == ["equal"] * 2


def test_prototxt_says_where_it_comes_from(cli, model, tmp_path):
    cli("convert", model, "--target", "bvlc", *UNPROVED)
    head = (tmp_path / "classifier" / "classifier.prototxt").read_text().splitlines()[:2]
    assert head[0].startswith("# onnx2caffe ")
    assert "bvlc" in head[0]
    assert "classifier.onnx" in head[1]


def test_same_input_same_bytes(cli, model, tmp_path):
    for folder in ("one", "two"):
        assert cli("convert", model, "-o", folder, *UNPROVED).code == 0
    for name in names(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_several_models(cli, tmp_path):
    models = [save(name, tmp_path) for name in ("classifier", "decoder")]
    assert cli("convert", *models, "-o", "both", *UNPROVED).code == 0
    assert len(names(tmp_path / "both")) == 6


def test_one_bad_model_of_several(cli, model, tmp_path):
    ran = cli("convert", tmp_path / "missing.onnx", model, *UNPROVED)
    assert ran.code == 2
    assert "missing.onnx" in ran.err
    assert len(names(tmp_path / "classifier")) == 3


def test_json_is_pure(cli, model):
    document = json.loads(cli("convert", model, "--json", *FAST).out)
    assert document["proof"]["ok"]
    assert document["proof"]["rows"][0]["verdict"] == "equal"


def test_json_of_an_error(cli, tmp_path):
    ran = cli("convert", refused(tmp_path), "--json", "--target", "caffe")
    assert json.loads(ran.out)["exit_code"] == ran.code == 3


def test_output_ends_the_net_at_inner_tensors(cli, model, tmp_path):
    assert cli("convert", model, "--output", "r2", "--output", "p1", *FAST).code == 0
    document = json.loads((tmp_path / "classifier" / "classifier.map.json").read_text())
    assert [o["name"] for o in document["outputs"]] == ["r2", "p1"]
    assert "prob" not in document["tensors"]


def test_intermediates_are_saved(cli, model, tmp_path):
    assert cli("convert", model, "--save-intermediate", "steps", *UNPROVED).code == 0
    steps = [name for name in names(tmp_path / "steps") if name.endswith(".onnx")]
    assert (steps[0], steps[-1]) == ("00-load.onnx", f"{len(steps) - 1:02d}-final.onnx")


def test_verbose_shows_every_tensor(cli, model):
    assert cli("convert", model, *FAST).out.count("equal") < cli("convert", model, "-v", *FAST).out.count("equal")


def test_what_the_nnie_cannot_have_goes_to_the_cpu(cli, tmp_path):
    ran = cli("convert", refused(tmp_path), "-o", "out", *FAST)
    assert ran.code == 0
    assert "CPU: 2 nodes (NonZero: not legal)" in ran.out
    assert [line.split()[-1] for line in ran.out.splitlines() if line.startswith(("first ", "second "))] == [
        "equal"
    ] * 2
    assert "refused.tail.onnx" in names(tmp_path / "out")


def test_refusal_names_every_node_and_leaves_nothing(cli, tmp_path):
    ran = cli("convert", refused(tmp_path), "-o", "out", "--target", "caffe")
    assert ran.code == 3
    assert ran.err.startswith("error: ")
    assert "n_first" in ran.err
    assert "n_second" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["convert"], 2, "MODEL"),
        (["convert", "missing.onnx"], 2, "missing.onnx"),
        (["convert", "MODEL", "--target", "tpu"], 2, "tpu"),
        (["convert", "MODEL", "--input-shape", "x=1,3"], 2, "last colon"),
        (["convert", "MODEL", "--input-shape", "y:1,3,32,32"], 2, "y"),
        (["convert", "MODEL", "--name", "a/b"], 2, "a/b"),
        (["convert", "MODEL", "--recipe", "crop=sideways"], 2, "sideways"),
        (["convert", "MODEL", "--recipe", "nonsense=x"], 2, "nonsense"),
        (["convert", "MODEL", "--input", "z=1"], 2, "z=1"),
        (["convert", "MODEL", "--output", "nothing"], 2, "nothing"),
        (["convert", "MODEL", "--caffe-python", "/nowhere/python"], 4, "/nowhere/python"),
        (["convert", "MODEL", "MODEL", "--name", "n"], 2, "--name"),
        (["compare", "MODEL"], 2, "NET.prototxt"),
        (["nonsense"], 2, "nonsense"),
        ([], 2, "COMMAND"),
    ],
)
def test_wrong_calls_say_what_and_leave_nothing(cli, model, tmp_path, words, code, text):
    ran = cli(*[model if word == "MODEL" else word for word in words])
    assert ran.code == code
    assert ran.err.startswith("error: ")
    assert text in ran.err
    assert "Traceback" not in ran.err
    assert names(tmp_path) == ["classifier.onnx"]


def test_text_is_no_model(cli, tmp_path):
    (tmp_path / "text.onnx").write_text("this is not a model")
    assert cli("convert", "text.onnx").code == 2
    assert names(tmp_path) == ["text.onnx"]


def test_free_dimension_says_what_to_pass(cli, tmp_path):
    b = Builder(0)
    b.conv("x", "c", 3, 4)
    model = b.model(["n", 3, "h", 32], ["c"])
    onnx.save(model, tmp_path / "free.onnx")
    ran = cli("convert", "free.onnx")
    assert ran.code == 3
    assert "--input-shape" in ran.err
    assert cli("convert", "free.onnx", "--input-shape", "x:1,3,24,32", *FAST).code == 0


def test_unexpected_error_is_called_ours(cli, model, monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "partitioned", lambda *_: 1 / 0)
    ran = cli("convert", model)
    assert ran.code == 1
    assert ran.err.startswith("error: internal error: ZeroDivisionError")
    assert "a fault of onnx2caffe, not of the model; --debug shows where" in ran.err
    assert "Traceback" not in ran.err
    assert names(tmp_path) == ["classifier.onnx"]
    assert "Traceback" in cli("convert", model, "--debug").err


def test_interrupt(cli, model, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(assembly, "write_caffemodel", interrupt)
    assert cli("convert", model).code == 130
    assert names(tmp_path) == ["classifier.onnx"]


def test_names_from_a_model_cannot_move_the_cursor(cli, tmp_path):
    b = Builder(0)
    b.node("NonZero", ["x"], "evil\x1b[2J\r[bold]")
    model = b.model([1, 3, 8, 8], ["evil\x1b[2J\r[bold]"])
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    onnx.save(model, tmp_path / "evil.onnx")
    ran = cli("convert", "evil.onnx")
    assert ran.code == 3
    assert "\x1b" not in ran.err
    assert "\r" not in ran.err
    assert "[bold]" in ran.err


class TestFolder:
    """Other people's files, failed runs, killed runs, runs at the same time."""

    def test_foreign_files_are_refused_without_force(self, cli, model, tmp_path):
        out = tmp_path / "out"
        out.mkdir()
        (out / "thesis.tex").write_text("mine")
        ran = cli("convert", model, "-o", out, *UNPROVED)
        assert ran.code == 2
        assert "thesis.tex" in ran.err
        assert names(out) == ["thesis.tex"]
        assert cli("convert", model, "-o", out, "--force", *UNPROVED).code == 0
        assert (out / "thesis.tex").read_text() == "mine"

    def test_own_exports_may_be_replaced_and_joined(self, cli, model, tmp_path):
        for name in ("one", "one", "two"):
            assert cli("convert", model, "-o", "out", "--name", name, *UNPROVED).code == 0
        assert len(names(tmp_path / "out")) == 6

    def test_a_file_is_no_folder(self, cli, model, tmp_path):
        assert cli("convert", model, "-o", model, *UNPROVED).code == 2

    @pytest.mark.parametrize("existing", [True, False])
    def test_failed_proof_changes_nothing(self, cli, model, tmp_path, monkeypatch, existing):
        if existing:
            assert cli("convert", model, "-o", "out", *UNPROVED).code == 0
        before = {name: (tmp_path / "out" / name).read_bytes() for name in names(tmp_path / "out")}
        honest = base.finish

        def broken(net: Net, target):
            net = honest(net, target)
            for place, placed in enumerate(net.layers):
                if placed.name == "c2" or "c2" in placed.tops:
                    weights = tuple(np.array(blob) * np.float32(1.02) for blob in placed.layer.blobs)
                    net.layers[place] = _replace(placed, layer=_replace(placed.layer, blobs=weights))
            return net

        monkeypatch.setattr(base, "finish", broken)
        ran = cli("convert", model, "-o", "out", *FAST)
        assert ran.code == 1
        assert "'c2'" in ran.err
        assert "lowering of" in ran.err
        assert {name: (tmp_path / "out" / name).read_bytes() for name in names(tmp_path / "out")} == before

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_unwritable_folder(self, cli, model, tmp_path):
        (tmp_path / "out").mkdir(mode=0o500)
        assert cli("convert", model, "-o", "out").code == 2

    def test_full_disk(self, cli, model, tmp_path, monkeypatch):
        assert cli("convert", model, "-o", "out", *UNPROVED).code == 0
        before = names(tmp_path / "out")

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(assembly, "write_caffemodel", full)
        ran = cli("convert", model, "-o", "out", *UNPROVED)
        assert ran.code == 2
        assert "No space left" in ran.err
        assert names(tmp_path / "out") == before

    def test_left_overs_of_a_killed_run_are_removed(self, cli, model, tmp_path):
        left = tmp_path / "out" / ".onnx2caffe-123-abc.tmp"
        left.mkdir(parents=True)
        (left / "net.caffemodel").write_bytes(b"half")
        assert cli("convert", model, "-o", "out", *UNPROVED).code == 0
        assert not left.exists()

    def test_folder_in_use_by_another_run_is_left_alone(self, cli, model, tmp_path):
        with export.Staging(tmp_path / "out") as other:
            assert cli("convert", model, "-o", "out", *UNPROVED).code == 0
            assert other.path.exists()
        assert len(names(tmp_path / "out")) == 3

    def test_commit_killed_half_way_is_no_export_and_no_obstacle(self, cli, model, tmp_path):
        assert cli("convert", model, "-o", "out", *UNPROVED).code == 0
        (tmp_path / "out" / "classifier.map.json").unlink()
        assert cli("convert", model, "-o", "out", *UNPROVED).code == 0
        assert len(names(tmp_path / "out")) == 3

    def test_kill_nine(self, model, tmp_path):
        """At whatever moment it comes: no export, or a whole one."""
        for delay in (0.3, 0.6, 0.9, 1.2):
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            process = subprocess.Popen(
                [sys.executable, "-m", "onnx2caffe", "convert", str(model), "-o", str(tmp_path / "out"), *UNPROVED],
                stdout=subprocess.DEVNULL,
            )
            time.sleep(delay)
            process.kill()
            process.wait()
            found = [name for name in names(tmp_path / "out") if not name.startswith(".onnx2caffe-")]
            assert "classifier.map.json" not in found or len(found) == 3

    def test_two_at_once(self, model, tmp_path):
        command = [sys.executable, "-m", "onnx2caffe", "convert", str(model), "-o", str(tmp_path / "out"), *UNPROVED]
        running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [process.wait() for process in running] == [0, 0]
        assert len(names(tmp_path / "out")) == 3


def _replace(thing, **changes):
    from dataclasses import replace

    return replace(thing, **changes)


def test_unjudged_output_asks_for_an_input(cli, tmp_path):
    """A chaotic model turns rounding into another answer: said, no failure; an input that it is calm on judges it."""
    b = Builder(0)
    b.node("Sigmoid", ["x"], "s0")
    one = b.const("one", np.ones((1, 3, 8, 8), np.float32))
    four = b.const("four", np.full((1, 3, 8, 8), 4, np.float32))
    for step in range(30):
        b.node("Sub", [one, f"s{step}"], f"rest{step}")
        b.node("Mul", [f"s{step}", f"rest{step}"], f"m{step}")
        b.node("Mul", [f"m{step}", four], f"s{step + 1}")
    onnx.save(b.model([1, 3, 8, 8], ["s30"]), tmp_path / "wild.onnx")
    ran = cli("convert", "wild.onnx", *FAST)
    assert ran.code == 0
    assert "--input NAME=FILE" in ran.err
    assert "nearest" in ran.err
    assert cli("convert", "wild.onnx", "--input", "x=0", *FAST).err == ""


def test_half_models_are_proved(cli, tmp_path):
    w = helper.make_tensor("w", TensorProto.FLOAT16, [4, 3, 3, 3], np.random.default_rng(0).normal(size=108))
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", kernel_shape=[3, 3], pads=[1] * 4)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT16, [1, c, 8, 8]) for n, c in (("x", 3), ("y", 4)))
    graph = helper.make_graph([node], "half", [x], [y], [w])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "half.onnx"
    )
    ran = cli("convert", "half.onnx", "--json", *FAST)
    document = json.loads(ran.out)
    assert document["outputs"][0]["dtype"] == "float16"
    assert {row["verdict"] for row in document["proof"]["rows"]} == {str(Verdict.EQUAL)}


def test_pycaffe_proves_too(cli, model, pycaffe):
    ran = cli("convert", model, "--caffe-python", pycaffe.python)
    assert ran.code == 0
    assert "pycaffe" in ran.out.splitlines()[-1]


def quantised(tmp_path: Path) -> Path:
    b = Builder(0)
    scale, zero = b.const("scale", np.float32(0.05)), b.const("zero", np.uint8(0))
    b.conv("x", "c", 3, 4)
    b.node("QuantizeLinear", ["c", scale, zero], "q")
    b.node("DequantizeLinear", ["q", scale, zero], "d")
    b.conv("d", "y", 4, 2)
    path = tmp_path / "quantised.onnx"
    onnx.save(b.model([1, 3, 8, 8], ["y"]), path)
    return path


def test_strip_qdq_says_what_it_changes_and_keeps_the_ranges(cli, tmp_path):
    ran = cli("convert", quantised(tmp_path), "--strip-qdq", *FAST)
    assert ran.code == 0
    assert "1 quantised tensor kept as real numbers" in ran.err
    assert "'y' differs by up to" in ran.err
    assert "equal to the model without its quantisation in builtin" in ran.out.splitlines()[-1]
    document = json.loads((tmp_path / "quantised" / "quantised.map.json").read_text())
    assert document["ranges"] == {name: [0.0, pytest.approx(12.75)] for name in ("c", "d")}
    assert document["notes"][0]["level"] == "warning"
    assert names(tmp_path / "quantised") == ["quantised.caffemodel", "quantised.map.json", "quantised.prototxt"]


def test_strip_qdq_without_proof_measures_nothing(cli, tmp_path):
    ran = cli("convert", quantised(tmp_path), "--strip-qdq", *UNPROVED)
    assert ran.code == 0
    assert "differs" not in ran.err


def test_strip_qdq_leaves_other_models_alone(cli, model):
    ran = cli("convert", model, "--strip-qdq", *FAST)
    assert (ran.code, ran.err) == (0, "")
    assert "without" not in ran.out


def test_keep_bn_gives_batch_norm_layers(cli, tmp_path):
    model = save("arithmetic", tmp_path)
    for words, expected in ((("--keep-bn",), 1), ((), 0)):
        assert cli("convert", model, "-o", f"out{expected}", *words, *FAST).code == 0
        text = (tmp_path / f"out{expected}" / "arithmetic.prototxt").read_text()
        assert text.count('type: "BatchNorm"') == expected


def test_a_recipe_that_nothing_takes_is_said(cli, model, tmp_path):
    done = cli("convert", model, "-o", tmp_path / "out", "--recipe", "transpose=im2col", "--no-proof")
    assert "--recipe transpose=im2col has no effect" in done.err
