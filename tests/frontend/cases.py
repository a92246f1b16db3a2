"""One row per way an op is written: op, versions, inputs, attributes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["CASES", "Case", "Const"]


@dataclass(frozen=True)
class Const:
    """An input that is an initializer."""

    array: np.ndarray


@dataclass(frozen=True)
class Case:
    op: str
    versions: tuple[int, ...]
    inputs: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    expect: tuple[str, ...] | None = None
    """The op types of the canonical model, where that is the point."""

    @property
    def id(self) -> str:
        shapes = "x".join("-".join(map(str, np.shape(getattr(i, "array", i)))) for i in self.inputs if i is not None)
        return f"{self.op}-{shapes}-{zlib.crc32(repr(self.attributes).encode()) % 1000}"


def f(*shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(repr((shape, low, high)).encode()))
    return rng.uniform(low, high, shape).astype(np.float32)


def i64(*values: int) -> Const:
    return Const(np.asarray(values, np.int64))


def scalar(value: float, dtype: type = np.float32) -> Const:
    return Const(np.asarray(value, dtype))


def w(*shape: int, low: float = -1.0, high: float = 1.0) -> Const:
    return Const(f(*shape, low=low, high=high))


def mask(*shape: int) -> np.ndarray:
    return f(*shape) > 0


def ints(*shape: int, low: int = -5, high: int = 6, dtype: type = np.int64) -> np.ndarray:
    return np.random.default_rng(sum(shape) + 1).integers(low, high, shape).astype(dtype)


TRAINING = "ai.onnx.preview.training"
X = f(2, 3, 5, 6)
TONES = f(2, 4, 3, 2, low=-0.3, high=0.3)
"""Small: onnxruntime's Fourier transform is less exact than the others."""
POSITIVE = f(2, 3, 5, low=0.2, high=4.0)
UNIT = f(2, 3, 4, low=-0.9, high=0.9)


def unary() -> list[Case]:
    rows = []
    for op in ("Sin", "Cos", "Tan", "Atan"):
        rows.append(Case(op, (7, 22), (UNIT,)))
    for op in ("Acos", "Asin"):
        rows.append(Case(op, (7, 22), (UNIT,)))
    for op in ("Asinh", "Cosh", "Sinh", "Atanh"):
        rows.append(Case(op, (9, 22), (UNIT,)))
    rows.append(Case("Acosh", (9, 22), (POSITIVE + 1,)))
    for op in ("Abs", "Ceil", "Exp", "Floor", "Neg", "Reciprocal"):
        rows.append(Case(op, (6, 13), (f(2, 3, 4),)))
    for op in ("Log", "Sqrt"):
        rows.append(Case(op, (6, 13), (POSITIVE,)))
    rows += [
        Case("Erf", (9, 13), (UNIT,)),
        Case("Sign", (9, 13), (f(2, 3),)),
        Case("Round", (11, 22), (f(2, 3, 4),)),
        Case("IsNaN", (9, 13, 20), (np.asarray([1, np.nan, -2], np.float32),)),
        Case("IsInf", (10, 20), (np.asarray([1, np.inf, -np.inf], np.float32),), {"detect_negative": 0}),
        Case("Not", (1,), (mask(2, 3),)),
        Case("Det", (11, 22), (f(2, 3, 3),)),
        Case("BitwiseNot", (18,), (ints(2, 3),)),
    ]
    return rows


def binary() -> list[Case]:
    rows = []
    for op in ("Add", "Sub", "Mul", "Div"):
        rows += [Case(op, (7, 13, 14), (f(2, 3, 4), f(3, 1))), Case(op, (7, 13, 14), (w(4), f(2, 3, 4)))]
    for op in ("And", "Or", "Xor"):
        rows.append(Case(op, (7,), (mask(2, 3), mask(3))))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        rows.append(Case(op, (18,), (ints(2, 3), ints(3))))
    for op, versions in {
        "Greater": (7, 9, 13), "Less": (7, 9, 13), "GreaterOrEqual": (12, 16), "LessOrEqual": (12, 16)
    }.items():  # fmt: skip
        rows.append(Case(op, versions, (f(2, 3), f(2, 1))))
    rows += [
        Case("Equal", (7, 11, 13, 19), (ints(2, 3), ints(3))),
        Case("Pow", (7, 12, 13, 15), (POSITIVE, scalar(2.5))),
        Case("BitShift", (11, 28), (ints(2, 3, low=0, dtype=np.uint8), ints(3, low=0, high=3, dtype=np.uint8)),
             {"direction": "LEFT"}),
        Case("Where", (9, 16), (mask(2, 3), f(2, 3), f(3))),
        Case("Mod", (10, 13, 28), (ints(2, 3), Const(np.asarray([2, -3, 4])))),
        Case("Mod", (10, 13, 28), (f(2, 3), w(3, low=1)), {"fmod": 1}),
        Case("Mod", (28,), (f(2, 3), w(3, low=1))),
    ]  # fmt: skip
    for op, versions in {
        "Max": (6, 8, 12, 13), "Min": (6, 8, 12, 13), "Sum": (6, 8, 13), "Mean": (6, 8, 13)
    }.items():  # fmt: skip
        rows += [Case(op, versions, (f(2, 3), f(2, 3), Const(f(2, 3)))), Case(op, versions, (f(2, 3),), expect=())]
    return rows


