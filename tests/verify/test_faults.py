"""Faults planted in written files: each fails the comparison, which names the first tensor that differs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest

import onnx2caffe
from onnx2caffe.caffe.read import read_net
from onnx2caffe.caffe.write import write_caffemodel, write_prototxt
from onnx2caffe.cli import main
from tests.verify.faults import FAULTS, Fault, first_reached, plant
from tests.verify.models import MODELS, save


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> dict[str, Path]:
    """Model name -> folder that holds the model and its sound export "net"."""
    folders = {}
    for name in MODELS:
        folder = tmp_path_factory.mktemp(name)
        onnx2caffe.convert(save(name, folder), folder, name="net", target="caffe", force=True, proof=False)
        folders[name] = folder
    return folders


def compare(folder: Path, fault: Fault, capsys, *more: str) -> tuple[int, dict]:
    files = [folder / f"{fault.model}.onnx", folder / "net.prototxt", folder / "net.caffemodel"]
    capsys.readouterr()
    code = main(["compare", *map(str, files), "--runs", "1", "--json", *more])
    return code, json.loads(capsys.readouterr().out)


def planted(export: Path, fault: Fault, folder: Path) -> str:
    """Copy an export, with the fault in it; the tensor that must be the first to differ."""
    shutil.copytree(export, folder, dirs_exist_ok=True)
    net = read_net(folder / "net.prototxt", folder / "net.caffemodel")
    before = plant(net, fault)
    write_prototxt(net, folder / "net.prototxt", [])
    (folder / "net.caffemodel").unlink()  # the net just read may still hold views of it
    write_caffemodel(net, folder / "net.caffemodel")
    blobs = {name: t["blob"] for name, t in json.loads((folder / "net.map.json").read_text())["tensors"].items()}
    graph = onnx.load(folder / f"{fault.model}.onnx").graph
    return first_reached(net, before, blobs, [name for node in graph.node for name in node.output])


def test_there_are_enough():
    assert len(FAULTS) >= 100


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_fault_is_found_and_named(fault, exports, tmp_path, capsys):
    expected = planted(exports[fault.model], fault, tmp_path)
    code, report = compare(tmp_path, fault, capsys, "--no-caffe-run")
    assert code == 1
    assert report["first_difference"] == expected


@pytest.mark.parametrize("model", MODELS)
def test_sound_files_pass(model, exports, capsys):
    fault = next(fault for fault in FAULTS if fault.model == model)
    code, report = compare(exports[model], fault, capsys, "--no-caffe-run")
    assert code == 0, report["first_difference"]
    assert report["rows"]


@pytest.mark.parametrize("model", MODELS)
def test_pycaffe_finds_it_too(model, exports, tmp_path, capsys, pycaffe):
    fault = next(fault for fault in FAULTS if fault.model == model)
    expected = planted(exports[model], fault, tmp_path)
    code, report = compare(tmp_path, fault, capsys, "--caffe-python", str(pycaffe.python))
    assert code == 1
    assert report["first_difference"] == expected
    assert {row["runtime"] for row in report["rows"] if row["verdict"] == "differs"} == {"builtin", "pycaffe"}
