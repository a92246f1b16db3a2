"""From sources to the package `caffe` with its extension module and the libraries that needs."""

from __future__ import annotations

import json
import platform
import re
import shutil
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes import interpreter
from onnx2caffe.runtimes.setup.commands import run
from onnx2caffe.runtimes.setup.pycaffe.recipe import INSTEAD, SDIST, SOURCES

__all__ = ["make_package"]

_FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-w",
    "-fvisibility=hidden",
    "-DNDEBUG",
    "-DCPU_ONLY",
    "-DCAFFE_VERSION=1.0.0",
    "-DBOOST_BIND_GLOBAL_PLACEHOLDERS",
    "-DBOOST_ALLOW_DEPRECATED_HEADERS",
)
_LINK_FLAGS = (
    "-Wl,--disable-new-dtags",  # a RUNPATH would not hold for the libraries' own libraries
    "-Wl,-rpath,$ORIGIN/.libs",
    "-Wl,-O1",
    "-Wl,--as-needed",
    "-Wl,-Bsymbolic",
    "-s",
)
_LIBRARIES = ("boost_thread", "boost_filesystem", "boost_system", "protobuf", "openblas", "pthread")

# GPU code, and layers that read training data from files.
_LEFT_OUT = re.compile(
    r"cudnn|/(image_data|window_data|hdf5_data|hdf5_output)_layer\.cpp$"
    r"|/util/(hdf5|db_leveldb|db_lmdb)\.cpp$|/signal_handler\.cpp$"
)
_NOT_OF_PYTHON = ("test", "imagenet", "__pycache__", "*.cpp", "caffe_pb2.py")

# Part of every Linux system that can run a Python: not put into the wheel.
_SYSTEM_LIBRARIES = (
    "linux-vdso",
    "ld-linux",
    "libc.so",
    "libm.so",
    "libdl.so",
    "libpthread.so",
    "librt.so",
    "libutil.so",
    "libstdc++.so",
    "libgcc_s.so",
    "libz.so",
)
_LAYER_GROUPS = 4


def make_package(source: Path, work: Path, python: Path, jobs: int) -> Path:
    """Compile and link; the folder of the finished package.

    `python`: an environment with pybind11, of the same version as the Python that runs this.

    Raises:
        RuntimeMissing: no Python.h, no compiler, no library, or the compiler failed.

    """
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise RuntimeMissing("this Python has no Python.h (Debian: install python3-dev)", INSTEAD)
    package, generated = work / "package", work / "generated"
    shutil.copytree(source / "python/caffe", package, ignore=shutil.ignore_patterns(*_NOT_OF_PYTHON))
    protoc = _generate(source, generated, package)
    pybind = run([python, "-c", "import pybind11; print(pybind11.get_include())"], interpreter.environment()).strip()
    _link(_compile(source, work, generated, pybind, jobs), package)
    facts = {
        "source": " ".join(SDIST[:2]),
        "protoc": protoc,
        "compiler": run(["g++", "--version"]).splitlines()[0],
        "python": platform.python_version(),
    }
    (package / "build.json").write_text(json.dumps(facts, indent=1))
    return package


def _generate(source: Path, generated: Path, package: Path) -> str:
    """Code for the messages, in C++ and Python; protoc's version."""
    folder = source / "src/caffe/proto"
    cpp = generated / "caffe/proto"
    cpp.mkdir(parents=True)
    base = ["protoc", "-I", str(folder)]
    run([*base, f"--cpp_out={cpp}", folder / "caffe.proto"], hint=INSTEAD)
    version = run(["protoc", "--version"]).split()[1]
    descriptors = generated / "caffe.fds"
    run([*base, f"--descriptor_set_out={descriptors}", folder / "caffe.proto"])
    (package / "proto/caffe_pb2.py").write_text(_python_messages(descriptors.read_bytes()))
    return version


def _python_messages(descriptors: bytes) -> str:
    """`caffe_pb2.py` by protobuf's builder: what a protoc before 3.20 writes does not load in protobuf 4 and later."""
    return f"""from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.internal import builder

_SET = descriptor_pb2.FileDescriptorSet.FromString({descriptors!r})
DESCRIPTOR = descriptor_pool.Default().AddSerializedFile(_SET.file[0].SerializeToString())
builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, "caffe.proto.caffe_pb2", globals())
"""


def _groups(source: Path) -> dict[str, list[Path]]:
    """Caffe's files in groups that are compiled as one file each: half the time of one by one."""

    def cpp(folder: str) -> list[Path]:
        return [f for f in sorted((source / "src/caffe" / folder).glob("*.cpp")) if not _LEFT_OUT.search(f.as_posix())]

    # lstm_unit_layer.cpp and sigmoid_layer.cpp both define a function `sigmoid`.
    alone = [f for f in cpp("layers") if f.name == "lstm_unit_layer.cpp"]
    layers = [f for f in cpp("layers") if f not in alone]
    return {
        "core": cpp("."),
        "util": cpp("util") + cpp("solvers"),
        "extra": [*alone, SOURCES / "extra_layers.cpp"],
        **{f"layers{n}": layers[n::_LAYER_GROUPS] for n in range(_LAYER_GROUPS)},
    }


def _compile(source: Path, work: Path, generated: Path, pybind: str, jobs: int) -> list[Path]:
    includes = [
        SOURCES / "shim",
        source / "src",
        source / "include",
        generated,
        generated / "caffe",
        Path(sysconfig.get_path("include")),
        Path("/usr/include/openblas"),  # where Fedora keeps cblas.h
        Path(pybind),
    ]
    units = [SOURCES / "pybind_caffe.cpp", generated / "caffe/proto/caffe.pb.cc"]
    for name, files in _groups(source).items():
        unit = work / f"{name}.cpp"
        unit.write_text("".join(f'#include "{file}"\n' for file in files))
        units.append(unit)

    def compiled(unit: Path) -> Path:
        target = work / f"{unit.stem}.o"
        run(["g++", *_FLAGS, *(f"-I{folder}" for folder in includes), "-c", unit, "-o", target], hint=INSTEAD)
        return target

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(compiled, units))


def _link(objects: Sequence[Path], package: Path) -> None:
    """Make the extension module, and put the libraries that not every system has beside it."""
    module = package / f"_caffe{sysconfig.get_config_var('EXT_SUFFIX')}"
    libraries = [f"-l{name}" for name in _LIBRARIES if name != "boost_system" or _has_library(name)]
    run(["g++", "-shared", "-o", module, *objects, *_LINK_FLAGS, *libraries], hint=INSTEAD)
    carried = package / ".libs"
    carried.mkdir()
    for line in run(["ldd", module]).splitlines():
        name, _, found = (part.strip() for part in line.partition("=>"))
        if Path(name.split()[0]).name.startswith(_SYSTEM_LIBRARIES):
            continue
        if not found.startswith("/"):
            raise RuntimeMissing(f"the library {name} was not found", INSTEAD)
        shutil.copy(Path(found.split()[0]).resolve(), carried / name)


def _has_library(name: str) -> bool:
    """Whether the linker finds it; Boost dropped its library boost_system in 1.89."""
    return run(["g++", f"-print-file-name=lib{name}.so"]).startswith("/")