def activations() -> list[Case]:
    x = f(2, 3, 4)
    rows = [
        Case("Relu", (6, 13, 14), (x,)),
        Case("Sigmoid", (6, 13), (x,)),
        Case("Tanh", (6, 13), (x,)),
        Case("LeakyRelu", (6, 16), (x,)),
        Case("LeakyRelu", (6, 16), (x,), {"alpha": 0.3}),
        Case("Elu", (6, 22), (x,)),
        Case("Elu", (6, 22), (x,), {"alpha": 0.5}),
        Case("HardSigmoid", (6, 22), (x,)),
        Case("HardSigmoid", (6, 22), (x,), {"alpha": 0.1667, "beta": 0.4}),
        Case("Selu", (6, 22), (x,)),
        Case("Softplus", (1, 22), (x,)),
        Case("Softsign", (1, 22), (x,)),
        Case("ThresholdedRelu", (10, 22), (x,)),
        Case("HardSwish", (14, 22), (x,)),
        Case("Mish", (18, 22), (x,)),
        Case("Gelu", (20,), (x,)),
        Case("Gelu", (20,), (x,), {"approximate": "tanh"}),
        Case("Celu", (12, 28), (x,), {"alpha": 0.7}),
        Case("Shrink", (9,), (x,), {"lambd": 1.0, "bias": 0.5}),
        Case("PRelu", (7, 9, 16), (x, w(3, 1))),
        Case("Swish", (24,), (x,), expect=("Sigmoid", "Mul")),
        Case("Swish", (24,), (x,), {"alpha": 1.5}),
        Case("SwiGLU", (28,), (f(2, 8), f(2, 8, low=-2))),
    ]
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        rows += [
            Case(op, (1, 11, 13), (f(2, 3, 4),)),
            Case(op, (1, 11, 13), (f(2, 3, 4),), {"axis": 1}),
            Case(op, (1, 11), (f(2, 3, 1, 1),), {"axis": 1}, expect=(op,)),
            Case(op, (11, 13), (f(2, 3, 4),), {"axis": -2}),
            Case(op, (1, 11, 13), (f(2, 3, 4),), {"axis": 0}),
        ]
    return rows


def clips_and_casts() -> list[Case]:
    x = f(2, 3, 4)
    return [
        Case("Clip", (6,), (x,), {"min": -1.0, "max": 2.0}),
        Case("Clip", (6,), (x,), {"max": 0.5}),
        Case("Clip", (6,), (x,), expect=()),
        Case("Clip", (11, 12, 13), (x, scalar(-1), scalar(1.5))),
        Case("Clip", (11, 12, 13), (x, None, scalar(1.5))),
        Case("Clip", (11, 12, 13), (x, scalar(0))),
        Case("Clip", (11, 12, 13), (x, np.float32(-1), np.float32(1)), expect=("Max", "Min")),
        Case("Clip", (12, 13), (ints(2, 3), scalar(-2, np.int64), scalar(3, np.int64))),
        Case("Cast", (6, 9, 13, 19, 21, 23, 24, 25, 28), (x,), {"to": 7}),
        Case("Cast", (9,), (ints(2, 3),), {"to": 1}),
        Case("Cast", (9, 13), (x,), {"to": 1}, expect=()),
        Case("Cast", (13,), (x,), {"to": 9}),
        Case("CastLike", (15, 19, 21, 23, 24, 25), (x, Const(np.zeros(1, np.int32)))),
        Case("Identity", (1, 13, 14, 16, 19, 21, 23, 24, 25), (x,), expect=()),
        Case("Dropout", (7, 10), (x,), {"ratio": 0.3}, expect=()),
        Case("Dropout", (12, 13, 22), (x, scalar(0.3)), expect=()),
        Case("Dropout", (12, 13, 22), (x,), outputs=2),
    ]


