"""The modules that register emitters, loaded once and only when something is emitted."""

from __future__ import annotations

import importlib
import pkgutil

__all__ = ["load_families"]

_PLACES = ("common", "relay", "relax")


def load_families() -> None:
    """Import every module of the dialects' packages."""
    for place in _PLACES:
        package = importlib.import_module(f"onnx2caffe.tvm.{place}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
