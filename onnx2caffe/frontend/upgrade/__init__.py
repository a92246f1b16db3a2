"""Every op of every opset from 6 to the newest read, into its one canonical form; a module per family."""

from __future__ import annotations

from onnx2caffe.frontend.upgrade import (  # noqa: F401 - each fills the table
    activation,
    dense,
    elementwise,
    fourier,
    generate,
    index,
    layout,
    legacy,
    microsoft,
    norm,
    qlinear,
    quantize,
    recurrent,
    reduce,
    resize,
    sequence,
    training,
    window,
)
from onnx2caffe.frontend.upgrade.registry import INLINED, REASONS, UPGRADES

__all__ = ["INLINED", "REASONS", "UPGRADES"]
