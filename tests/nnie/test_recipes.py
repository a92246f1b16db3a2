"""The user's choices on nnie: every variant that `--recipe` may name is legal and equal where it applies."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from onnx2caffe.errors import Unsupported
from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.targets.nnie.target import NNIE
from tests.ops.harness import FLOAT, Case, build, check, constant, convert, ints

GROUPS = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "group": 4}
DOWN = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def cases(height: int, width: int) -> dict[str, Case]:
    """What is to be expressed, on maps of this size."""
    size = (height, width)
    x = (1, 4, *size)

    def scaled(factor: float, **attributes: str) -> Case:
        return Case("Resize", 19, (x, None, np.array([1, 1, factor, factor], np.float32)), attributes)

    rounded = {"kernel_shape": [3 - height % 2] * 2, "strides": [2, 2]}
    pads = ints(0, 0, 1, 2, 0, 0, 0, 1)
    return {
        "DEPTHWISE": Case("Conv", 11, (x, constant(4, 1, 3, 3)), GROUPS),
        "FLOOR": Case("MaxPool", 12, (x,), rounded),
        "GATE": Case("Mul", 14, (x, (1, 4, 1, 1))),
        "SQUARE_GATE": Case("Mul", 14, ((1, 4, 8, 8), (1, 4, 1, 1))),
        "SUM": Case("Add", 14, (x, (1, 4, 1, 1))),
        "PER_CHANNEL": Case("Add", 14, (x, constant(4, 1, 1))),
        "PER_PLACE": Case("Mul", 14, (x, constant(*size))),
        "SWAP": Case("Transpose", 13, (x,), {"perm": [0, 1, 3, 2]}),
        "MATRIX": Case("MatMul", 13, ((1, *size), constant(width, 5))),
        "DENSE": Case("Gemm", 13, ((1, height), constant(height, 5), constant(5))),
        "SOFT": Case("Softmax", 13, (x,), {"axis": 2}),
        "LAST": Case("Softmax", 13, (x,), {"axis": 3}),
        "FOLD": Case("Reshape", 13, (x, ints(1, 4 * height, width))),
        "ROOT": Case("Add", 14, (x, np.array(0.5, np.float32))),
        "MINUS": Case("Sub", 14, (x, x)),
        "PICK": Case("Slice", 13, ((1, 8, *size), ints(2), ints(5), ints(1), ints(1))),
        "CROP": Case("Slice", 13, ((1, 8, *size), ints(2), ints(height - 1), ints(2), ints(1))),
        "EDGE": Case("Pad", 13, (x, pads), {"mode": "edge"}),
        "VALUE": Case("Pad", 13, (x, pads, np.array(2.5, np.float32))),
        "CLIP": Case("Clip", 13, (x, np.array(0, np.float32), np.array(1.5, np.float32))),
        "LARGE": Case("GlobalAveragePool", 11, ((1, 2, 200 + height % 2, 300 + width % 2),)),
        "FOURFOLD": scaled(4, **NEAREST),
        "SIXFOLD": scaled(6, **NEAREST),
        "SMOOTH": scaled(2, **DOWN),
        "RATIO": scaled(1.5, **DOWN),
    }


CASES = {"even": cases(6, 8), "odd": cases(7, 9)}

CHOICES: list[tuple[str, str, str, set[str]]] = [
    ("depthwise", "layer", "DEPTHWISE", {"DepthwiseConv"}),
    ("depthwise", "conv", "DEPTHWISE", {"Convolution"}),
    ("crop", "dw", "FLOOR", {"Pooling", "DepthwiseConv"}),
    ("crop", "slice", "FLOOR", {"Pooling", "Slice"}),
    ("keep", "map", "CROP", {"DepthwiseConv"}),
    ("keep", "slice", "CROP", {"Slice"}),
    ("keep", "map", "PICK", {"Convolution"}),
    ("keep", "slice", "PICK", {"Slice"}),
    ("broadcast", "concat", "GATE", {"Concat", "Eltwise"}),
    ("broadcast", "deconv", "GATE", {"Deconvolution", "Eltwise"}),
    ("broadcast", "upsample", "SQUARE_GATE", {"Upsample", "Eltwise"}),
    ("add", "eltwise", "SUM", {"Concat", "Eltwise"}),
    ("affine", "Scale", "PER_CHANNEL", {"Scale"}),
    ("affine", "dw", "PER_CHANNEL", {"DepthwiseConv"}),
    ("affine", "vector", "PER_PLACE", {"Reshape", "Scale"}),
    ("affine", "map", "PER_PLACE", {"Pooling", "Convolution", "Deconvolution", "Eltwise"}),
    ("affine", "layer", "PER_PLACE", {"Scale"}),
    ("upsample", "upsample", "FOURFOLD", {"Upsample"}),
    ("upsample", "deconv", "FOURFOLD", {"Deconvolution"}),
    ("upsample", "upsample", "SIXFOLD", {"Deconvolution", "Upsample"}),
    ("bilinear", "exact", "SMOOTH", {"Deconvolution", "Pooling", "Convolution", "Eltwise"}),
    ("resize", "rotation", "RATIO", {"Permute", "Convolution"}),
    ("transpose", "slices", "SWAP", {"Reshape", "Slice", "Permute", "Concat"}),
    ("transpose", "dw", "SWAP", {"Convolution", "Reshape"}),
    ("axis_map", "row", "MATRIX", {"Reshape", "Convolution", "Permute"}),
    ("axis_map", "rotation", "MATRIX", {"Reshape", "Permute", "Convolution"}),
    ("inner_product", "last", "DENSE", {"InnerProduct"}),
    ("inner_product", "conv", "DENSE", {"Reshape", "Convolution"}),
    ("softmax", "slices", "SOFT", {"Reshape", "Slice", "Softmax", "Concat"}),
    ("softmax", "rotation", "SOFT", {"Permute", "Softmax"}),
    ("softmax", "rows", "LAST", {"Reshape", "Softmax"}),
    ("power", "Scale", "ROOT", {"Scale"}),
    ("weighted_sum", "scaled", "MINUS", {"Scale", "Eltwise"}),
    ("weighted_sum", "coeff", "MINUS", {"Eltwise"}),
    ("take", "matrix", "EDGE", {"Permute", "Convolution", "Reshape"}),
    ("constant_pad", "shift", "VALUE", {"Scale", "DepthwiseConv"}),
    ("constant_pad", "Parameter", "VALUE", {"Parameter", "Concat"}),
    ("clip", "rectified", "CLIP", {"ReLU", "Scale", "Eltwise"}),
    ("whole_pool", "stages", "LARGE", {"Pooling"}),
]


@pytest.mark.parametrize("size", CASES)
@pytest.mark.parametrize(
    ("key", "variant", "case", "types"), CHOICES, ids=[f"{k}={v}-{case}" for k, v, case, _ in CHOICES]
)
def test_choice(key, variant, case, types, size, tmp_path, pycaffe) -> None:
    written = check(CASES[size][case], NNIE, tmp_path, [Builtin(), pycaffe], chosen={key: variant})
    assert set(written.types) - {"Input"} == types


def test_bilinear_by_a_plain_deconvolution_is_approximate(tmp_path) -> None:
    case = CASES["even"]["SMOOTH"]
    assert convert(build(case), NNIE, tmp_path, chosen={"bilinear": "deconv"}).types == ["Input", "Deconvolution"]
    with pytest.raises(AssertionError, match="e="):
        check(case, NNIE, tmp_path, [Builtin()], chosen={"bilinear": "deconv"})


@pytest.mark.parametrize(
    ("key", "variant", "case"),
    [
        ("broadcast", "upsample", CASES["even"]["GATE"]),
        ("clip", "Clip", CASES["even"]["CLIP"]),
        ("reshape", "static", CASES["even"]["FOLD"]),
    ],
    ids=str,
)
def test_choice_that_the_target_refuses(key, variant, case, tmp_path) -> None:
    with pytest.raises(Unsupported, match=f"--recipe {key}={variant}: "):
        convert(build(case), NNIE, tmp_path, chosen={key: variant})


WEIGHTS = constant(2, 2, 3)
LINES = [
    Case("Conv", 11, ((1, 2, 5001), WEIGHTS), {"pads": [2, 1], "strides": [2]}),
    Case("Conv", 11, ((1, 2, 5000), constant(2, 1, 3)), {"pads": [2, 2], "dilations": [2], "group": 2}),
    Case("ConvTranspose", 11, ((1, 2, 5000), WEIGHTS), {"strides": [2], "pads": [1, 0]}),
    Case("MaxPool", 12, ((1, 2, 5001),), {"kernel_shape": [3], "strides": [2]}),
    Case("MaxPool", 12, ((1, 2, 5000),), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    Case("AveragePool", 11, ((1, 2, 5000),), {"kernel_shape": [4], "strides": [2], "pads": [1, 1]}),
    Case("GlobalAveragePool", 11, ((1, 2, 5000),)),
    Case("Sigmoid", 13, ((1, 2, 5001),)),
]


@pytest.mark.parametrize("case", LINES, ids=lambda c: f"{c.op}-{c.attributes}")
def test_lines_longer_than_the_nnie_is_wide(case, tmp_path, pycaffe) -> None:
    """A convolution or pooling along one long axis has it as rows: the width stays within 4096."""
    check(case, NNIE, tmp_path, [Builtin(), pycaffe])


@pytest.mark.parametrize("shape", [(1, 2, 3, 4, 5), (6, 20), (120,)], ids=str)
def test_shapes_that_the_nnie_has_not(shape, tmp_path, pycaffe) -> None:
    """A tensor of five axes, or without a batch, stands in a blob that the NNIE has."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Mul", ["b", "half"], ["y"]),
    ]
    constants = [numpy_helper.from_array(ints(*shape), "shape"), numpy_helper.from_array(np.float32(0.5), "half")]
    x = helper.make_tensor_value_info("x", FLOAT, (1, 6, 4, 5))
    graph = helper.make_graph(nodes, "seen", [x], [helper.make_tensor_value_info("y", FLOAT, shape)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    written = check(Case("Reshape", 17, model=model), NNIE, tmp_path, [Builtin(), pycaffe])
    assert set(written.types) <= {"Input", "Reshape", "Sigmoid", "Scale"}