def layout() -> list[Case]:
    newer = (13, 21, 23, 24, 25)
    x = f(2, 3, 4)
    return [
        Case("Reshape", (5, 13, 14, 19, 21, 23, 24, 25), (x, i64(0, -1))),
        Case("Reshape", (5, 14), (x, i64(2, 3, 4)), expect=()),
        Case("Reshape", (14,), (f(0, 3), i64(3, 0)), {"allowzero": 1}),
        Case("Flatten", (1, 9, 11, *newer), (x,)),
        Case("Flatten", (11, *newer), (x,), {"axis": -1}),
        Case("Flatten", (1, 13), (x,), {"axis": 0}),
        Case("Flatten", (1, 13), (x,), {"axis": 3}),
        Case("Squeeze", (1, 11), (f(2, 1, 3, 1),), {"axes": [1]}),
        Case("Squeeze", (11,), (f(2, 1, 3, 1),), {"axes": [-1]}),
        Case("Squeeze", (1, 11, *newer), (f(2, 1, 3, 1),)),
        Case("Squeeze", newer, (f(2, 1, 3, 1), i64(-1, 1))),
        Case("Unsqueeze", (1, 11), (x,), {"axes": [0, 2]}),
        Case("Unsqueeze", newer, (x, i64(-1, 1))),
        Case("Transpose", (1, *newer), (x,)),
        Case("Transpose", (1, *newer), (x,), {"perm": [0, 2, 1]}),
        Case("Transpose", (1,), (x,), {"perm": [0, 1, 2]}, expect=()),
        Case("Concat", (4, 11, 13), (x, f(2, 5, 4), w(2, 1, 4)), {"axis": 1}),
        Case("Concat", (11, 13), (x, f(2, 3, 2)), {"axis": -1}),
        Case("Concat", (4,), (x,), {"axis": 0}, expect=()),
        Case("Slice", (1,), (x,), {"starts": [1, -3], "ends": [2, 1000], "axes": [1, 2]}),
        Case("Slice", (1,), (x,), {"starts": [0, 1], "ends": [2, -1]}),
        Case("Slice", (10, 11, 13), (x, i64(-1, 0), i64(-1000, 3), i64(2, 1), i64(-2, 2))),
        Case("Slice", (10, 11, 13), (x, i64(0, 1), i64(2, 2))),
        Case("Slice", (10, 13), (x, i64(0), i64(3), i64(1)), expect=()),
        Case("Slice", (13,), (x, i64(5), i64(9), i64(-1))),
        Case("Split", (2, 11), (f(2, 6),), {"axis": 1, "split": [1, 5]}, 2),
        Case("Split", (2, 11, 13), (f(2, 6),), {"axis": 1}, 3),
        Case("Split", (13, 18), (f(2, 6), i64(4, 2)), {"axis": -1}, 2),
        Case("Split", (18,), (f(2, 7),), {"axis": 1, "num_outputs": 3}, 3),
        Case("Split", (11,), (f(2, 6),), {"axis": 0}, 1, expect=()),
        Case("Tile", (6, 13), (x, i64(1, 2, 3))),
        Case("Tile", (6,), (x, i64(1, 1, 1)), expect=()),
        Case("Expand", (8, 13), (f(3, 1), i64(2, 1, 4))),
        Case("Expand", (8,), (x, i64(1, 1, 1)), expect=()),
        Case("Pad", (2,), (x,), {"pads": [0, 1, 2, 0, 0, 1], "value": 1.5}),
        Case("Pad", (2,), (x,), {"pads": [0, 1, 2, 0, 1, 1], "mode": "edge"}),
        Case("Pad", (11, 13, 18, 19, 21, 23, 24, 25), (x, i64(0, 1, 2, 0, 0, 1), scalar(0.5))),
        Case("Pad", (11, 13, 18, 19, 21, 23, 24, 25), (x, i64(0, 1, 2, 0, 0, 1)), {"mode": "reflect"}),
        Case("Pad", (18, 19), (x, i64(1, 2), None, i64(-1)), {"mode": "constant"}),
        Case("Pad", (13,), (x, i64(0, -1, 2, 0, -1, 1))),
        Case("Pad", (19, 21), (x, i64(0, 1, 2, 0, 0, 1)), {"mode": "wrap"}),
        Case("Pad", (11,), (x, i64(0, 0, 0, 0, 0, 0)), expect=()),
        Case("CenterCropPad", (18,), (f(4, 5, 6), i64(6, 4, 3))),
        Case("CenterCropPad", (18,), (f(4, 5, 6), i64(7, 3)), {"axes": [1, -1]}),
        Case("DepthToSpace", (1, 11, 13, 28), (f(2, 12, 2, 3),), {"blocksize": 2}),
        Case("DepthToSpace", (11, 13, 28), (f(2, 12, 2, 3),), {"blocksize": 2, "mode": "CRD"}),
        Case("SpaceToDepth", (1, 13, 28), (f(2, 3, 4, 6),), {"blocksize": 2}),
        Case("SpaceToDepth", (28,), (f(2, 3, 4, 6),), {"blocksize": 2, "mode": "CRD"}),
    ]


