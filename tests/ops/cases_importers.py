"""What TVM's own importers compute wrongly without a word, as their users and measurements found; ours is equal.

Measured with Relay 0.19 and Relax 0.27 on these very nodes; a row says which importer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.harness import Array, Case, In, Shape, constant, ints

_DATA = (1, 3, 6, 8)


def _row(op: str, opset: int, *inputs: Shape | In | Array | None, wrong: str, what: str, **attributes: Any) -> Case:
    return Case(op, opset, inputs, attributes, id=f"{op}{opset}-{what}-wrong-in-{wrong}", targets=())


def _floats(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


_RESIZED = [
    *(
        _row(
            "Resize",
            13,
            (1, 1, 3, 3),
            None,
            _floats(1, 1, scale, scale),
            wrong=wrong,
            what=f"{where}-{how}-x{scale}",
            mode="nearest",
            coordinate_transformation_mode=where,
            nearest_mode=how,
        )
        for wrong, scale, where, how in (
            ("both", 1.5, "half_pixel", "round_prefer_floor"),  # apache/tvm 19500
            ("both", 1.5, "half_pixel", "floor"),
            ("both", 1.5, "pytorch_half_pixel", "round_prefer_floor"),
            ("both", 1.5, "pytorch_half_pixel", "floor"),
            ("both", 1.5, "asymmetric", "round_prefer_ceil"),
            ("relay", 2, "asymmetric", "round_prefer_ceil"),
            ("relay", 2, "asymmetric", "ceil"),
        )
    ),
    *(
        _row(
            "Resize",
            13,
            _DATA,
            None,
            _floats(1, 1, 1.3, 1.3),
            wrong="both",
            what=f"{mode}-{where}",
            mode=mode,
            coordinate_transformation_mode=where,
        )
        for mode in ("linear", "cubic")
        for where in ("half_pixel", "pytorch_half_pixel", "asymmetric")
    ),
    _row(
        "Resize", 13, (1, 6, 8, 3), None, _floats(1, 2, 2, 1), wrong="both", what="channels-last", mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    ),
    _row("Resize", 18, _DATA, None, None, ints(1, 3, 3, 4), wrong="both", what="antialias", mode="linear", antialias=1),
    *(
        _row("Upsample", 7, _DATA, wrong="relax", what=f"{rows}x{columns}", mode="nearest",
             scales=[1.0, 1.0, rows, columns])
        for rows, columns in ((2.0, 2.0), (3.0, 2.0), (1.5, 1.5))
    ),
]  # fmt: skip

_POOLED = [
    *(
        _row(op, 11, (1, 2, size, size), wrong="relay", what=f"ceil-{size}{'-padded' if padded else ''}",
             kernel_shape=[2, 2], strides=[stride, stride], pads=[pad] * 4, ceil_mode=1, **padded)
        for op, options in (
            ("MaxPool", ({},)),
            ("AveragePool", ({"count_include_pad": 0}, {"count_include_pad": 1})),  # 18594
        )
        for padded in options
        for size, stride, pad in ((17, 2, 1), (9, 3, 0))
    ),
    *(
        _row("AveragePool", opset, (1, 2, 8, 8), wrong="both", what=f"ceil-and-padding-counted-{pad}",
             kernel_shape=[3, 3], strides=[2, 2], pads=[pad] * 4, ceil_mode=1, count_include_pad=1)
        for opset in (11, 19)  # onnxruntime divides otherwise before 19; pytorch/pytorch 183528
        for pad in (0, 1)
    ),
]  # fmt: skip

_OTHERS = [
    _row("Clip", 11, _DATA, None, np.array(0.5, np.float32), wrong="relay", what="upper-bound-alone"),
    _row("Clip", 13, _DATA, np.array(1, np.float32), np.array(-1, np.float32), wrong="relay", what="bounds-crossed"),
    _row("ConvTranspose", 11, (1, 2, 5, 6), constant(2, 3, 3, 3), wrong="relax", what="output-shape",
         strides=[2, 2], output_shape=[10, 12]),
    _row("Gelu", 20, _DATA, wrong="relay", what="tanh", approximate="tanh"),
    _row("ReduceMean", 18, _DATA, ints(2, 3), wrong="relay", what="two-axes", keepdims=0),
    _row("LpPool", 11, (1, 2, 9, 8), wrong="relay", what="padded", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    _row("RoiAlign", 16, (1, 1, 10, 10), _floats(0, 0, 9, 9, 1, 2, 7, 8).reshape(2, 4), ints(0, 0), wrong="relay",
         what="half-pixel", output_height=3, output_width=3, sampling_ratio=2),
]  # fmt: skip

CASES = [*_RESIZED, *_POOLED, *_OTHERS]
