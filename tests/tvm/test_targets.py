"""What `--target` and `--cc` give: objects and libraries of the machine, calling convention and C library asked for."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2caffe
from onnx2caffe import cli
from onnx2caffe.tvm import targets
from onnx2caffe.tvm.registry import DIALECTS
from tests.ops.harness import difference, reference
from tests.tvm.arm import runtime
from tests.tvm.boards import MACHINES

SOFTFP = ["hi3516cv500", "hi3516dv300", "hi3516av300", "hi3519av100", "hi3559v200"]
NEWEST = (2, 24)
"""The C library of the boards' SDKs."""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Conv, Tanh, MatMul: what calls libm."""
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((4, 3, 3, 3)), "m": random.standard_normal((6, 5))}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "m"], ["y"]),
    ]
    constants = [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 5, 6))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 5, 5))
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    path = tmp_path_factory.mktemp("targets") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def exported(model: Path, folder: Path, dialect: str, target: str, cc: str = "") -> Path:
    export = onnx2caffe.export_tvm(model, folder, dialect=dialect, target=target, cc=cc, compare=False)
    return export.files["library"]


def said(*command: str | Path) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("no readelf here (binutils)")
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("target", [*SOFTFP, "armhf", "hi3559av100", "aarch64"])
def test_objects(target: str, dialect: str, model: Path, tmp_path: Path, running) -> None:
    running(dialect)
    archive = exported(model, tmp_path / "out", dialect, target)
    assert archive.suffix == ".tar"
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    objects = sorted(tmp_path.glob("*.o"))
    assert objects
    for path in objects:
        header, attributes = said("readelf", "-h", path), said("readelf", "-A", path)
        if target in ("hi3559av100", "aarch64"):
            assert "AArch64" in header
            continue
        assert re.search(r"Class: +ELF32\n(.*\n)*.*Machine: +ARM\n", header)
        assert re.search("Tag_FP_arch: (VFPv4|FP for ARMv8)", attributes)
        assert ("Tag_ABI_VFP_args" in attributes) is (target == "armhf"), "floats in registers of the other convention"


