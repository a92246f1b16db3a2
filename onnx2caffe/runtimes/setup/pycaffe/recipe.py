"""What is built, and where it lies: another recipe, another folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from onnx2caffe.runtimes.setup.places import cache

__all__ = ["SOURCES", "environment_python", "folder"]

SOURCES = Path(__file__).parent / "src"


def folder() -> Path:
    """The build folder of this version of the builder: a digest of its modules and C++ sources names it."""
    digest = hashlib.sha256()
    for path in sorted(p for p in Path(__file__).parent.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache() / "pycaffe" / digest.hexdigest()[:10]


def environment_python() -> Path | None:
    """The Python of the environment that `onnx2caffe setup pycaffe` made, or None."""
    python = folder() / "env" / "bin" / "python"
    return python if python.exists() else None
