"""The Debian and Ubuntu packages a build needs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes.setup import Apt
from onnx2caffe.runtimes.setup.commands import run
from onnx2caffe.runtimes.setup.pycaffe.recipe import INSTEAD
from onnx2caffe.runtimes.setup.report import Report

__all__ = ["require_packages"]

_LIBRARIES = (
    "g++",
    "protobuf-compiler",
    "libprotobuf-dev",
    "libopenblas-dev",
    "libboost-thread-dev",
    "libboost-filesystem-dev",
    "libboost-system-dev",
    "libboost-date-time-dev",
)


def require_packages(apt: Apt, report: Report) -> None:
    """Install the packages that are missing where that is allowed and possible.

    Raises:
        RuntimeMissing: packages are missing and this process may not install them; the message holds the command.

    """
    if not shutil.which("dpkg-query"):
        report.say(f"no dpkg here: what these Debian packages hold must be there: {' '.join(_needed())}")
        return
    missing = [package for package in _needed() if not _is_installed(package)]
    if not missing:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if apt == "no" or (apt == "auto" and os.geteuid() != 0) or not shutil.which("apt-get"):
        raise RuntimeMissing(f"packages are missing; as root:\n  {' '.join(command)}", f"or without: {INSTEAD}")
    with report.step(f"installing {' '.join(missing)}"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            run(command, environment)
        except RuntimeMissing:  # package lists that are not there, or older than the mirror
            run(["apt-get", "update"], environment, INSTEAD)
            run(command, environment, INSTEAD)


def _needed() -> list[str]:
    """The libraries, and what a distribution's own Python leaves to other packages."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    needed = list(_LIBRARIES)
    if sys.base_prefix == "/usr":
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            needed.append(f"{python}-dev")
        if importlib.util.find_spec("ensurepip") is None:
            needed.append(f"{python}-venv")
    return needed


def _is_installed(package: str) -> bool:
    status = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True, check=False
    ).stdout
    return "install ok installed" in status
