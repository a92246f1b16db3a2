"""Small models of what users hit, as ONNX text (`patterns.txt`), one section each.

A section starts with `=== name | outcome | rows`: outcome `equal`, `refuse` or `either` is what targets caffe and bvlc
must do. An initializer written `{}` is seeded noise of its shape: its values do not matter, only that they are there.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

__all__ = ["Pattern", "patterns"]


@dataclass(frozen=True)
class Pattern:
    """A named model and the outcome it must have."""

    name: str
    must: str
    model: onnx.ModelProto


def patterns() -> list[Pattern]:
    """All patterns, built."""
    text = Path(__file__).with_name("patterns.txt").read_text()
    return [_pattern(section) for section in text.split("=== ") if section]


def _pattern(section: str) -> Pattern:
    head, body = section.split("\n", 1)
    name, must, _ = (part.strip() for part in head.split("|"))
    model = parser.parse_model(body)
    for tensor in model.graph.initializer:
        if _is_blank(tensor):
            _fill(tensor)
    return Pattern(name, must, model)


def _is_blank(tensor: onnx.TensorProto) -> bool:
    stored = tensor.float_data or tensor.double_data or tensor.int64_data or tensor.int32_data or tensor.raw_data
    return not stored and int(np.prod(tensor.dims)) > 0


def _fill(tensor: onnx.TensorProto) -> None:
    rng = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    array = 0.4 * rng.standard_normal(tuple(tensor.dims))
    tensor.CopyFrom(numpy_helper.from_array(array.astype(kind), tensor.name))
