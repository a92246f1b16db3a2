"""What is built, where it lies, and what serves where it cannot be built."""

from __future__ import annotations

import hashlib
from pathlib import Path

from onnx2caffe.runtimes.setup.environment import Environment
from onnx2caffe.runtimes.setup.places import cache

__all__ = [
    "BUILD_PACKAGES",
    "INSTEAD",
    "RUN_PACKAGES",
    "SDIST",
    "SOURCES",
    "VERSION",
    "environment",
    "environment_python",
]

SOURCES = Path(__file__).parent / "src"
"""Our own C++: the Python binding, the layers BVLC Caffe lacks, and stand-ins for glog and gflags."""

SDIST = ("brocolli-caffe", "3.0.0", "ad7ba487552f4343df25044a9fa14812a96add48ea2ff993b53bf2dafe8248e2")
"""Name, version and sha256 of the PyPI sdist that holds BVLC/caffe at commit 9b891540.

The digest is pinned since other versions of that project hold another Caffe (an SSD fork without Clip and Swish), and
since the patches fit this text only.
"""

VERSION = "1.0.0+bvlc9b89154"
RUN_PACKAGES = ("numpy>=1.21", "protobuf>=3.20.2", "six")
BUILD_PACKAGES = ("setuptools", "wheel", "pybind11>=2.13")

_DECIDING = ("recipe.py", "sources.py", "compile.py", "wheel.py")

INSTEAD = (
    "the builtin runtime proves exports without Caffe; any other Python that has `caffe` serves by --caffe-python PATH "
    "(for conda: environment-caffe.yml in the sources of onnx2caffe)"
)


def environment() -> Environment:
    """The environment of this version of the builder: a digest of what decides the result names its folder."""
    here = Path(__file__).parent
    files = [here / name for name in _DECIDING] + [path for path in SOURCES.rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return Environment(cache() / "pycaffe" / digest.hexdigest()[:10], INSTEAD)


def environment_python() -> Path | None:
    """The Python of the environment that `onnx2caffe setup pycaffe` made, or None."""
    return environment().ready
