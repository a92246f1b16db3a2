"""Versions that ended with opset 6, which onnxruntime does not run: held against what they say in opset 13."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.ops.harness import Case, In, build, constant


def _legacy(
    op: str,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    modern_inputs: Sequence[Any] | None = None,
    modern_attributes: Mapping[str, Any] | None = None,
) -> Case:
    modern = Case(op, 13, tuple(modern_inputs or inputs), modern_attributes or {})
    return Case(op, 6, tuple(inputs), attributes, same_as=build(modern))


_X = In((2, 3, 4), low=0.5, high=3.0)
_MASK = In((2, 3, 4), "bool")
_POSITIVE = constant(3) ** 2 + np.float32(0.5)
_TRUE = np.array([True, False, True])
_WINDOW = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
_STATISTICS = [constant(3) ** 2 + np.float32(0.1)] * 4

CASES = [
    *(
        _legacy(op, (_X, _POSITIVE), {"broadcast": 1, "axis": axis}, (_X, _POSITIVE.reshape(3, 1)))
        for op in ("Add", "Sub", "Mul", "Div", "Pow")
        for axis in (1, -2)
    ),
    *(
        _legacy(op, (_X, In((3, 4), low=0.5, high=2.0)), {"broadcast": 1})
        for op in ("Add", "Mul", "Pow", "Greater", "Less")
    ),
    *(_legacy(op, (_X, _X), {}) for op in ("Add", "Div")),
    *(
        _legacy(op, (_MASK, _TRUE), {"broadcast": 1, "axis": 1}, (_MASK, _TRUE.reshape(3, 1)))
        for op in ("And", "Or", "Xor")
    ),
    _legacy(
        "Gemm",
        ((3, 4), constant(5, 4), constant(5)),
        {"transB": 1, "broadcast": 1, "alpha": 0.5},
        modern_attributes={"transB": 1, "alpha": 0.5},
    ),
    _legacy("PRelu", ((2, 3, 4, 5), constant(3)), {}, ((2, 3, 4, 5), constant(3).reshape(3, 1, 1))),
    *(_legacy("PRelu", (s, constant(n)), {}) for s, n in (((2, 3, 4, 5), 1), ((2, 3), 3))),
    _legacy("BatchNormalization", ((2, 3, 4, 5), *_STATISTICS), {"is_test": 1}),
    _legacy("AveragePool", ((1, 2, 6, 6),), _WINDOW, modern_attributes=_WINDOW),
    _legacy("Dropout", ((2, 3),), {"is_test": 1}),
    Case("BatchNormalization", 6, ((2, 3), *_STATISTICS), refused=dict.fromkeys(("caffe", "bvlc"), "training")),
    Case("Dropout", 6, ((2, 3),), refused=dict.fromkeys(("caffe", "bvlc"), "training")),
]
