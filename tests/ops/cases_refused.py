"""What is refused, and that the refusal says why: the limits that docs/operators.md lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx2caffe.tvm.registry import DIALECTS
from tests.ops.harness import Case, In, constant, everywhere, ints


def _refused(
    op: str,
    opset: int,
    reason: str,
    inputs: Sequence[Any],
    outputs: int = 1,
    domain: str = "",
    more: Sequence[str] = (),
    **attributes: Any,
) -> Case:
    """A row refused on every target, and in the dialects `more`."""
    row = Case(op, opset, tuple(inputs), attributes, outputs, refused=everywhere(reason, *more), domain=domain)
    return replace(row, id=f"{row.name()}-refused")


def _index(*shape: int, high: int = 1) -> In:
    return In(shape, "int64", 0, high)


_COMPUTED = [
    _refused("Reshape", 14, "depend on data", ((2, 3), _index(2))),
    _refused("Expand", 13, "depend on data", ((2, 1), _index(2))),
    _refused("Tile", 13, "depend on data", ((2, 3), _index(2))),
    _refused("Slice", 13, "depend on data", ((2, 3), _index(1), ints(3), ints(1))),
    _refused("Pad", 18, "depend on data", ((2, 3), _index(4))),
    _refused("Resize", 18, "depend on data", ((1, 2, 3, 3), None, None, _index(4))),
    _refused("TopK", 11, "depend on data", ((2, 5), _index(1)), outputs=2),
    _refused("Range", 11, "depend on data", (_index(), np.array(4), np.array(1))),
    _refused("ConstantOfShape", 9, "depend on data", (_index(2),)),
    _refused("OneHot", 11, "depend on data", (ints(1, 0), _index(), np.array([0, 1], np.float32))),
    _refused("Compress", 11, "depend on data", ((2, 3), In((3,), "bool")), axis=1),
    _refused("GatherElements", 13, "must be constant", ((2, 3), _index(2, 3))),
    _refused("GatherND", 13, "must be constant", ((2, 3), _index(2, 1))),
    _refused("ScatterElements", 18, "must be constant", ((2, 3), _index(1, 3), (1, 3))),
    _refused("ScatterND", 18, "must be constant", ((2, 3), _index(1, 1), (1, 3))),
    _refused("ReverseSequence", 10, "must be constant", ((4, 3), _index(3))),
    _refused("CumSum", 14, "depend on data", ((2, 3), _index(high=0))),
    _refused("Trilu", 14, "depend on data", ((3, 3), _index(1))),
    _refused("BatchNormalization", 15, "must be constant", ((2, 3, 4), (3,), constant(3), constant(3), constant(3))),
    _refused("GroupNormalization", 21, "must be constant", ((2, 4, 3), (4,), constant(4)), num_groups=2),
    _refused("Conv", 11, "two spatial axes", ((1, 1, 3, 3, 3), (1, 1, 2, 2, 2))),
    _refused("LSTM", 14, "must be constant", ((2, 1, 3), (1, 8, 3), constant(1, 8, 2)), hidden_size=2, outputs=3),
    _refused("GRU", 14, "must be constant", ((2, 1, 3), (1, 6, 3), constant(1, 6, 2)), hidden_size=2, outputs=2),
    _refused("RNN", 14, "must be constant", ((2, 1, 3), (1, 2, 3), constant(1, 2, 2)), hidden_size=2, outputs=2),
]  # fmt: skip

_MODES = [
    _refused("BatchNormalization", 15, "training", ((2, 3), *[constant(3)] * 4), training_mode=1, outputs=3),
    _refused("Dropout", 13, "random", ((2, 3), np.array(0.5, np.float32), np.array(True))),
    _refused("MaxPool", 12, "storage_order 1", ((1, 2, 4, 4),), kernel_shape=[2, 2], storage_order=1, outputs=2),
    _refused("AveragePool", 19, "beyond", ((1, 2, 6),), kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER"),
    _refused("AveragePool", 19, "no window", ((1, 2, 2),), kernel_shape=[4], strides=[2], dilations=[2], ceil_mode=1),
    _refused("MaxPool", 12, "dilation", ((1, 2, 6, 6),), kernel_shape=[2, 2], dilations=[2, 2], outputs=2),
    _refused("MaxPool", 12, "3 axes", ((1, 2, 4, 4, 4),), kernel_shape=[2, 2, 2], outputs=2),
    replace(
        _refused("MaxUnpool", 11, "come from no MaxPool", ((1, 1, 2, 2), _index(1, 1, 2, 2)), kernel_shape=[2, 2]),
        targets=("bvlc",),
    ),
    _refused("MaxUnpool", 11, "own map", ((1, 2, 2, 2), _index(1, 2, 2, 2)), kernel_shape=[2, 2], strides=[2, 2]),
    _refused("TopK", 11, "order open", ((2, 5), ints(2)), sorted=0, outputs=2, more=DIALECTS),
    _refused("TopK", 11, "post-processing", ((1, 25600), ints(200)), outputs=2),
    _refused("Celu", 12, "alpha = 0", ((2, 3),), alpha=0.0, more=DIALECTS),
    _refused("Shrink", 9, "negative", ((2, 3),), lambd=-0.5),
    *(
        _refused(
            op,
            14,
            "steps",
            ((300, 1, 3), constant(1, n, 3), constant(1, n, 2)),
            outputs,
            more=DIALECTS,
            hidden_size=2,
            **more,
        )
        for op, n, outputs, more in (("LSTM", 8, 3, {"clip": 1.0}), ("GRU", 6, 2, {}))
    ),
    _refused("ReduceProd", 18, "factors", ((2, 1100), ints(1))),
    _refused("FusedMatMul", 17, "transposed batches", ((2, 3, 4), (2, 4, 5)), domain="com.microsoft", transBatchA=1),
]  # fmt: skip

_INTEGERS = [
    _refused("Pow", 15, "rounds", (In((2, 3), "int64"), np.array(-1))),
    *(_refused(op, 18, "rounds", (In((2, 3), "int64"), ints(1))) for op in ("ReduceMean", "ReduceL2", "ReduceLogSum")),
    *(
        _refused(op, 18, "table", (In((2, 3), "int64"), np.array(3)))
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
    ),
    _refused("BitShift", 11, "must be constant", (In((2, 3), "uint8"), In((2, 3), "uint8")), direction="LEFT"),
]

_NEVER = [
    *(_refused(op, 22, "no Caffe layer", ((2, 3),)) for op in ("Cos", "Tan", "Asin", "Acos", "Atan")),
    _refused("Det", 22, "no Caffe layer", ((2, 2),)),
    _refused("DeformConv", 19, "no Caffe layer", ((1, 1, 3, 3), constant(1, 1, 2, 2), (1, 8, 2, 2))),
    _refused("MaxRoiPool", 11, "ROIPooling", ((1, 1, 4, 4), In((1, 5), low=0, high=0.9)), pooled_shape=[2, 2]),
    _refused("NegativeLogLikelihoodLoss", 13, "must be constant", ((3, 5), _index(3, high=4))),
    _refused("SoftmaxCrossEntropyLoss", 13, "must be constant", ((3, 5), _index(3, high=4))),
    _refused("OneHot", 11, "no whole numbers", ((2,), np.array(4.0, np.float32), np.array([0, 1], np.float32))),
    *(
        _refused(op, 22, "random", (), shape=[2, 3], dtype=TensorProto.FLOAT)
        for op in ("RandomNormal", "RandomUniform")
    ),
    *(_refused(op, 22, "random", ((2, 3),)) for op in ("RandomNormalLike", "RandomUniformLike", "Bernoulli")),
]

CASES = [*_COMPUTED, *_MODES, *_INTEGERS, *_NEVER]
