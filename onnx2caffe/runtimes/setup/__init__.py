"""`onnx2caffe setup RUNTIME`: makes runtimes that `pip install` does not bring."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from onnx2caffe.errors import UsageError

__all__ = ["INSTALLABLE", "Apt", "install"]

INSTALLABLE = ("pycaffe", "relay", "relax")

Apt = Literal["auto", "yes", "no"]
"""Install missing Debian packages: where this process may (root), always, or never."""


def install(name: str, *, apt: Apt = "auto", jobs: int | None = None, force: bool = False) -> Path:
    """Make a runtime, unless it is there already; the Python that has it.

    `jobs`: compilers at a time, as many as there are processors by default. `force`: make it again.

    Raises:
        UsageError: no such runtime.
        RuntimeMissing: it cannot be made here; the hint says what serves instead.

    """
    if name not in INSTALLABLE:
        raise UsageError(f"there is nothing to set up by the name {name!r}", f"known: {', '.join(INSTALLABLE)}")
    if name == "pycaffe":
        from onnx2caffe.runtimes.setup.pycaffe.install import install_pycaffe

        return install_pycaffe(apt, jobs, force)
    from onnx2caffe.runtimes.setup.tvm import install_tvm

    return install_tvm(name, force)
