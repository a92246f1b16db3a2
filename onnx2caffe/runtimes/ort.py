"""onnxruntime: the reference, always the user's own file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onnx2caffe.errors import NoReference
from onnx2caffe.runtimes.base import Array, Feeds

if TYPE_CHECKING:
    import onnx
    import onnxruntime

__all__ = ["DTYPES", "Reference", "session", "shaken", "version", "widened"]

DTYPES = {
    "tensor(bool)": "bool",
    "tensor(double)": "float64",
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int16)": "int16",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(int8)": "int8",
    "tensor(uint16)": "uint16",
    "tensor(uint32)": "uint32",
    "tensor(uint64)": "uint64",
    "tensor(uint8)": "uint8",
}
"""onnxruntime's type texts that numpy has, by numpy name."""

_EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"


def version() -> str:
    """E.g. "onnxruntime 1.32.0"."""
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}"


def session(
    model: bytes | str | os.PathLike[str],
    optimise: bool = False,
    *,
    threads: int = 0,
    folder: Path | None = None,
) -> onnxruntime.InferenceSession:
    """A CPU session of a model's bytes or file.

    `threads`: of one operator, 0 = onnxruntime's choice. `folder`: where external data of a model given as bytes lies.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    if folder is not None:
        options.add_session_config_entry(_EXTERNAL_FOLDER, str(folder))
    source = model if isinstance(model, bytes) else os.fspath(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