def windows() -> list[Case]:
    rows = [
        Case("Conv", (1, 11, 22), (X, w(4, 3, 3, 2))),
        Case("Conv", (1, 11, 22), (X, w(4, 3, 3, 2), w(4)), {"strides": [2, 1], "pads": [1, 0, 2, 1]}),
        Case("Conv", (1, 11, 22), (X, w(6, 1, 3, 3)), {"group": 3, "dilations": [2, 1], "kernel_shape": [3, 3]}),
        Case("Conv", (1,), (f(1, 3, 9), w(2, 3, 3)), {"auto_pad": "SAME_LOWER", "strides": [2]}),
        Case("Conv", (11,), (f(1, 2, 4, 5, 6), w(2, 2, 3, 3, 3)), {"auto_pad": "SAME_UPPER", "strides": [2, 1, 3]}),
        Case("Conv", (11,), (X, w(4, 3, 3, 2)), {"auto_pad": "VALID", "strides": [2, 2]}),
        Case("ConvTranspose", (1, 11, 22), (X, w(3, 4, 3, 2))),
        Case("ConvTranspose", (1, 11, 22), (X, w(3, 2, 3, 3), w(2)),
             {"strides": [2, 3], "pads": [1, 0, 1, 2], "output_padding": [1, 0], "dilations": [1, 2]}),
    ]  # fmt: skip
    for auto_pad in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
        for size in ([10, 13], [9, 12], [11, 14]):
            rows.append(
                Case(
                    "ConvTranspose",
                    (1, 11),
                    (X, w(3, 2, 4, 3)),
                    {"strides": [2, 2], "output_shape": size, "auto_pad": auto_pad},
                )
            )
    for auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        rows.append(Case("ConvTranspose", (11,), (X, w(3, 2, 3, 3)), {"strides": [2, 2], "auto_pad": auto_pad}))
        rows.append(
            Case("ConvTranspose", (11,), (X, w(3, 2, 4, 3)), {"strides": [2, 3], "auto_pad": auto_pad, "group": 1})
        )
        rows.append(Case("ConvTranspose", (1, 11), (X, w(3, 2, 2, 3)), {"strides": [3, 3], "auto_pad": auto_pad}))
    pools = {"MaxPool": (1, 8, 10, 11, 12, 22), "AveragePool": (7, 10, 11, 19, 22), "LpPool": (2, 11, 18, 22)}
    ceil = {"MaxPool": (10, 11, 12, 22), "AveragePool": (10, 11, 19, 22), "LpPool": ()}
    dilated = {"MaxPool": (10, 11, 12, 22), "AveragePool": (19, 22), "LpPool": ()}
    for op, versions in pools.items():
        rows.append(Case(op, versions, (X,), {"kernel_shape": [3, 2]}))
        rows.append(Case(op, versions, (X,), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 1]}))
        rows.append(Case(op, versions, (f(1, 2, 9),), {"kernel_shape": [3], "strides": [2]}))
        for auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            rows.append(Case(op, versions, (X,), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": auto_pad}))
            if ceil[op]:
                rows.append(
                    Case(
                        op,
                        ceil[op],
                        (X,),
                        {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": auto_pad, "ceil_mode": 1},
                    )
                )
        if ceil[op]:
            rows.append(Case(op, ceil[op], (X,), {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}))
        if dilated[op]:
            rows.append(Case(op, dilated[op], (X,), {"kernel_shape": [2, 2], "dilations": [2, 3]}))
    rows += [
        Case("AveragePool", (7, 10, 11, 19, 22), (X,),
             {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        Case("AveragePool", (7, 10, 11, 19, 22), (f(1, 2, 1),),
             {"kernel_shape": [3], "strides": [3], "pads": [0, 1], "count_include_pad": 1}),
        Case("AveragePool", (10, 19), (X,),
             {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1, "ceil_mode": 1}),
        Case("LpPool", (2, 11, 18), (X,), {"kernel_shape": [2, 2], "p": 3}),
        Case("MaxPool", (8, 12), (X,), {"kernel_shape": [2, 2], "strides": [2, 2]}, 2),
        Case("GlobalAveragePool", (1, 22), (X,)),
        Case("GlobalMaxPool", (1, 22), (X,)),
        Case("GlobalLpPool", (2, 22), (X,)),
        Case("GlobalLpPool", (2, 22), (X,), {"p": 3}),
        Case("MaxRoiPool", (1, 22), (X, Const(np.asarray([[0, 0, 0, 4, 4], [1, 1, 1, 5, 3]], np.float32))),
             {"pooled_shape": [2, 2]}),
        Case("RoiAlign", (10, 16, 22),
             (X, Const(np.asarray([[0, 0, 4, 4], [1, 1, 5, 3]], np.float32)), i64(0, 1)),
             {"output_height": 2, "output_width": 3, "sampling_ratio": 2}),
        Case("MaxUnpool", (9, 11, 22), (f(1, 1, 2, 2), Const(np.asarray([[[[0, 3], [8, 15]]]]))),
             {"kernel_shape": [2, 2], "strides": [2, 2]}),
        Case("GridSample", (16,), (X, f(2, 3, 4, 2, low=-1.2, high=1.2)), {"mode": "bilinear"}),
        Case("GridSample", (16,), (X, f(2, 3, 4, 2, low=-1.2, high=1.2)), {"mode": "bicubic", "align_corners": 1}),
        Case("GridSample", (16, 20, 22), (X, f(2, 3, 4, 2, low=-1.2, high=1.2)), {"padding_mode": "border"}),
        Case("GridSample", (20, 22), (X, f(2, 3, 4, 2, low=-1.2, high=1.2)), {"mode": "cubic"}),
        Case("DeformConv", (19, 22), (X, w(2, 3, 2, 2), f(2, 8, 4, 5, low=-1, high=1))),
        Case("Col2Im", (18,), (f(1, 10, 8), i64(4, 5), i64(1, 5)), {"pads": [0, 1, 0, 1], "strides": [1, 2]}),
    ]  # fmt: skip
    return rows


def resizes() -> list[Case]:
    x = f(1, 2, 4, 6)
    up, down, mixed = ([1, 1, 2, 3], [1, 1, 0.5, 0.5], [1, 1, 1.5, 0.7])
    rows = []
    for mode in ("nearest", "linear"):
        rows.append(Case("Upsample", (7,), (x,), {"mode": mode, "scales": [1.0, 1.0, 2.0, 3.0]}))
        rows.append(Case("Upsample", (7,), (x,), {"mode": mode, "scales": [1.0, 1.0, 1.5, 1.3]}))
        for scales in (up, down, mixed):
            s = Const(np.asarray(scales, np.float32))
            rows.append(Case("Resize", (10,), (x, s), {"mode": mode}))
            if min(scales) >= 1:
                rows.append(Case("Upsample", (9,), (x, s), {"mode": mode}))
    empty = Const(np.zeros(0, np.float32))
    for transformation in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for mode in ("nearest", "linear", "cubic"):
            attributes = {"mode": mode, "coordinate_transformation_mode": transformation}
            scales = Const(np.asarray(mixed, np.float32))
            rows.append(Case("Resize", (11, 13, 18, 19), (x, empty, scales), attributes))
            rows.append(Case("Resize", (11, 13, 18, 19), (x, empty, empty, i64(1, 2, 7, 3)), attributes))
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        attributes = {"nearest_mode": rounding, "coordinate_transformation_mode": "half_pixel"}
        rows.append(Case("Resize", (11, 19), (x, empty, Const(np.asarray(mixed, np.float32))), attributes))
    rows += [
        Case("Resize", (11, 13, 18, 19),
             (x, Const(np.asarray([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1], np.float32)), empty, i64(1, 2, 5, 5)),
             {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}),
        *(
            Case("Resize", (13, 19), (f(1, 2, 3, 6), None, Const(np.asarray([1, 1, 5 / 3, 7 / 6], np.float32))),
                 {"mode": mode})
            for mode in ("nearest", "linear")
        ),
        Case("Resize", (18, 19), (f(2, 2, 4, 6), None, None, i64(1, 7)),
             {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}),
        Case("Resize", (18, 19), (x, None, None, i64(8, 9)), {"axes": [2, 3], "mode": "linear"}),
        Case("Resize", (18, 19), (x, None, Const(np.asarray([2, 1.5], np.float32))), {"axes": [-1, 2]}),
        Case("Resize", (18, 19), (x, None, None, i64(9, 9)),
             {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}),
        Case("Resize", (18, 19), (x, None, None, i64(9, 9)),
             {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}),
        Case("Resize", (18, 19), (x, None, None, i64(9, 9)),
             {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller", "mode": "linear",
              "coordinate_transformation_mode": "asymmetric"}),
        Case("Resize", (18, 19), (x, None, Const(np.asarray([1, 1, 0.5, 0.4], np.float32))),
             {"antialias": 1, "mode": "linear"}),
        Case("Resize", (19,), (x, None, None, i64(1, 2, 7, 9)),
             {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"}),
        Case("Resize", (11,), (x, empty, Const(np.ones(4, np.float32))), expect=()),
        Case("Resize", (13,), (x, None, Const(np.asarray(mixed, np.float32))),
             {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}),
    ]  # fmt: skip
    return rows


def products() -> list[Case]:
    return [
        Case("MatMul", (1, 9, 13), (f(2, 3, 4), w(4, 5))),
        Case("MatMul", (9,), (w(3, 4), f(2, 4, 5))),
        Case("MatMul", (13,), (f(2, 3, 4), f(2, 4, 5))),
        Case("MatMul", (13,), (f(4), f(4))),
        Case("Gemm", (7, 9, 11, 13), (f(3, 4), w(4, 5), w(5))),
        Case(
            "Gemm", (7, 9, 11, 13), (f(4, 3), w(5, 4), w(3, 1)), {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}
        ),
        Case("Gemm", (11, 13), (f(3, 4), w(4, 5))),
        Case("Einsum", (12, 28), (f(2, 3, 4), w(4, 5)), {"equation": "b i j, j k -> b i k"}),
        Case("MatMulInteger", (10,), (ints(2, 3, dtype=np.uint8, low=0), Const(ints(3, 4, dtype=np.uint8, low=0)))),
        Case("Attention", (23, 24, 25), (f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4))),
        Case("RotaryEmbedding", (23,), (f(1, 2, 3, 4), w(1, 3, 2), w(1, 3, 2))),
        Case(
            "LinearAttention",
            (27,),
            (UNIT, UNIT[:, ::-1].copy(), f(2, 3, 4), None, None, f(2, 3, 2, low=0.1, high=0.9)),
            {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "delta"},
            outputs=2,
        ),
        Case("CausalConvWithState", (27,), (f(2, 3, 6), w(3, 1, 4))),
        Case("NegativeLogLikelihoodLoss", (12, 13, 22), (f(3, 5), ints(3, low=0, high=5))),
        Case("SoftmaxCrossEntropyLoss", (12, 13), (f(3, 5), ints(3, low=0, high=5))),
        Case("DFT", (17,), (TONES, scalar(5, np.int64)), {"axis": 2}),
        Case("DFT", (20,), (TONES[..., :1],), {"onesided": 1}),
        Case("DFT", (20,), (TONES, None, scalar(-3, np.int64)), {"inverse": 1}),
        Case("STFT", (17,), (f(2, 20, 1, low=-0.3, high=0.3), scalar(3, np.int64), w(8))),
        Case(
            "STFT",
            (17,),
            (f(1, 12, 1, low=-0.3, high=0.3), scalar(3, np.int64), None, scalar(5, np.int64)),
            {"onesided": 0},
        ),
        Case("AffineGrid", (20,), (f(2, 2, 3), i64(2, 3, 4, 5))),
        Case("AffineGrid", (20,), (f(2, 3, 4), i64(2, 3, 4, 5, 6)), {"align_corners": 1}),
    ]


def norms() -> list[Case]:
    c = 3
    stats = (w(c), w(c), w(c), w(c, low=0.5, high=2.0))
    element = (w(3, 5, 6), w(3, 5, 6, low=-2), w(3, 5, 6, high=2), w(3, 5, 6, low=0.5, high=2.0))
    return [
        Case("BatchNormalization", (7, 9, 14, 15), (X, *stats)),
        Case("BatchNormalization", (7, 9, 14, 15), (X, *stats), {"epsilon": 0.1, "momentum": 0.5}),
        Case("BatchNormalization", (7,), (X, *element), {"spatial": 0}),
        Case("InstanceNormalization", (6, 22), (X, w(c), w(c))),
        Case("LRN", (1, 13), (X,), {"size": 3, "alpha": 0.1}),
        Case("LayerNormalization", (17,), (X, w(6), w(6))),
        Case("LayerNormalization", (17,), (X, w(5, 6)), {"axis": -2}),
        Case("RMSNormalization", (23,), (X, w(6))),
        Case("GroupNormalization", (21,), (f(2, 6, 4), w(6), w(6)), {"num_groups": 3}),
        Case("GroupNormalization", (18,), (f(2, 6, 4), w(3), w(3)), {"num_groups": 3}),
        Case("LpNormalization", (1, 22), (X,), {"axis": 1, "p": 1}),
        Case("LpNormalization", (1, 22), (X,)),
        Case("MeanVarianceNormalization", (9, 13), (X,)),
        Case("MeanVarianceNormalization", (9, 13), (X,), {"axes": [2, -1]}),
    ]


def reductions() -> list[Case]:
    history = {
        "ReduceL1": (1, 11, 13, 18), "ReduceL2": (1, 11, 13, 18), "ReduceMean": (1, 11, 13, 18),
        "ReduceProd": (1, 11, 13, 18), "ReduceSumSquare": (1, 11, 13, 18), "ReduceSum": (1, 11, 13),
        "ReduceMax": (1, 11, 12, 13, 18, 20), "ReduceMin": (1, 11, 12, 13, 18, 20),
        "ReduceLogSum": (1, 11, 13, 18, 28), "ReduceLogSumExp": (1, 11, 13, 18, 28),
    }  # fmt: skip
    rows = []
    for op, versions in history.items():
        first = 13 if op == "ReduceSum" else 18
        old, new = tuple(v for v in versions if v < first), tuple(v for v in versions if v >= first)
        x = f(2, 3, 4, low=0.3, high=2.0)
        rows += [
            Case(op, versions, (x,)),
            Case(op, old, (x,), {"axes": [1], "keepdims": 0}),
            Case(op, old[-1:], (x,), {"axes": [-1, 0]}),
            Case(op, new, (x, i64(-1, 0)), {"keepdims": 0}),
            Case(op, new, (x, None), {"noop_with_empty_axes": 1}),
            Case(op, new, (x, i64()), {"keepdims": 0}),
        ]
    for op in ("ArgMax", "ArgMin"):
        rows += [
            Case(op, (1, 11, 12, 13), (f(2, 3, 4),)),
            Case(op, (11, 12, 13), (f(2, 3, 4),), {"axis": -1, "keepdims": 0}),
            Case(op, (12, 13), (ints(2, 9, dtype=np.int32),), {"axis": 1, "select_last_index": 1}),
        ]
    rows += [
        Case("TopK", (1,), (f(2, 5),), {"k": 3}, 2),
        Case("TopK", (10, 11, 24), (f(2, 5), i64(3)), {}, 2),
        Case("TopK", (11, 24), (f(5, 2), i64(2)), {"axis": 0, "largest": 0}, 2),
        Case("CumSum", (11, 14), (f(2, 5), scalar(-1, np.int64)), {"exclusive": 1, "reverse": 1}),
    ]
    return rows


def indices() -> list[Case]:
    x = f(3, 4, 5)
    return [
        Case("Gather", (1, 11, 13), (x, i64(2, 0, 1))),
        Case("Gather", (11, 13), (x, Const(np.asarray([[-1, 0], [2, -2]]))), {"axis": -1}),
        Case("Gather", (1,), (x, scalar(1, np.int64)), {"axis": 1}),
        Case("Gather", (13,), (w(7, 2), ints(2, 3, low=0))),
        Case("GatherElements", (11, 13), (x, Const(np.asarray([[[-1, 0, 1]]]))), {"axis": 2}),
        Case("GatherND", (11, 12, 13), (x, Const(np.asarray([[0, 1], [-1, -2]])))),
        Case("GatherND", (12, 13), (x, Const(np.asarray([[1], [-2], [0]]))), {"batch_dims": 1}),
        Case("Scatter", (9,), (x, Const(np.asarray([[[1, 0]]])), f(1, 1, 2)), {"axis": 2}),
        Case("ScatterElements", (11, 13, 16, 18), (x, Const(np.asarray([[[-1, 0]]])), f(1, 1, 2)), {"axis": -1}),
        Case(
            "ScatterElements", (16, 18), (x, Const(np.asarray([[[1, 1]]])), f(1, 1, 2)), {"axis": 2, "reduction": "add"}
        ),
        Case("ScatterElements", (18,), (x, Const(np.asarray([[[1, 1]]])), f(1, 1, 2)), {"reduction": "max"}),
        Case("ScatterND", (11, 13, 16, 18), (x, Const(np.asarray([[0, 1], [-1, 2]])), f(2, 5))),
        Case("ScatterND", (16, 18), (x, Const(np.asarray([[0], [0]])), f(2, 4, 5)), {"reduction": "mul"}),
        Case("Compress", (9, 11, 28), (x, Const(np.asarray([True, False, True]))), {"axis": 0}, expect=("Gather",)),
        Case("Compress", (9, 11), (x, Const(np.arange(60) % 3 == 0))),
        Case("OneHot", (9, 11, 28), (ints(2, 3), scalar(4, np.int64), Const(np.asarray([-1, 2], np.float32)))),
        Case("OneHot", (11,), (ints(2, 3), i64(4), Const(np.asarray([0, 1], np.float32))), {"axis": 0}),
        Case("Trilu", (14,), (f(2, 4, 5), scalar(1, np.int64))),
        Case("Trilu", (14,), (f(2, 4, 5),), {"upper": 0}),
        Case("ReverseSequence", (10, 28), (f(4, 3), i64(2, 4, 1)), {"time_axis": 0, "batch_axis": 1}),
        Case("NonZero", (9, 13), (Const(np.asarray([[1, 0], [0, 2]], np.float32)),)),
        Case("Unique", (11, 28), (Const(np.asarray([2, 1, 1, 3], np.float32)),), {}, 1),
        Case("NonMaxSuppression", (10, 11), (w(1, 3, 4, low=0), w(1, 1, 3, low=0), i64(2))),
    ]


def generators() -> list[Case]:
    rows = [
        Case("ConstantOfShape", (9, 20, 21, 23, 24, 25), (i64(2, 3),)),
        Case("Shape", (1, 13, 15, 19, 21, 23, 24, 25), (f(2, 3, 4),), expect=()),
        Case("Shape", (15,), (f(2, 3, 4),), {"start": -2, "end": 3}, expect=()),
        Case("Size", (1, 13, 19, 21, 23, 24, 25), (f(2, 3, 4),), expect=()),
        Case("Range", (11, 27), (scalar(1, np.int64), scalar(9, np.int64), scalar(3, np.int64)), expect=()),
        Case("Range", (11, 27), (scalar(1.5), scalar(-9), scalar(-3.3)), expect=()),
        Case("EyeLike", (9, 22), (f(3, 4),), {"k": 1, "dtype": 6}, expect=()),
        Case("EyeLike", (9, 22), (f(3, 4),), expect=()),
        Case("BlackmanWindow", (17,), (scalar(7, np.int64),), expect=()),
        Case("HammingWindow", (17,), (scalar(7, np.int64),), expect=()),
        Case("HannWindow", (17,), (scalar(7, np.int64),), {"periodic": 0}, expect=()),
        Case("MelWeightMatrix", (17,),
             (scalar(4, np.int64), scalar(16, np.int64), scalar(8000, np.int64), scalar(0), scalar(4000)), expect=()),
    ]  # fmt: skip
    values: dict[str, tuple[Any, tuple[int, ...]]] = {
        "value_float": (1.5, (12, 13)),
        "value_floats": ([1.5, 2.0], (12, 13)),
        "value_int": (3, (12, 13)),
        "value_ints": ([3, 4], (12, 13, 19, 21, 23, 24, 25)),
    }
    for name, (value, versions) in values.items():
        rows.append(Case("Constant", versions, (), {name: value}, expect=()))
    rows.append(Case("Constant", (1, 9, 11), (), {"value": np.arange(6, dtype=np.float32).reshape(2, 3)}, expect=()))
    return rows


def recurrent() -> list[Case]:
    rows = []
    for op, gates in {"RNN": 1, "GRU": 3, "LSTM": 4}.items():
        weights = (w(1, gates * 4, 3), w(1, gates * 4, 4), w(1, gates * 8, low=-0.5))
        outputs = 3 if op == "LSTM" else 2
        rows.append(Case(op, (7, 14, 22), (f(5, 2, 3), *weights), {"hidden_size": 4}, outputs))
        both = (w(2, gates * 4, 3), w(2, gates * 4, 4))
        rows.append(Case(op, (7, 14), (f(5, 2, 3), *both), {"hidden_size": 4, "direction": "bidirectional"}))
        lengths = Const(np.asarray([5, 5], np.int32))
        rows.append(Case(op, (14,), (f(5, 2, 3), *weights, lengths), {"hidden_size": 4, "direction": "reverse"}))
        rows.append(Case(op, (14, 22), (f(2, 5, 3), *weights), {"hidden_size": 4, "layout": 1}, outputs))
    rows.append(
        Case("GRU", (7, 14, 22), (f(5, 2, 3), w(1, 12, 3), w(1, 12, 4)), {"hidden_size": 4, "linear_before_reset": 1})
    )
    return rows


def quantised() -> list[Case]:
    u8 = np.uint8
    scale, zero = scalar(0.05), scalar(12, u8)
    q = ints(2, 3, 4, low=0, high=200, dtype=u8)
    versions = (10, 13, 19, 21, 23, 24, 25, 28)
    return [
        Case("DequantizeLinear", versions, (q, scale, zero)),
        Case("DequantizeLinear", versions, (Const(q), scale, zero), expect=()),
        Case("DequantizeLinear", (13, 21), (Const(q), w(3, low=0.1), Const(np.asarray([1, 2, 3], u8))), {"axis": 1},
             expect=()),
        Case("DequantizeLinear", (21,), (Const(ints(4, 6, dtype=np.int8)), w(4, 2, low=0.1)),
             {"axis": 1, "block_size": 3}, expect=()),
        Case("QuantizeLinear", versions, (f(2, 3, 4), scale, zero)),
        Case("QuantizeLinear", (13, 21), (f(2, 3, 4), w(3, low=0.1), Const(np.zeros(3, u8)))),
        Case("QLinearMatMul", (10, 21),
             (ints(2, 3, low=0, dtype=u8), scale, zero, Const(ints(3, 4, low=0, dtype=u8)), scale, zero, scalar(0.1),
              scalar(100, u8))),
        Case("QLinearConv", (10,),
             (ints(1, 2, 5, 5, low=0, high=99, dtype=u8), scale, zero, Const(ints(3, 2, 3, 3, dtype=np.int8)),
              scalar(0.02), scalar(0, np.int8), scalar(0.3), scalar(30, u8), Const(ints(3, dtype=np.int32))),
             {"pads": [1, 1, 1, 1]}),
        Case("ConvInteger", (10,),
             (ints(1, 2, 5, 5, low=0, dtype=u8), Const(ints(3, 2, 3, 3, low=0, dtype=u8)), scalar(3, u8)),
             {"strides": [2, 2]}),
        Case("MatMulInteger", (10,),
             (ints(3, 4, low=0, dtype=u8), Const(ints(4, 2, low=0, dtype=u8)), zero, Const(np.asarray([5, 0], u8)))),
        Case("DynamicQuantizeLinear", (11,), (f(3, 4),), {}, 3),
    ]  # fmt: skip


def microsoft() -> list[Case]:
    ms = {"domain": "com.microsoft"}
    x = f(2, 3, 4)
    grid = (scalar(0.3), scalar(40, np.uint8))
    numbers = (ints(1, 2, 4, 4, low=0, high=200, dtype=np.uint8), scalar(0.05), scalar(90, np.uint8))
    return [
        Case("FusedConv", (1,), (X, w(3, 3, 3, 3), w(3)), {"activation": "Relu", "pads": [1, 1, 1, 1]}, **ms),
        Case("FusedConv", (1,), (X, w(3, 3, 3, 3), None, X),
             {"activation": "LeakyRelu", "activation_params": [0.2], "pads": [1, 1, 1, 1]}, **ms),
        Case("FusedConv", (1,), (X, w(3, 3, 3, 3)), {"activation": "Clip", "activation_params": [0.0, 6.0]}, **ms),
        Case("FusedConv", (1,), (X, w(3, 3, 3, 3)),
             {"activation": "HardSigmoid", "activation_params": [0.1, 0.4]}, **ms),
        Case("FusedGemm", (1,), (f(3, 4), w(4, 5), w(5)), {"activation": "LeakyRelu", "activation_alpha": 0.3}, **ms),
        Case("FusedMatMul", (1,), (x, f(2, 5, 4)), {"transB": 1, "alpha": 0.5}, **ms),
        Case("Gelu", (1,), (x,), **ms),
        Case("BiasGelu", (1,), (x, w(4)), **ms),
        Case("FastGelu", (1,), (x, w(4)), **ms),
        Case("QuickGelu", (1,), (x,), {"alpha": 1.5}, **ms),
        Case("SkipLayerNormalization", (1,), (x, x, w(4), w(4)), **ms),
        Case("QLinearAdd", (1,), (*numbers, *numbers, *grid), **ms),
        Case("QLinearMul", (1,), (*numbers, *numbers, *grid), **ms),
        Case("QLinearSigmoid", (1,), (*numbers, *grid), **ms),
        Case("QuantizeLinear", (1,), (f(2, 3), *grid), **ms),
        Case("DequantizeLinear", (1,), numbers, **ms),
        # On these numbers the fractions that onnxruntime's kernel cuts off, where others round, change nothing.
        Case("QLinearSoftmax", (1,), (*numbers, scalar(0.00371), scalar(3, np.uint8)), {"axis": 2, "opset": 12}, **ms),
        Case("QLinearLeakyRelu", (1,), (*numbers, *grid), {"alpha": 0.3}, **ms),
        Case("QLinearGlobalAveragePool", (1,), (*numbers, *grid), **ms),
        Case("QLinearAveragePool", (1,), (*numbers, scalar(0.317), grid[1]),
             {"kernel_shape": [2, 2], "pads": [1, 0, 1, 0]}, **ms),
        Case("QLinearConcat", (1,), (*grid, *numbers, *numbers), {"axis": 1}, **ms),
        Case("QGemm", (1,),
             (ints(2, 3, low=0, dtype=np.uint8), *numbers[1:], Const(ints(3, 4, low=0, dtype=np.uint8)), *numbers[1:],
              Const(ints(4, dtype=np.int32)), *grid), **ms),
    ]  # fmt: skip


def training() -> list[Case]:
    x, gradient, mean, squares = (f(2, 3), f(2, 3, low=-2.0), f(2, 3, low=-1.0), f(2, 3, low=0.1))
    two = (x, f(4), gradient, f(4, low=-2.0), squares, f(4, low=0.1))
    momentum = {"alpha": 0.9, "beta": 0.5, "norm_coefficient": 0.1}
    decay = {"decay_factor": 0.2, "norm_coefficient": 0.1, "epsilon": 0.01}
    adam = {"alpha": 0.8, "beta": 0.9, "epsilon": 0.01, "norm_coefficient": 0.1, "norm_coefficient_post": 0.25}
    rows = []
    for count in (scalar(0, np.int64), scalar(3, np.int64), np.asarray(3)):
        given = (scalar(0.1), count)
        rows += [
            *(Case("Momentum", (1,), (*given, x, gradient, mean), {**momentum, "mode": mode}, 2, domain=TRAINING)
              for mode in ("standard", "nesterov")),
            Case("Adagrad", (1,), (*given, *two), decay, 4, domain=TRAINING),
            Case("Adam", (1,), (*given, x, gradient, mean, squares), adam, 3, domain=TRAINING),
        ]  # fmt: skip
    return rows


def everything() -> Sequence[Case]:
    families = (unary, binary, activations, clips_and_casts, layout, windows, resizes, products, norms, reductions)
    families += (indices, generators, recurrent, quantised, microsoft, training)
    return [case for family in families for case in family()]


CASES = everything()
