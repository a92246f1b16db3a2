"""The modules that register lowerings, loaded once and only when something is lowered."""

from __future__ import annotations

import importlib
import pkgutil

import onnx2caffe.caffe.lower as package

__all__ = ["load_families"]

_NO_FAMILY = frozenset({"emitter", "families", "lower", "op", "registry"})


def load_families() -> None:
    """Import every module of this package that holds lowerings or recipes."""
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _NO_FAMILY:
            importlib.import_module(f"{package.__name__}.{module.name}")
