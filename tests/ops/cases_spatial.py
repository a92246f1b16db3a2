"""Convolutions, poolings, padding, resizing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.ops.harness import Case, In, constant, everywhere, ints

Shape = tuple[int, ...]


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def conv(
    x: Shape, m: int, kernel: Shape, *, group: int = 1, bias: bool = True, opset: int = 11, **attributes: Any
) -> Case:
    weights = constant(m, x[1] // group, *kernel, scale=0.5)
    inputs = (x, weights, constant(m, seed=1)) if bias else (x, weights)
    return Case("Conv", opset, inputs, {"group": group, **attributes})


def transposed(x: Shape, m: int, kernel: Shape, *, group: int = 1, **attributes: Any) -> Case:
    weights = constant(x[1], m // group, *kernel, scale=0.5)
    return Case("ConvTranspose", 11, (x, weights, constant(m, seed=1)), {"group": group, **attributes})


def pool(op: str, x: Shape, kernel: int, opset: int = 19, outputs: int = 1, **attributes: Any) -> Case:
    return Case(op, opset, (x,), {"kernel_shape": [kernel] * (len(x) - 2), **attributes}, outputs)


def pad(x: Shape, pads: Shape, mode: str = "constant", value: float | None = None, opset: int = 19) -> Case:
    extra = () if value is None else (np.array(value, np.float32),)
    return Case("Pad", opset, (x, ints(*pads), *extra), {"mode": mode}, id=f"Pad{opset}-{mode}-{x}-{pads}-{value}")


def resize(
    x: Shape, *, scales: tuple[float, ...] = (), sizes: Shape = (), roi: tuple[float, ...] = (), **attributes: Any
) -> Case:
    inputs = (
        x,
        floats(*roi) if roi else None,
        floats(*scales) if scales else None,
        ints(*sizes) if sizes else None,
    )
    name = "-".join(f"{v}" for v in (x, scales or sizes, *attributes.values())).replace(" ", "")
    return Case("Resize", 19, inputs, attributes, id=f"Resize-{name}")


CONVS = [
    conv((2, 4, 7, 8), 6, (3, 3), pads=[1, 1, 1, 1]),
    conv((1, 4, 7, 8), 6, (1, 1), bias=False),
    conv((2, 4, 9, 8), 6, (3, 3), strides=[2, 2], pads=[0, 0, 1, 1]),
    conv((1, 4, 8, 8), 6, (3, 3), strides=[2, 2], pads=[1, 1, 0, 0]),
    conv((1, 4, 8, 8), 6, (2, 2), pads=[1, 1, 0, 0]),
    conv((1, 4, 9, 9), 6, (3, 3), dilations=[2, 3], pads=[0, 3, 4, 3]),
    conv((1, 4, 9, 9), 6, (3, 3), dilations=[2, 2], pads=[0, 0, 1, 0]),
    conv((1, 2, 9, 9), 3, (3, 3), pads=[0, 0, 20, 20]),
    conv((1, 2, 5, 5), 3, (3, 3), pads=[4, 4, 4, 4]),
    conv((1, 2, 5, 5), 3, (7, 7), pads=[2, 2, 2, 2]),
    conv((2, 4, 8, 8), 8, (3, 3), group=4, pads=[1, 1, 1, 1]),
    conv((2, 6, 8, 8), 4, (3, 1), group=2, strides=[1, 2], pads=[1, 0, 1, 0]),
    conv((1, 4, 8, 7), 6, (3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
    conv((1, 4, 8, 7), 6, (4, 4), strides=[2, 2], auto_pad="SAME_LOWER"),
    conv((2, 4, 16), 6, (3,), pads=[1, 1]),
    conv((2, 4, 16), 4, (3,), group=4, dilations=[4], pads=[8, 0]),
    conv((1, 2, 4, 6, 6), 3, (3, 3, 3), pads=[1, 1, 1, 1, 1, 1]),
    conv((2, 2, 4, 6, 6), 3, (3, 2, 3), strides=[1, 2, 1], pads=[1, 0, 1, 0, 1, 1]),
    Case("Conv", 11, ((2, 4, 7, 8), (6, 4, 3, 3)), {"pads": [1, 1, 1, 1]}, id="Conv-computed-weights"),
    Case("Conv", 11, ((2, 4, 7, 8), (6, 2, 3, 2), (6,)), {"group": 2, "pads": [1, 0, 1, 1], "strides": [1, 2]}),
    Case("Conv", 11, ((1, 4, 12, 12), (4, 1, 5, 5)), {"group": 4}, id="Conv-correlation"),
    Case("Conv", 11, ((2, 4, 9), (8, 1, 3)), {"group": 4, "pads": [0, 2]}),
    Case("Conv", 11, ((2, 4, 7, 8), constant(6, 4, 3, 3), (6,)), id="Conv-computed-bias"),
    Case(
        "Conv",
        11,
        ((1, 2, 4, 4, 4), (3, 2, 3, 3, 3)),
        refused=dict.fromkeys(("caffe", "bvlc"), "weights computed in the net"),
    ),
]

TRANSPOSED = [
    transposed((2, 4, 5, 6), 6, (3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
    transposed((1, 4, 5, 6), 6, (3, 3), strides=[2, 2], pads=[0, 0, 1, 1]),
    transposed((1, 4, 5, 6), 6, (4, 4), strides=[2, 2], pads=[1, 1, 1, 1], group=2),
    transposed((1, 4, 5, 6), 4, (2, 2), strides=[2, 2], group=4),
    transposed((1, 4, 5, 6), 6, (3, 3), dilations=[2, 2], pads=[2, 0, 0, 2]),
    transposed((1, 4, 5, 6), 6, (3, 3), dilations=[2, 2], strides=[3, 3], pads=[1, 0, 0, 2], output_padding=[2, 1]),
    transposed((1, 4, 5, 5), 6, (3, 3), strides=[2, 2], output_shape=[10, 10]),
    transposed((1, 4, 5, 5), 6, (3, 3), strides=[2, 2], auto_pad="SAME_UPPER"),
    transposed((1, 4, 5, 5), 6, (2, 3), strides=[3, 3], auto_pad="SAME_LOWER"),
    transposed((1, 4, 5, 4), 4, (2, 1), strides=[2, 3], dilations=[2, 1], output_padding=[1, 2], group=2),
    transposed((2, 3, 5, 4), 4, (1, 1), strides=[4, 4], output_padding=[3, 3]),
    transposed((2, 4, 9), 6, (3,), strides=[2], pads=[1, 0], output_padding=[1]),
    transposed((1, 2, 3, 4, 5), 3, (3, 3, 3), strides=[2, 1, 2], pads=[1, 1, 1, 1, 1, 0], output_padding=[1, 0, 1]),
    Case(
        "ConvTranspose",
        11,
        ((1, 2, 4, 4), (2, 3, 3, 3)),
        refused=dict.fromkeys(("caffe", "bvlc"), "weights .* must be constant"),
    ),
]

_WINDOWS: list[dict[str, Any]] = [
    {},
    {"strides": [2, 2]},
    {"strides": [2, 2], "ceil_mode": 1},
    {"strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"strides": [2, 2], "pads": [0, 0, 1, 1]},
    {"strides": [1, 1], "pads": [1, 0, 0, 1]},
    {"strides": [3, 4], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    {"strides": [4, 5]},
    {"strides": [2, 1], "dilations": [2, 1], "pads": [1, 1, 2, 0]},
]

POOLS = [
    *(
        pool(op, (2, 3, *size), kernel, **window, **counted)
        for op, counted in (
            ("MaxPool", {}),
            ("AveragePool", {"count_include_pad": 0}),
            ("AveragePool", {"count_include_pad": 1}),
        )
        for window in _WINDOWS
        for size, kernel in (((8, 9), 3),)
    ),
    *(pool("MaxPool", (2, 3, *size), 1, strides=[2, 2]) for size in ((4, 5), (7, 8))),
    *(pool("AveragePool", (2, 3, *size), 1, strides=[2, 2]) for size in ((5, 4), (8, 7))),
    pool("MaxPool", (1, 4, 8, 8), 2, opset=9, pads=[0, 0, 1, 1]),
    pool("MaxPool", (1, 4, 8, 8), 3, strides=[2, 2], auto_pad="SAME_UPPER"),
    pool("AveragePool", (1, 4, 7, 8), 3, strides=[2, 2], auto_pad="SAME_LOWER"),
    pool("AveragePool", (1, 4, 7, 7), 7, pads=[0, 0, 1, 1]),
    pool("AveragePool", (1, 4, 1, 1), 3, opset=10, strides=[3, 3], pads=[0, 0, 1, 1], count_include_pad=1),
    pool("AveragePool", (1, 2, 9, 9), 2, pads=[1, 1, 1, 1], strides=[2, 3], dilations=[3, 2], ceil_mode=1),
    pool("MaxPool", (1, 4, 13, 13), 5, pads=[2, 2, 2, 2]),
    pool("MaxPool", (1, 4, 9, 9), 3, dilations=[2, 2], pads=[2, 2, 2, 2]),
    *(pool("MaxPool", (2, 3, 7, 8), 3, outputs=2, **window) for window in _WINDOWS[:6]),
    pool("MaxPool", (2, 3, 9), 2, outputs=2, strides=[2]),
    *(
        pool(op, x, 3, strides=[2] * (len(x) - 2), pads=[1] * 2 * (len(x) - 2))
        for op in ("MaxPool", "AveragePool", "LpPool")
        for x in ((2, 3, 9), (2, 3, 4, 5, 6))
    ),
    pool("LpPool", (2, 3, 7, 8), 3, p=3, strides=[2, 2], pads=[1, 0, 0, 1]),
    pool("LpPool", (2, 3, 7, 8), 2, p=1, ceil_mode=1, strides=[2, 2]),
    *(
        Case(op, 11, (x,))
        for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
        for x in ((2, 4, 6, 10), (2, 3, 7), (1, 2, 3, 4, 5))
    ),
    Case("GlobalLpPool", 11, ((2, 3, 5, 6),), {"p": 3}),
    Case(
        "MaxPool",
        12,
        ((1, 2, 6, 6),),
        {"kernel_shape": [2, 2], "storage_order": 1},
        2,
        refused=dict.fromkeys(("caffe", "bvlc"), "storage_order 1"),
    ),
    Case(
        "RoiAlign",
        16,
        ((1, 2, 8, 8), floats(0, 0, 4, 4).reshape(1, 4), ints(0)),
        refused={**everywhere("regions"), "relay": "half_pixel", "relax": "half_pixel"},
    ),
]

PADS = [
    pad((2, 3, 5, 6), (0, 0, 1, 2, 0, 0, 3, 0)),
    pad((2, 3, 5, 6), (0, 0, -1, 2, 0, 0, 1, -2)),
    pad((2, 3, 5, 6), (1, 2, 0, 0, 0, 1, 0, 0)),
    pad((1, 3, 30, 30), (0, 0, 0, 0, 0, 0, 20, 20)),
    pad((2, 3, 5, 6), (0, 1, 1, 2, 0, 0, 1, 3), value=1.5),
    pad((2, 5), (0, 1, 1, 0), value=-2.0),
    pad((2, 3, 7), (0, 0, 2, 0, 0, 1)),
    pad((1, 2, 3, 4, 5), (0, 0, 1, 0, 2, 0, 0, 0, 1, 0)),
    *(pad((2, 3, 5, 6), (0, 1, 2, 1, 0, 0, 1, 3), mode) for mode in ("edge", "reflect", "wrap")),
    *(pad((2, 3, 5, 6), (0, 0, -1, 2, 0, 0, 2, -1), mode) for mode in ("edge", "reflect", "wrap")),
    *(pad((2, 3, 7), (0, 0, 2, 0, 0, 1), mode) for mode in ("edge", "reflect")),
    pad((1, 2, 40, 6), (0, 0, 35, 0, 0, 0, 0, 0), "reflect"),
    Case("Pad", 9, ((1, 3, 5, 6),), {"pads": [0, 0, 1, 1, 0, 0, 1, 1]}),
]

_MODES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric")
_LINEAR = {"mode": "linear"}

RESIZES = [
    *(
        resize((2, 3, 5, 6), scales=(1, 1, *scales), mode=mode, coordinate_transformation_mode=coordinates)
        for scales, mode, coordinates in itertools.product(
            ((2, 2), (3, 2), (1.5, 0.6), (0.5, 1)), ("nearest", "linear", "cubic"), _MODES
        )
    ),
    *(
        resize(
            (1, 2, 5, 7), scales=(1, 1, 2, 3), mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=c
        )
        for rounding, c in itertools.product(("floor", "ceil", "round_prefer_ceil"), ("asymmetric", "half_pixel"))
    ),
    resize((2, 3, 5, 6), sizes=(2, 3, 9, 11), coordinate_transformation_mode="align_corners", **_LINEAR),
    resize((2, 3, 5, 6), sizes=(2, 3, 7, 4), **_LINEAR),
    resize((2, 3, 8, 6), scales=(1, 1, 0.5, 0.5), **_LINEAR),
    resize((2, 3, 9, 6), scales=(1, 1, 1 / 3, 0.5), **_LINEAR),
    resize((2, 3, 1, 1), sizes=(2, 3, 4, 5), **_LINEAR),
    resize((2, 3, 5, 6), scales=(1, 1, 1, 1), **_LINEAR),
    resize((2, 3, 9, 8), scales=(1, 1, 0.4, 0.5), antialias=1, **_LINEAR),
    resize((2, 3, 9, 8), scales=(1, 1, 0.4, 1.5), antialias=1, mode="cubic"),
    resize((2, 3, 5, 6), scales=(1, 1, 2, 2), mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
    *(
        resize(
            (1, 2, 6, 7),
            sizes=(1, 2, 8, 9),
            roi=(0, 0, 0.1, -0.2, 1, 1, 0.8, 1.3),
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=2.5,
        )
        for mode in ("nearest", "linear", "cubic")
    ),
    resize((2, 3, 7), scales=(1, 1, 2), **_LINEAR),
    resize((2, 3, 7), scales=(1, 1, 1.5), mode="nearest"),
    resize((5, 6), scales=(2, 1.5), **_LINEAR),
    resize((1, 2, 3, 4, 5), scales=(1, 1, 2, 2, 2), **_LINEAR),
    resize((1, 2, 3, 4, 5), scales=(1, 1, 2, 1, 3), mode="nearest"),
    resize((1, 2, 3, 4, 5), scales=(1, 1, 1.5, 2, 1), **_LINEAR),
    resize((1, 5, 6, 3), scales=(1, 2, 2, 1), mode="nearest"),
    resize((1, 5, 6, 3), scales=(1, 2, 1.5, 1), **_LINEAR),
    resize((2, 3, 4, 4), scales=(2, 2, 1, 1), mode="nearest"),
    *(resize((2, 3, 3, 6), scales=(1, 1, 5 / 3, 7 / 6), mode=mode) for mode in ("nearest", "linear", "cubic")),
    Case("Resize", 10, ((1, 2, 3, 4), floats(1, 1, 2, 2)), {"mode": "linear"}, id="Resize10-linear"),
    *(
        Case("Resize", 19, ((1, 4, 1, 1), None, None, ints(1, 4, *size)), {"mode": mode}, id=f"Resize-of-one-{size}")
        for mode, size in (("nearest", (5, 6)), ("linear", (7, 7)))
    ),
    *(
        Case(
            "Resize",
            13,
            ((1, 3, 4, 4), None, floats(1, 1.00003, s, s)),
            {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            id=f"Resize-almost-{s}",
        )
        for s in (1, 2)
    ),
    Case("Upsample", 9, ((1, 2, 3, 4), floats(1, 1, 2, 3)), {"mode": "nearest"}, id="Upsample9"),
]


def _grid(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1.2, 1.2, shape).astype(np.float32)


def unpool(x: Shape, kernel: int, *, sized: bool = False) -> Case:
    """MaxPool with Indices, then MaxUnpool."""
    windows = {"kernel_shape": [kernel] * (len(x) - 2), "strides": [kernel] * (len(x) - 2)}
    pooled = helper.make_node("MaxPool", ["x"], ["v", "i"], **windows)
    back = helper.make_node("MaxUnpool", ["v", "i", *(["s"] if sized else [])], ["y"], **windows)
    sizes = [numpy_helper.from_array(np.array(x, np.int64), "s")] if sized else []
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    graph = helper.make_graph([pooled, back], "unpool", inputs, [onnx.ValueInfoProto(name="y")], sizes)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    return Case("MaxUnpool", 12, model=model, id=f"MaxUnpool-{x}-{kernel}")


UNPOOLS = [unpool((2, 3, 6, 8), 2), unpool((2, 3, 7, 9), 2, sized=True), unpool((2, 3, 9), 3)]

SAMPLES = [
    *(
        Case("GridSample", 20, ((2, 3, 5, 6), _grid(2, 4, 5, 2)), {"mode": mode, "padding_mode": padding})
        for mode, padding in itertools.product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection"))
    ),
    Case("GridSample", 20, ((1, 3, 5, 6), _grid(1, 4, 5, 2)), {"align_corners": 1}),
    Case("GridSample", 20, ((1, 2, 3, 4, 5), _grid(1, 2, 3, 4, 3))),
    Case(
        "GridSample",
        20,
        ((1, 2, 4, 4), In((1, 3, 3, 2), low=-1, high=1)),
        refused=dict.fromkeys(("caffe", "bvlc"), "grid .* must be constant"),
    ),
]

CASES = [*CONVS, *TRANSPOSED, *POOLS, *PADS, *UNPOOLS, *RESIZES, *SAMPLES]
