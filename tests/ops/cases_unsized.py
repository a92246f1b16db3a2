"""Ends of a network whose sizes depend on data: TVM has them, Caffe refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx2caffe.tvm.registry import DIALECTS
from tests.ops.harness import Array, Case, In, everywhere, ints

_Source = In | tuple[int, ...] | Array | None


def _end(
    op: str, opset: int, inputs: Sequence[_Source], attributes: Mapping[str, Any] | None = None, outputs: Any = 1,
    what: str = "", tvm: str = "",
) -> Case:  # fmt: skip
    refused = everywhere("depends on data") | (dict.fromkeys(DIALECTS, tvm) if tvm else {})
    row = Case(op, opset, tuple(inputs), attributes or {}, outputs, refused=refused)
    return replace(row, id=f"{row.name()}-{what or outputs}-unsized")


def _scalar(value: float) -> Array:
    return np.array(value, np.float32)


_BOXES, _SCORES = In((2, 12, 4), low=0, high=1), In((2, 3, 12), low=0, high=1)


def _boxes(
    *more: _Source, what: str, boxes: In = _BOXES, scores: In = _SCORES, tvm: str = "", opset: int = 11,
    **attributes: int,
) -> Case:  # fmt: skip
    return _end("NonMaxSuppression", opset, (boxes, scores, *more), attributes, what=what, tvm=tvm)


CASES = [
    _end("NonZero", 9, ((3, 4),)),
    _end("NonZero", 13, (In((2, 3, 4), "int32", 0, 1),)),
    _end("NonZero", 13, (In((7,), "bool"),)),
    _end("NonZero", 13, (In((2, 3), low=0, high=0),), what="none"),
    _end("NonZero", 13, ((),), tvm="a scalar has no axes"),
    _end("Unique", 11, ((3, 4),), {}, 4),
    _end("Unique", 11, (In((1,), "int64"),), {}, 4),
    *(
        _end("Unique", 11, (In((6, 3, 2), "int64", 0, 1),), attributes, 4)
        for attributes in ({}, {"sorted": 0}, {"axis": 0}, {"axis": -1}, {"axis": 1, "sorted": 0})
    ),
    _end("Unique", 11, (In((6, 2), "int64", 0, 2),), {"axis": 0}),
    _end("Unique", 11, (In((6, 2), "int8", 0, 2),), {"axis": 0}, ("y", "", "", "c"), "counts"),
    _end("Unique", 11, (In((9,), "float32", 0, 1),), {"sorted": 0}, ("y", "", "v"), "inverse"),
    _end("Unique", 11, ((2, 65),), {"axis": 0}, tvm="slices of 65 elements"),
    _boxes(np.array(4), _scalar(0.3), _scalar(0.2), what="all"),
    _boxes(ints(4), _scalar(0.3), what="limited", opset=10),
    _boxes(ints(4), what="any-overlap"),
    _boxes(ints(40), _scalar(0.3), what="negative-scores", scores=In((2, 3, 12))),
    _boxes(ints(40), _scalar(0.3), _scalar(-1.5), what="negative-threshold", scores=In((2, 3, 12))),
    _boxes(ints(40), _scalar(0.3), what="equal-scores", scores=In((2, 3, 12), low=0.5, high=0.5)),
    _boxes(ints(4), _scalar(0.3), _scalar(9), what="none"),
    _boxes(ints(2**62), _scalar(0), what="no-limit"),
    _boxes(ints(4), In((1,), low=0, high=0.8), In((1,), low=0, high=0.8), what="computed-thresholds"),
    _boxes(ints(4), _scalar(0.3), what="center", center_point_box=1),
    _boxes(ints(40), _scalar(0), what="center-signed", boxes=In((2, 12, 4)), center_point_box=1),
    _boxes(ints(40), _scalar(0.3), what="corners-signed", boxes=In((2, 12, 4))),
    _boxes(In((1,), "int64", 1, 5), what="computed-limit", tvm="must be constant"),
    _boxes(what="zero", tvm="selects nothing"),
]
