"""What needs no Caffe layer: rows for the TVM dialects alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from onnx2caffe.tvm.registry import DIALECTS
from tests.ops.harness import FLOAT, Array, Case, In, Shape, constant, ints


def _row(
    op: str, opset: int, *inputs: Shape | In | Array | None, outputs: int = 1, name: str = "", **attributes: Any
) -> Case:
    return Case(op, opset, inputs, attributes, outputs, id=name and f"{op}{opset}-{name}", targets=())


def _index(shape: Shape, size: int) -> In:
    """Indices of an axis, negative ones too."""
    return In(shape, "int64", -size, size - 1)


def _extreme_of_least(last: int) -> Case:
    """ArgMax of rows in which nothing is larger than the least number of the type."""
    least = np.array([[-np.inf, -np.inf, -np.inf], [0, -np.inf, 0]], np.float32)
    nodes = [
        helper.make_node("Min", ["x", "least"], ["low"]),
        helper.make_node("ArgMax", ["low"], ["y"], name="node", axis=1, select_last_index=last),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, (2, 3))
    graph = helper.make_graph(
        nodes, "case", [x], [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(least, "least")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return Case("ArgMax", 13, id=f"ArgMax-least-last{last}", model=model, targets=())


def _meaning(dtype: str, inputs: Sequence[str], body: str) -> onnx.ModelProto:
    """What a node means, for ops that onnxruntime has no kernel for."""
    given = ", ".join(f"{dtype}[{shape}] x{number}" for number, shape in enumerate(inputs))
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g ({given}) => ({dtype} y0) {{ {body} }}')


def _signed_shift(kind: str, most: int, direction: str) -> Case:
    """A shift of signed integers: a product with a power of two, or the floor of a quotient."""
    body = (
        "t = Constant <value = double {2.0}> () n = Cast <to = 11> (x1) p = Pow (t, n) a = Cast <to = 11> (x0) "
        f"{'s = Mul (a, p)' if direction == 'LEFT' else 'd = Div (a, p) s = Floor (d)'} "
        f"y0 = Cast <to = {helper.np_dtype_to_tensor_dtype(np.dtype(kind))}> (s)"
    )
    inputs = (In((4, 9), kind, -90, 90), In((4, 9), kind, 0, most))
    meaning = _meaning(kind, ["4, 9"] * 2, body)
    return Case(
        "BitShift",
        28,
        inputs,
        {"direction": direction},
        same_as=meaning,
        targets=(),
        id=f"BitShift28-{kind}-{direction}",
    )


_FLOORED = _meaning("float", ["4, 9"] * 2, "q = Div (x0, x1) f = Floor (q) p = Mul (f, x1) y0 = Sub (x0, p)")
_FLOORED_BY_INFINITY = _meaning(
    "float",
    ["4, 3"],
    "k = Constant <value_floats = [1.0, -1.0, 1.0]> () s = Mul (x0, k) z = Constant <value_float = 0.0> () "
    "c = Greater (s, z) i = Constant <value_floats = [3e38, -3e38, 0.0]> () b = Where (c, x0, i) "
    "l = Constant <value = bool[3] {1, 1, 0}> () t = Constant <value_float = 2.0> () q = Div (x0, t) f = Floor (q) "
    "p = Mul (f, t) m = Sub (x0, p) y0 = Where (l, b, m)",
)

INDICES = [
    *(_row("GatherElements", 13, (3, 4, 5), _index((2, 4, 3), 3), axis=axis) for axis in (0, 2)),
    _row("GatherElements", 13, In((3, 4), "int64"), _index((3, 6), 4), axis=-1, name="integers"),
    _row("GatherElements", 13, In((3, 4), "bool"), _index((3, 6), 4), axis=1, name="booleans"),
    _row("GatherND", 13, (3, 4, 5), _index((2, 6, 1), 3)),
    _row("GatherND", 13, (3, 4, 5), _index((3, 2, 1), 4), batch_dims=1),
    _row("GatherND", 13, (2, 3, 4, 5), _index((2, 3, 4, 2), 4), batch_dims=2),
    *(
        _row("ScatterElements", 18, (3, 4), _index((2, 4), 3), (2, 4), axis=0, reduction=reduction)
        for reduction in ("none", "add", "mul", "max", "min")
    ),
    _row("ScatterElements", 18, In((2, 3, 4), "int32"), _index((2, 3, 6), 4), In((2, 3, 6), "int32"), axis=2),
    *(
        _row("ScatterND", 18, (4, 5, 2), _index((3, 2), 4), (3, 2), reduction=reduction)
        for reduction in ("none", "add", "mul", "max", "min")
    ),
    _row("ReverseSequence", 10, (4, 3, 2), In((3,), "int64", 0, 4), time_axis=0, batch_axis=1),
    _row("ReverseSequence", 10, (3, 4), In((3,), "int64", 1, 4), time_axis=1, batch_axis=0),
]


def _is_extreme(op: str, end: float) -> Case:
    """Whether the extreme of rows, one of them all infinite, is infinite: as masks ask that hide everything."""
    masks = np.array([[end, end, end], [0, end, 0], [end, 1, 2]], np.float32)
    nodes = [
        helper.make_node("Add", ["x", "masks"], ["masked"]),
        helper.make_node(op, ["masked", "axes"], ["extreme"], name="node", keepdims=0),
        helper.make_node("Equal", ["extreme", "end"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in (("masks", masks), ("axes", ints(1)), ("end", np.array(end, np.float32)))
    ]
    x = helper.make_tensor_value_info("x", FLOAT, (3, 3))
    graph = helper.make_graph(nodes, "case", [x], [onnx.ValueInfoProto(name="y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return Case(op, 18, id=f"{op}-all-infinite", model=model, targets=())


ORDER = [
    _is_extreme("ReduceMax", -np.inf),
    _is_extreme("ReduceMin", np.inf),
    *(
        _row(op, 18, In((2, 0, 3), kind), ints(1), name=f"of-nothing-{kind}")
        for op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL2")
        for kind in ("float32", "int32")
    ),
    *(
        Case(
            "ReduceMean",
            18,
            (In((2, 0, 3), kind), ints(1)),
            id=f"ReduceMean-of-nothing-{kind}",
            refused=dict.fromkeys(DIALECTS, "mean of no numbers"),
            targets=(),
        )
        for kind in ("float32", "int32")
    ),
    *(_extreme_of_least(last) for last in (0, 1)),
    *(
        _row("ArgMax", 13, In((3, 5), "uint8", 0, 1), axis=axis, select_last_index=last)
        for axis in (0, 1)
        for last in (0, 1)
    ),
    *(_row("TopK", 11, In((3, 7), kind), ints(3), outputs=2, name=kind) for kind in ("int32", "int64")),
    Case(
        "TopK",
        11,
        (In((3, 7), "uint64"), ints(3)),
        outputs=2,
        id="TopK-uint64-refused",
        refused=dict.fromkeys(DIALECTS, "sorts no uint64"),
        targets=(),
    ),
    _row("CumSum", 14, In((2, 5), "int64"), np.array(1), reverse=1),
    _row("OneHot", 11, In((2, 3), "int64", -7, 7), np.array(5), (2,), axis=1),
]

BITS = [
    *(
        _row("BitShift", 11, In((4, 9), kind, 0, 90), In((4, 9), kind, 0, 31), direction=direction)
        for kind in ("uint8", "uint32")
        for direction in ("LEFT", "RIGHT")
    ),
    *(
        _signed_shift(kind, high, direction)
        for kind in ("int16", "int32")
        for direction, high in (("LEFT", 5), ("RIGHT", 40))
    ),
    *(_row("Div", 14, (2, 3), np.array(zero, np.float32), name=f"{zero}") for zero in (0.0, -0.0)),
    Case("Mod", 28, ((4, 9), In((4, 9), low=0.3, high=2.0)), same_as=_FLOORED, targets=()),
    Case("Mod", 28, ((4, 3), np.array([np.inf, -np.inf, 2.0], np.float32)), same_as=_FLOORED_BY_INFINITY, targets=()),
    *(
        _row("Mod", 13, In((4, 9), kind, -90, 90), In((4, 9), kind, 1, 31), fmod=fmod)
        for kind in ("int8", "int32", "int64")
        for fmod in (0, 1)
    ),
    _row("Mod", 13, In((4, 9), "int32", -90, 90), np.array([-7], np.int32)),
]

_REGIONS = np.array([[0, 0, 15, 15], [2.5, 1, 9.5, 30], [-3, -4, 8, 6.5], [9, 9, 9, 9]], np.float32)
_CELLS = np.concatenate([np.array([[0], [1], [1], [0]], np.float32), _REGIONS], axis=1)

SAMPLES = [
    *(
        _row(
            "GridSample",
            20,
            (2, 3, 5, 6),
            In((2, 4, 5, 2), low=-2.5, high=2.5),
            name=f"{mode}-{pad}-{aligned}",
            mode=mode,
            padding_mode=pad,
            align_corners=aligned,
        )
        for mode in ("nearest", "linear", "cubic")
        for pad in ("zeros", "border", "reflection")
        for aligned in (0, 1)
    ),
    _row("GridSample", 20, (1, 2, 3, 4, 5), (1, 2, 3, 2, 3), mode="linear", padding_mode="border"),
    *(
        _row(
            "RoiAlign",
            16,
            (2, 3, 9, 8),
            _REGIONS,
            ints(0, 1, 1, 0),
            name=f"{mode}-{ratio}",
            coordinate_transformation_mode=mode,
            output_height=3,
            output_width=2,
            sampling_ratio=ratio,
            spatial_scale=0.5,
        )
        for mode in ("half_pixel", "output_half_pixel")
        for ratio in (1, 2, 3)
    ),
    _row(
        "RoiAlign",
        16,
        (2, 3, 9, 8),
        In((4, 4), low=0, high=16),
        In((4,), "int64", 0, 1),
        output_height=2,
        output_width=2,
        sampling_ratio=2,
        spatial_scale=0.5,
    ),
    _row(
        "RoiAlign",
        16,
        (2, 3, 9, 8),
        _REGIONS,
        ints(0, 1, 1, 0),
        name="adaptive",
        coordinate_transformation_mode="output_half_pixel",
        output_height=3,
        output_width=2,
        spatial_scale=0.5,
    ),
    *(
        _row("MaxRoiPool", 11, (2, 3, 9, 8), _CELLS, pooled_shape=shape, spatial_scale=0.5)
        for shape in ([2, 2], [3, 4], [7, 7])
    ),
    *(
        _row(
            "DeformConv",
            19,
            (2, 4, 6, 5),
            constant(6, 4 // groups, 3, 2),
            (2, 12 * parts, *out),
            bias,
            *mask,
            name=f"{groups}-{parts}-{stride}",
            group=groups,
            offset_group=parts,
            strides=[stride, 1],
            pads=[1, 0, 1, 1],
            dilations=[1, 2],
            kernel_shape=[3, 2],
        )
        for groups, parts, stride, out, bias, mask in (
            (1, 1, 1, (6, 4), None, ()),
            (2, 2, 1, (6, 4), constant(6), ((2, 12, 6, 4),)),
            (1, 2, 2, (3, 4), constant(6), ((2, 12, 3, 4),)),
        )
    ),
]

_BYTES = In((4, 9), "float8_e5m2")
REFUSED = [
    *(
        Case(
            op,
            21,
            inputs,
            attributes,
            id=f"{op}-float8",
            refused=dict.fromkeys(DIALECTS, "no arrays of float8_e5m2"),
            targets=(),
        )
        for op, inputs, attributes in (
            ("Cast", ((2, 3),), {"to": onnx.TensorProto.FLOAT8E5M2}),
            ("Transpose", (_BYTES,), {}),
        )
    ),
]
_ROIS = [
    Case(
        "RoiAlign",
        16,
        ((1, 2, 8, 8), In((1, 4), low=0, high=8), ints(0)),
        attributes,
        id=f"RoiAlign16-{text}-refused",
        refused=dict.fromkeys(DIALECTS, text),
        targets=(),
    )
    for text, attributes in (
        ("mode max", {"mode": "max", "sampling_ratio": 2}),
        ("half_pixel", {"coordinate_transformation_mode": "half_pixel"}),
    )
]

WINDOWS = [
    *(
        _row(
            "MaxPool",
            12,
            In((2, 3, 7, 6), kind, 0, 9),
            outputs=2,
            name=f"indices-{kind}-{order}-{stride}-{ceil}",
            kernel_shape=[3, 2],
            strides=[stride, 2],
            pads=[1, 0, 1, 1],
            storage_order=order,
            ceil_mode=ceil,
        )
        for kind in ("float32", "uint8")
        for order, stride, ceil in ((0, 1, 0), (1, 2, 1))
    ),
    _row("MaxPool", 12, (1, 2, 9), outputs=2, name="indices-1d", kernel_shape=[3], dilations=[2]),
    _row("MaxPool", 12, (1, 2, 4, 5, 6), outputs=2, name="indices-3d", kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    _row(
        "MaxUnpool", 11, (1, 2, 2, 2), In((1, 2, 2, 2), "int64", 0, 31), name="any", kernel_shape=[2, 2], strides=[2, 2]
    ),
]

QUANTIZED = [
    *(
        _row("QuantizeLinear", 13, (2, 3, 4), np.array(0.04, np.float32), np.array(zero, kind), name=f"{kind}")
        for kind, zero in (("uint8", 100), ("int8", -3))
    ),
    _row("QuantizeLinear", 13, (2, 3, 4), np.array([0.04, 0.5, 1], np.float32), np.array([1, 2, 3], np.uint8), axis=1),
    _row("QuantizeLinear", 13, In((2, 9), "float32", -9, 9), np.array(2, np.float32), name="halves"),
    _row(
        "DequantizeLinear",
        13,
        In((2, 3, 4), "uint8", 0, 255),
        In((3,), low=0.1, high=1),
        In((3,), "uint8", 0, 255),
        axis=1,
    ),
    _row("DequantizeLinear", 13, In((2, 3), "int32", -(10**6), 10**6), np.array(0.1, np.float32), name="int32"),
]


def _determinant_of_few() -> Case:
    """Det of matrices with zeros where elimination would like none: first, everywhere, in a whole column."""
    kept = np.array(
        [[[0, 2, 1], [3, 0, 3], [0, 1, 0]], np.zeros((3, 3)), [[0, 1, 2], [0, 3, 1], [0, 1, 1]]], np.float32
    )
    nodes = [helper.make_node("Mul", ["x", "kept"], ["few"]), helper.make_node("Det", ["few"], ["y"], name="node")]
    x = helper.make_tensor_value_info("x", FLOAT, (3, 3, 3))
    graph = helper.make_graph(
        nodes, "case", [x], [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(kept, "kept")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=8)
    return Case("Det", 22, id="Det22-few", model=model, targets=())


DETERMINANTS = [
    *(_row("Det", 22, shape) for shape in ((1, 1), (5, 2, 2), (2, 3, 5, 5), (9, 9))),
    _determinant_of_few(),
    Case("Det", 22, ((65, 65),), id="Det22-65-refused", refused=dict.fromkeys(DIALECTS, "at most 64"), targets=()),
]

CASES = [*INDICES, *ORDER, *BITS, *SAMPLES, *WINDOWS, *REFUSED, *_ROIS, *QUANTIZED, *DETERMINANTS]
