"""The other commands, start-up, and the Python API."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx2caffe
from onnx2caffe.caffe.read import read_net
from onnx2caffe.caffe.write import write_caffemodel
from onnx2caffe.cli.output import printable
from tests.verify.faults import FAULTS, plant
from tests.verify.models import Builder, save

ROOT = Path(__file__).parents[2]


@pytest.fixture
def export(tmp_path):
    """(model, prototxt, caffemodel) of a net without its map, as another tool would leave it."""
    model = save("classifier", tmp_path)
    onnx2caffe.convert(model, tmp_path / "net", name="net", target="caffe", proof=False)
    (tmp_path / "net" / "net.map.json").unlink()
    return model, tmp_path / "net" / "net.prototxt", tmp_path / "net" / "net.caffemodel"


def rewrite(prototxt: Path, **names: str) -> None:
    """Rename blobs and layers in a prototxt."""
    text = prototxt.read_text()
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    prototxt.write_text(text)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["compare", "net", "PROTOTXT", "CAFFEMODEL"], "is a folder, not an ONNX file"),
        (["compare", "MODEL", "net", "CAFFEMODEL"], "is a folder, not a prototxt\n\nhint: it holds net.prototxt"),
        (["compare", "MODEL", "PROTOTXT", "net"], "is a folder, not a caffemodel\n\nhint: it holds net.caffemodel"),
        (["compare", "PROTOTXT", "MODEL", "CAFFEMODEL"], "is a prototxt, not an ONNX file"),
        (["compare", "MODEL", "CAFFEMODEL", "PROTOTXT"], "is a caffemodel, not a prototxt"),
        (["check", "net"], "is a folder, not a prototxt\n\nhint: it holds net.prototxt"),
        (["check", "CAFFEMODEL"], "is a caffemodel, not a prototxt"),
        (["check", "PROTOTXT", "--cfg", "net"], "net is a folder, not "),
        *(([command, "net"], "is a folder, not an ONNX file") for command in ("convert", "inspect", "tvm")),
        *(([command, "."], ". is a folder, not an ONNX file") for command in ("convert", "inspect", "tvm")),
        *(([command, "PROTOTXT"], "is a prototxt, not an ONNX file") for command in ("convert", "inspect", "tvm")),
    ],
)
def test_a_path_of_another_kind(cli, export, words, says):
    files = dict(zip(("MODEL", "PROTOTXT", "CAFFEMODEL"), export, strict=True))
    ran = cli(*(files.get(word, word) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert "hint: " in ran.err or "--cfg" in words


@pytest.mark.parametrize("option", [["--mean", "127.5"], ["--std", "2"], ["--scale", "0.5"], ["--rgb"]])
@pytest.mark.parametrize("command", ["convert", "compare", "tvm"])
def test_words_about_pictures_without_a_picture(cli, export, command, option):
    files = export if command == "compare" else export[:1]
    for inputs in ([], ["--input", "x=0.5"], ["--input", "x=x.npy"]):
        ran = cli(command, *files, *option, *inputs)
        assert ran.code == 2
        assert "no --input is one" in ran.err
        assert "--input NAME=PICTURE" in ran.err
    assert "cannot read x.png" in cli(command, *files, *option, "--input", "x=x.png").err


def test_inputs_of_a_proof_that_is_not_made(cli, model):
    ran = cli("convert", model, "--no-proof", "--input", "x=0.5")
    assert (ran.code, ran.err) == (0, "note: --input has no effect: --no-proof runs nothing\n")


def test_inputs_of_a_comparison_that_is_not_made(cli, model, running):
    running("relay")
    ran = cli("tvm", model, "--no-compare", "--no-compile", "--input", "x=0.5")
    assert (ran.code, ran.err) == (0, "note: --input has no effect: --no-compare runs nothing\n")


def test_a_model_of_any_name(cli, model, tmp_path):
    """Its name says nothing about its format, whatever the onnx package thinks."""
    odd = model.rename(tmp_path / "model.json")
    for words in (["convert", odd, "-o", "out", "--no-caffe-run"], ["inspect", odd]):
        assert cli(*words).code == 0
    assert cli("compare", odd, "out/model.prototxt", "out/model.caffemodel", "--no-caffe-run").code == 0


class TestCompare:
    def test_equal(self, cli, export):
        ran = cli("compare", *export, "--no-caffe-run")
        assert ran.code == 0
        assert ran.out.splitlines()[0].split()[:3] == ["ONNX", "tensor", "layer"]
        assert ran.out.splitlines()[-1].startswith("proved: ")

    def test_json(self, cli, export):
        report = json.loads(cli("compare", *export, "--json", "--runs", 2, "--no-caffe-run").out)
        assert report["ok"]
        assert report["runs"] == 2
        assert not {"c1", "r1", "p1", "prob"} & set(report["unmapped"])

    def test_stops_at_the_first_difference_unless_all_is_asked_for(self, cli, export):
        net = read_net(*export[1:])
        plant(net, next(f for f in FAULTS if f.model == "classifier" and f.layer == "c2"))
        export[2].unlink()
        write_caffemodel(net, export[2])
        ran = cli("compare", *export, "--no-caffe-run")
        assert ran.code == 1
        assert "first that differs: 'c2', layer 'n_c2'" in ran.out
        assert "prob" not in ran.out
        assert "prob" in cli("compare", *export, "--no-caffe-run", "--all").out

    def test_tensors_are_found_by_the_names_of_nodes(self, cli, export):
        rewrite(export[1], c1="somewhere", prob="out")
        report = json.loads(cli("compare", *export, "--json", "--no-caffe-run").out)
        assert report["ok"]
        assert {row["tensor"]: row["blob"] for row in report["rows"]}["c1"] == "somewhere"

    def test_renamed_everything_needs_a_word(self, cli, export):
        prototxt = export[1]
        rewrite(prototxt, r1="blob9", n_r1="relu9")
        report = json.loads(cli("compare", *export, "--json", "--no-caffe-run").out)
        assert "r1" in report["unmapped"]
        report = json.loads(cli("compare", *export, "--json", "--no-caffe-run", "--map", "blob9=r1").out)
        assert "r1" not in report["unmapped"]
        assert report["ok"]

    def test_wrong_map(self, cli, export):
        assert cli("compare", *export, "--map", "nothing=r1").code == 2
        assert cli("compare", *export, "--map", "r1=nothing").code == 2
        assert "near: " in cli("compare", *export, "--map", "nothing=r1").err
        assert "'blob8' is given twice" in cli("compare", *export, "--map", "blob8=r1", "--map", "blob8=c1").err
        assert "'r1' is blob 'c1' already" in cli("compare", *export, "--map", "c1=r1", "--map", "r1=r1").err
        report = json.loads(cli("compare", *export, "--json", "--no-caffe-run", "--map", "c1=r1").out)
        assert report["first_difference"] == "r1"

    def test_missing_weights_are_named(self, cli, export):
        _, prototxt, caffemodel = export
        net = read_net(prototxt, caffemodel)
        net.layers = [placed for placed in net.layers if placed.name != "n_c2"]
        caffemodel.unlink()
        write_caffemodel(net, caffemodel)
        ran = cli("compare", *export)
        assert ran.code == 2
        assert "n_c2" in ran.err

    def test_layers_in_place(self, cli, export):
        """As most tools write them: the ReLU overwrites its bottom."""
        prototxt = export[1]
        text = prototxt.read_text()
        prototxt.write_text(text.replace('top: "r1"', 'top: "c1"').replace('bottom: "r1"', 'bottom: "c1"'))
        ran = cli("compare", *export, "--json", "--no-caffe-run")
        report = json.loads(ran.out)
        assert report["ok"]
        assert {"c1", "r1"} <= {row["tensor"] for row in report["rows"]}

    def test_layers_in_place_whose_blob_is_named_after_the_last(self, cli, tmp_path):
        """As the nets for the mapper are: the blob bears the name of what stands there in the end."""
        model = save("classifier", tmp_path)
        done = onnx2caffe.convert(model, tmp_path / "net", target="nnie", proof=False)
        done.map_file.unlink()
        report = json.loads(cli("compare", model, done.prototxt, done.caffemodel, "--json", "--no-caffe-run").out)
        assert report["ok"]
        assert {"c1", "r1"} <= {row["tensor"] for row in report["rows"]}

    def test_in_pycaffe(self, cli, export, pycaffe):
        ran = cli("compare", *export, "--caffe-python", pycaffe.python, "--json")
        assert ran.code == 0
        assert set(json.loads(ran.out)["runtimes"]) == {"builtin", "pycaffe"}

    def test_array_as_the_only_input(self, cli, export, tmp_path):
        np.save(tmp_path / "x.npy", np.ones((1, 3, 32, 32)))
        report = json.loads(cli("compare", *export, "--json", "--no-caffe-run", "--input", "x=x.npy").out)
        assert report["runs"] == 1

    @pytest.mark.parametrize("which", [0, 1, 2])
    def test_missing_file(self, cli, export, which):
        files = list(export)
        files[which] = "missing"
        ran = cli("compare", *files)
        assert ran.code == 2
        assert "missing" in ran.err

    def test_another_net_fits_nothing(self, cli, export, tmp_path):
        other = save("arithmetic", tmp_path)
        assert cli("compare", other, *export[1:], "--no-caffe-run").code == 2

    def test_own_map_of_renamed_net(self, cli, tmp_path):
        """Our own export is compared by its map, also where names from the model could not become blob names."""
        b = Builder(0)
        b.conv("x", "c\n1", 3, 4)
        b.node("Relu", ["c\n1"], "y")
        onnx.save(b.model([1, 3, 8, 8], ["y"]), tmp_path / "m.onnx")
        assert cli("convert", "m.onnx", "--no-proof").code == 0
        ran = cli("compare", "m.onnx", "m/m.prototxt", "m/m.caffemodel", "--json", "--no-caffe-run")
        assert {row["tensor"] for row in json.loads(ran.out)["rows"]} == {"c\n1", "y"}


class TestOthers:
    def test_version(self, cli):
        assert cli("--version").out == f"onnx2caffe {onnx2caffe.__version__}\n"

    def test_version_is_the_package_s(self):
        assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == onnx2caffe.__version__

    def test_module(self):
        done = subprocess.run(
            [sys.executable, "-m", "onnx2caffe", "--version"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout.split()[0]) == (0, "onnx2caffe")

    def test_version_imports_nothing_heavy(self):
        code = (
            "import sys; from onnx2caffe.cli import main\n"
            "try: main(['--version'])\nexcept SystemExit: pass\n"
            "print([m for m in ('numpy', 'onnx', 'onnxruntime', 'rich', 'google.protobuf') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert ast.literal_eval(done.stdout.splitlines()[-1]) == []

    def test_ops(self, cli):
        document = json.loads(cli("ops", "--json").out)
        conv = next(entry for entry in document["operators"] if entry["op"] == "Conv")
        assert conv["becomes"]["caffe"][0] == "Convolution"
        assert conv["becomes"]["relax"][0] == "nn.conv2d"
        assert 11 in conv["versions"]
        clip = next(entry for entry in document["recipes"] if entry["key"] == "clip")
        assert set(clip["order"]) == {"caffe", "bvlc", "nnie"}

    def test_ops_in_short(self, cli):
        lines = cli("ops").out.splitlines()
        assert max(map(len, lines)) < 110
        assert lines[0].split() == "op caffe bvlc nnie relay relax".split()
        rows = [[cell.strip() for cell in line.split("  ") if cell] for line in lines]
        assert ["Conv", "yes", "yes", "yes", "yes", "yes"] in rows
        assert ["Sin", "refused", "refused", "on the CPU", "yes", "yes"] in rows
        assert ["crop", "dw, slice"] in rows
        assert "ops NAME" in lines[-1]

    def test_ops_by_name(self, cli):
        lines = cli("ops", "flatten", "Resize").out.splitlines()
        assert lines[0].split() == "op opsets caffe bvlc nnie relay relax limits tests".split()
        assert [line.split()[0] for line in lines if line].count("Resize") == 2  # what it becomes, and its lowering
        assert any(line.startswith("Flatten read as Reshape") for line in lines)
        assert cli("ops", "Flaten").code == 2
        assert "hint: near: Flatten" in cli("ops", "Flaten").err
        assert "hint: near: Clip, Relu" in cli("ops", "Relu6").err

    def test_doctor(self, cli):
        states = {state["name"]: state for state in json.loads(cli("doctor", "--json").out)}
        assert states["builtin"]["found"]
        assert "pycaffe" in states
        assert "pycaffe" in cli("doctor").out

    def test_inspect(self, cli, model):
        ran = cli("inspect", model)
        assert ran.code == 0
        assert "1×3×32×32" in ran.out
        assert "Conv 3" in ran.out
        document = json.loads(cli("inspect", model, "--json").out)
        assert document["convertible"]
        assert document["shapes"]["p1"] == [1, 8, 16, 16]

    def test_inspect_says_what_blocks(self, cli, tmp_path):
        b = Builder(0)
        b.node("NonZero", ["x"], "y")
        model = b.model([1, 3, 8, "w"], ["y"])
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
        onnx.save(model, tmp_path / "m.onnx")
        assert "--input-shape" in cli("inspect", "m.onnx").out
        assert "NonZero" in cli("inspect", "m.onnx", "--input-shape", "x:1,3,8,8").out.splitlines()[-1]

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion(self, cli, shell):
        script = cli("completion", shell).out
        assert "--input-shape" in script or "-l input-shape" in script
        assert "nnie" in script

    def test_completion_is_bash(self, cli):
        done = subprocess.run(
            ["bash", "-n"], input=cli("completion", "bash").out, text=True, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")

    def test_setup_of_the_unknown(self, cli):
        assert cli("setup", "tensorrt").code == 2

    def test_nobody_reads(self):
        command = f"{sys.executable} -m onnx2caffe ops | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.stdout.strip() in {"0", "141"}
        assert done.stderr == ""

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
    @pytest.mark.parametrize("words", ["ops", "ops --json", "ops Conv --json", "inspect nowhere.onnx --json"])
    def test_output_without_room(self, words):
        command = [sys.executable, "-m", "onnx2caffe", *words.split()]
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("error: ")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
    @pytest.mark.parametrize("where", ["2> /dev/full", "2>&-", ">&-", "<&- >&- 2>&-"])
    def test_what_cannot_be_said_undoes_nothing(self, model, tmp_path, where):
        """A note is said of each export; a wrong path stays what it is."""
        program = f"{sys.executable} -m onnx2caffe"
        command = f"{program} convert {model} -o {tmp_path}/out --no-proof --input x=0.5 {where}"
        assert subprocess.run(["bash", "-c", command], stdout=subprocess.DEVNULL, check=False).returncode == 0
        assert (tmp_path / "out" / "classifier.map.json").exists()
        command = f"{program} inspect nowhere.onnx {where}"
        assert subprocess.run(["bash", "-c", command], capture_output=True, check=False).returncode == 2

    def test_printable(self):
        assert printable("a\x1b[2Jb\u202ec\ud800") == "a\\x1b[2Jb\\u202ec\\ud800"
        assert printable("層1") == "層1"


class TestApi:
    def test_all_names_are_there(self):
        assert all(hasattr(onnx2caffe, name) for name in onnx2caffe.__all__)
        assert set(dir(onnx2caffe)) == set(onnx2caffe.__all__)
        with pytest.raises(AttributeError):
            onnx2caffe.nothing  # noqa: B018

    def test_convert_and_compare(self, tmp_path):
        model = save("decoder", tmp_path)
        done = onnx2caffe.convert(str(model), tmp_path / "out", caffe_run=False)
        assert done.proof is not None
        assert done.proof.ok
        assert done.outputs[0].name == "y"
        again = onnx2caffe.compare(model, done.prototxt, done.caffemodel, caffe_run=False)
        assert again.ok
        assert {row.tensor for row in again.proof.rows} >= {"up", "y"}

    def test_errors_are_ours(self, tmp_path):
        with pytest.raises(onnx2caffe.Onnx2CaffeError) as caught:
            onnx2caffe.convert(tmp_path / "missing.onnx")
        assert caught.value.exit_code == 2

    def test_inspect(self, tmp_path):
        assert onnx2caffe.inspect(save("branches", tmp_path)).convertible


def test_a_signal_in_a_text_that_python_runs_has_its_exit_code(tmp_path):
    """Modules that are being imported run texts (dataclasses): a plain KeyboardInterrupt there is 130 to Python."""
    (tmp_path / "stopped.py").write_text(
        "import sys\n"
        "from onnx2caffe import cli\n"
        "text = 'import os, signal; os.kill(os.getpid(), signal.SIGTERM); os.getpid()'\n"
        "cli._run = lambda words: exec(text)\n"
        "sys.exit(cli.main([]))\n"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-m", "stopped"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 143
    assert "interrupted (SIGTERM)" in ended.stderr
