"""The runtimes that written files are tried in: builtin always, pycaffe where there is one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes import pycaffe
from onnx2caffe.runtimes.base import Runtime
from onnx2caffe.runtimes.builtin import Builtin

__all__ = ["CAFFE", "candidates", "find_caffe"]

CAFFE = ("builtin", "pycaffe")


def find_caffe(name: str, caffe_python: Path | None) -> Runtime:
    """One of `CAFFE` by its name.

    Raises:
        RuntimeMissing: there is none.

    """
    return Builtin() if name == "builtin" else pycaffe.find(caffe_python)


@contextlib.contextmanager
def candidates(caffe_python: Path | None, caffe_run: bool) -> Iterator[list[Runtime]]:
    """Builtin, and pycaffe unless `caffe_run` is off or there is none; closed at the end.

    Raises:
        RuntimeMissing: `caffe_python` or $ONNX2CAFFE_CAFFE_PYTHON names a Python without a working caffe.

    """
    found = [find_caffe("builtin", None)]
    if caffe_run:
        try:
            found.append(find_caffe("pycaffe", caffe_python))
        except RuntimeMissing:
            if caffe_python or os.environ.get("ONNX2CAFFE_CAFFE_PYTHON"):
                raise
    try:
        yield found
    finally:
        for runtime in found:
            runtime.close()
