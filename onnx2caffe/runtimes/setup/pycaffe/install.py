"""The order of things in `onnx2caffe setup pycaffe`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes.base import NetFiles, Tap
from onnx2caffe.runtimes.pycaffe import PyCaffe
from onnx2caffe.runtimes.setup import Apt
from onnx2caffe.runtimes.setup.environment import Environment
from onnx2caffe.runtimes.setup.pycaffe import recipe
from onnx2caffe.runtimes.setup.pycaffe.compile import make_package
from onnx2caffe.runtimes.setup.pycaffe.debian import require_packages
from onnx2caffe.runtimes.setup.pycaffe.sources import fetch, unpack
from onnx2caffe.runtimes.setup.pycaffe.wheel import write_wheel
from onnx2caffe.runtimes.setup.report import Report

__all__ = ["install_pycaffe"]

_SMOKE_NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 5 dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 2 kernel_size: 3 pad: 1 weight_filler { type: "constant" value: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "permute" type: "Permute" bottom: "conv" top: "permute" permute_param { order: [0, 2, 3, 1] } }
"""


def install_pycaffe(apt: Apt, jobs: int | None, force: bool) -> Path:
    """Build pycaffe and install it into an environment of its own, unless that is there; its Python.

    Raises:
        RuntimeMissing: it cannot be built here; the hint says what serves instead.

    """
    if not sys.platform.startswith("linux"):
        raise RuntimeMissing(f"pycaffe is built on Linux only, not on {sys.platform}", recipe.INSTEAD)
    report = Report()
    environment = recipe.environment()
    with environment.alone("pycaffe", report):
        if force or not _works(environment.ready):
            require_packages(apt, report)
            _build(environment, jobs or len(os.sched_getaffinity(0)), report)
    return environment.python


def _works(python: Path | None) -> bool:
    """Whether an earlier installation is there and works: the Python it was made of may be gone."""
    if python is None:
        return False
    try:
        PyCaffe(python).close()
    except RuntimeMissing:
        return False
    return True


def _build(environment: Environment, jobs: int, report: Report) -> None:
    with report.step("making an environment"):
        environment.make(*recipe.BUILD_PACKAGES, *recipe.RUN_PACKAGES)
    with tempfile.TemporaryDirectory(dir=environment.folder) as scratch:
        work = Path(scratch)
        with report.step("fetching the sources"):
            unpack(fetch(environment.python, work), work / "source")
        with report.step(f"compiling Caffe, {jobs} at a time"):
            package = make_package(work / "source", work, environment.python, jobs)
        wheel = write_wheel(package, work / "source" / "LICENSE", environment.folder)
    environment.pip("--no-deps", "--force-reinstall", str(wheel))
    _smoke_test(environment.python)
    environment.mark.touch()


def _smoke_test(python: Path) -> None:
    """Run a small net in the new Caffe and hold it against numpy."""
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 4)).astype(np.float32)
    padded = np.pad(x.sum(1), ((0, 0), (1, 1), (1, 1)))
    sums = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2)).sum((-2, -1))
    expected = np.repeat(np.maximum(sums, 0)[..., None], 2, axis=-1)
    tap = Tap("permute", "permute")
    with tempfile.TemporaryDirectory() as scratch:
        files = NetFiles(Path(scratch, "smoke.prototxt"), Path(scratch, "smoke.caffemodel"))
        files.prototxt.write_text(_SMOKE_NET)
        files.caffemodel.touch()
        caffe = PyCaffe(python)
        try:
            (result,) = caffe.run(files, [{"data": x}], [tap])
        finally:
            caffe.close()
    if not np.allclose(result[tap], expected, atol=1e-4):
        raise RuntimeMissing("the Caffe that was built computes wrong numbers", recipe.INSTEAD)
