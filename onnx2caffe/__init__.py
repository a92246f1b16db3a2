"""ONNX to Caffe, every export proved by numbers.

The functions are loaded when first used: importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx2caffe.api import (
        Comparison,
        Conversion,
        Finding,
        Inspection,
        Judgement,
        Note,
        Operators,
        Pictures,
        Proof,
        Report,
        Row,
        RuntimeStatus,
        TvmExport,
        Verdict,
        check,
        compare,
        convert,
        doctor,
        export_tvm,
        inspect,
        ops,
        setup,
    )
    from onnx2caffe.errors import Onnx2CaffeError

__all__ = [
    "Comparison",
    "Conversion",
    "Finding",
    "Inspection",
    "Judgement",
    "Note",
    "Onnx2CaffeError",
    "Operators",
    "Pictures",
    "Proof",
    "Report",
    "Row",
    "RuntimeStatus",
    "TvmExport",
    "Verdict",
    "__version__",
    "check",
    "compare",
    "convert",
    "doctor",
    "export_tvm",
    "inspect",
    "ops",
    "setup",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "onnx2caffe.errors" if name == "Onnx2CaffeError" else "onnx2caffe.api"
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