CROSS = {"hi3516dv300": "arm-linux-gnueabi-gcc", "armhf": "arm-linux-gnueabihf-gcc", "aarch64": "aarch64-linux-gnu-gcc"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("target", CROSS)
def test_linked_here(target: str, dialect: str, model: Path, tmp_path: Path, running) -> None:
    running(dialect)
    if shutil.which(CROSS[target]) is None:
        pytest.skip(f"apt-get install {targets.compiler_package(targets.PRESETS[target])}")
    library = exported(model, tmp_path / "out", dialect, target, CROSS[target])
    assert library.suffix == ".so"
    assert "Shared object file" in said("readelf", "-h", library)
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", said("readelf", "-V", library))
    assert all((int(major), int(minor)) <= NEWEST for major, minor in versions)


def test_an_archive_becomes_a_program(model: Path, tmp_path: Path, running) -> None:
    """As docs/tvm.md says: linked by the board's own compiler, loaded by a program with TVM's runtime."""
    running("relay")
    machine = MACHINES["aarch64"]
    if machine.missing or shutil.which(f"{machine.cross}g++") is None:
        pytest.skip(f"apt-get install g++-aarch64-linux-gnu {machine.packages}")
    with tarfile.open(exported(model, tmp_path / "out", "relay", "hi3559av100")) as tar:
        tar.extractall(tmp_path, filter="data")
    library = tmp_path / "net.so"
    objects = [tmp_path / "lib0.o", tmp_path / "devc.o"]
    said(f"{machine.cross}gcc", "-shared", "-o", library, *objects)
    (tmp_path / "app").mkdir()
    app = runtime.build(tmp_path / "app", runtime.package(), machine, level="-O0")
    x = np.random.default_rng(1).standard_normal((1, 3, 5, 6)).astype(np.float32)
    (found,) = runtime.run(app, library, {"x": x}, [(1, 4, 5, 5)], machine)
    assert difference(reference(onnx.load(model), {"x": x})["y"], found) <= 1e-5


def test_same_bytes_every_time(model: Path, tmp_path: Path, running) -> None:
    running("relay")
    first, second = (exported(model, tmp_path / name, "relay", "hi3516dv300").read_bytes() for name in "ab")
    assert first == second


def test_a_compiler_links_for_this_machine_too(model: Path, tmp_path: Path, running) -> None:
    running("relay")
    assert "Shared object file" in said("readelf", "-h", exported(model, tmp_path / "out", "relay", "host", "gcc"))


@pytest.mark.parametrize(
    ("target", "package"),
    [
        ("hi3516dv300", "gcc-arm-linux-gnueabi"),
        ("armhf", "gcc-arm-linux-gnueabihf"),
        ("hi3559av100", "gcc-aarch64-linux-gnu"),
        ("mali", "gcc-aarch64-linux-gnu"),
        ("host", "gcc"),
    ],
)
def test_a_missing_compiler_is_named_with_its_package(target: str, package: str, model, tmp_path, capsys) -> None:
    arguments = ["--target", target, "--cc", "no-such-gcc", "-o", str(tmp_path / "out")]
    assert cli.main(["tvm", str(model), *arguments]) == 4
    message = capsys.readouterr().err
    assert "no-such-gcc" in message
    assert f"apt-get install {package}\n" in message
    assert ("SDK" in message) is (target != "host")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("target", "machine", "fits"),
    [
        ("hi3516dv300", "arm-linux-gnueabi", True),
        ("hi3516dv300", "arm-himix200-linux", True),
        ("hi3516dv300", "arm-linux-gnueabihf", False),
        ("hi3516dv300", "x86_64-linux-gnu", False),
        ("armhf", "arm-linux-gnueabihf", True),
        ("armhf", "arm-linux-gnueabi", False),
        ("hi3559av100", "aarch64-himix100-linux", True),
        ("hi3559av100", "arm-linux-gnueabi", False),
        ("mali", "aarch64-linux-gnu", True),
        ("mali", "x86_64-linux-gnu", False),
        ("host", "arm-linux-gnueabi", False),
        ("llvm -mtriple=i386-linux-gnu", "i686-linux-gnu", True),
    ],
)
def test_compilers_that_fit(target: str, machine: str, fits: bool, monkeypatch) -> None:
    monkeypatch.setattr(targets.platform, "machine", lambda: "x86_64")
    assert targets.fits(targets.parse(target), machine) is fits


def test_a_compiler_for_another_machine_is_wrong_usage(model: Path, tmp_path: Path, capsys) -> None:
    if shutil.which("arm-linux-gnueabihf-gcc") is None:
        pytest.skip("apt-get install gcc-arm-linux-gnueabihf")
    arguments = ["--target", "hi3516dv300", "--cc", "arm-linux-gnueabihf-gcc", "-o", str(tmp_path / "out")]
    assert cli.main(["tvm", str(model), *arguments]) == 2
    assert "links for arm-linux-gnueabihf" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_does_not_link_leaves_nothing(model: Path, tmp_path: Path, running, capsys) -> None:
    running("relay")
    cc = tmp_path / "arm-gcc"
    cc.write_text('#!/bin/sh\nif [ "$1" = -dumpmachine ]; then echo arm-linux; else exec gcc "$@"; fi\n')
    cc.chmod(0o755)
    arguments = ["--target", "hi3516dv300", "--cc", str(cc), "--no-compare", "-o", str(tmp_path / "out")]
    assert cli.main(["tvm", str(model), *arguments]) == 4
    assert "TVM failed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_compiler_that_fails_without_a_word_is_named(model: Path, tmp_path: Path, running, capsys) -> None:
    running("relay")
    compiler = tmp_path / "silent"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    arguments = ["--cc", str(compiler), "--no-compare", "-o", str(tmp_path / "out")]
    assert cli.main(["tvm", str(model), *arguments]) == 4
    assert f"{compiler} fails and says nothing" in capsys.readouterr().err


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("target", ["opencl", "mali"])
def test_opencl(target: str, dialect: str, model: Path, tmp_path: Path, running) -> None:
    running(dialect)
    library = exported(model, tmp_path / "out", dialect, target)
    assert library.suffix == (".so" if target == "opencl" else ".tar")
    assert b"__kernel void" in library.read_bytes()
