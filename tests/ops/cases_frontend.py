"""Ops without a lowering of their own: read as others, as constants, or as nothing."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tests.ops.harness import Array, Case, In, constant, ints

_MICROSOFT = "com.microsoft"


def _model(inputs: str, body: str, outputs: str = "float y") -> onnx.ModelProto:
    """A model in ONNX's own text form."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => ({outputs}) {{ {body} }}')


def _text(op: str, body: str, what: str = "text") -> Case:
    """Several nodes from x to y."""
    return Case(op, 18, model=_model("float[2, 3, 4] x", body), id=f"{op}-{what}")


def _scalar(value: float, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(value, dtype)


_CONSTANTS = [
    Case("Constant", 13, (), {"value": numpy_helper.from_array(constant(2, 3))}),
    Case("Constant", 13, (), {"value_floats": [0.5, -2.0]}),
    Case("ConstantOfShape", 20, (ints(2, 3),), {"value": numpy_helper.from_array(np.array([1.5], np.float32))}),
    Case("Shape", 15, ((2, 3, 4),), {"start": 1}),
    Case("Size", 13, ((2, 3, 4),)),
    Case("EyeLike", 9, ((3, 4),), {"k": 1}),
    Case("Range", 11, (_scalar(1), _scalar(7), _scalar(1.5))),
    Case("BlackmanWindow", 17, (_scalar(6, np.int64),)),
    Case("HammingWindow", 17, (_scalar(6, np.int64),)),
    Case("HannWindow", 17, (_scalar(6, np.int64),)),
    Case(
        "MelWeightMatrix",
        17,
        (*(_scalar(n, np.int64) for n in (4, 16, 8000)), _scalar(0), _scalar(4000)),
    ),
    Case("OneHot", 11, (ints(0, 2, -1), _scalar(4, np.int64), np.array([0, 1], np.float32))),
    Case("NonZero", 13, (np.array([[1, 0, 2], [0, 0, 3]], np.float32),)),
    Case("Unique", 11, (np.array([3, 1, 3], np.float32),)),
    Case(
        "NonMaxSuppression",
        11,
        (
            np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]], np.float32),
            np.array([[[0.9, 0.8, 0.7]]], np.float32),
            _scalar(3, np.int64),
            _scalar(0.5),
        ),
    ),
]

_NOTHING = [
    Case("Identity", 14, ((2, 3, 4),)),
    Case("Dropout", 13, ((2, 3, 4),)),
    Case("Dropout", 13, ((2, 3, 4), _scalar(0), np.array(True)), outputs=2),
    _text("Optional", "o = Optional (x) y = OptionalGetElement (o)"),
    _text("OptionalGetElement", "o = Optional (x) y = OptionalGetElement (o)"),
    _text("OptionalHasElement", "o = Optional (x) h = OptionalHasElement (o) f = Cast <to = 1> (h) y = Add (x, f)"),
]

_SEQUENCES = [
    _text("SequenceConstruct", "n = Neg (x) s = SequenceConstruct (x, n) y = ConcatFromSequence <axis = 1> (s)"),
    _text("ConcatFromSequence", "s = SequenceConstruct (x, x) y = ConcatFromSequence <axis = -1, new_axis = 1> (s)"),
    _text("SequenceEmpty", "e = SequenceEmpty () s = SequenceInsert (e, x) y = ConcatFromSequence <axis = 0> (s)"),
    _text("SequenceInsert", "e = SequenceEmpty () s = SequenceInsert (e, x) y = ConcatFromSequence <axis = 0> (s)"),
    _text("SequenceErase", "n = Neg (x) s = SequenceConstruct (x, n) p = Constant <value_int = 0> () "
          "r = SequenceErase (s, p) y = ConcatFromSequence <axis = 0> (r)"),
    _text("SequenceAt", "n = Neg (x) s = SequenceConstruct (x, n) p = Constant <value_int = 1> () "
          "y = SequenceAt (s, p)"),
    _text("SequenceLength", "s = SequenceConstruct (x, x) l = SequenceLength (s) f = Cast <to = 1> (l) y = Mul (x, f)"),
    _text("SplitToSequence", "s = SplitToSequence <axis = 1, keepdims = 0> (x) p = Constant <value_int = 2> () "
          "y = SequenceAt (s, p)"),
    _text("If", "c = Constant <value = bool {1}> () "
          "y = If (c) <then_branch = t () => (float a) { a = Neg (x) }, "
          "else_branch = e () => (float b) { b = Abs (x) }>"),
    _text("If", "s = ReduceSum <keepdims = 0> (x) z = Constant <value_float = 0.0> () c = Greater (s, z) "
          "y = If (c) <then_branch = t () => (float a) { a = Neg (x) }, "
          "else_branch = e () => (float b) { b = Abs (x) }>", "data"),
    _text("Loop", "n = Constant <value_int = 2> () y = Loop (n, , x) <body = b (int64 i, bool c, float[2, 3, 4] s) "
          "=> (bool d, float[2, 3, 4] r) { d = Identity (c) a = Abs (s) r = Sub (a, x) }>"),
    _text("Scan", "o = Constant <value_ints = [1]> () s = ReduceMax <keepdims = 0> (x, o) "
          "l, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = b (float[2, 4] c, float[2, 4] v) "
          "=> (float[2, 4] d, float[2, 4] w) { w = Mul (c, v) d = Add (c, v) }> (s, x)"),
]  # fmt: skip

_SWIGLU = _model("float[2, 8] x0, float[2, 8] x1", "s = Sigmoid (x0) z = Mul (x0, s) y0 = Mul (z, x1)", "float y0")


def _conv_between_transposes(weights: Array) -> onnx.ModelProto:
    """Conv with channels last; `weights`: (M, kH, kW, C)."""
    model = _model(
        "float[2, 5, 6, 3] x0",
        "a = Transpose <perm = [0, 3, 1, 2]> (x0) v = Transpose <perm = [0, 3, 1, 2]> (w) "
        "b = Conv <pads = [1, 0, 1, 0]> (a, v) y0 = Transpose <perm = [0, 2, 3, 1]> (b)",
        "float y0",
    )
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


_FUNCTIONS = [
    Case("Swish", 24, ((2, 3, 4),), {"alpha": 1.5}),
    Case("Swish", 24, ((2, 3, 4, 5),)),
    Case("SwiGLU", 28, ((2, 8), (2, 8)), same_as=_SWIGLU),
    Case("CastLike", 19, (In((2, 3), "int64"), _scalar(1))),
    Case("CastLike", 19, ((2, 3), np.array(True))),
    Case("Scatter", 9, ((3, 4), np.array([[2, 0, 1, 2]], np.int64), (1, 4)), {"axis": 0}),
    Case("AffineGrid", 20, (constant(2, 2, 3), ints(2, 3, 4, 5))),
    Case("AffineGrid", 20, ((2, 2, 3), ints(2, 3, 4, 5))),
    Case("Attention", 23, ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))),
    Case("Attention", 23, ((1, 3, 8), (1, 5, 8), (1, 5, 8)), {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1}),
    Case("RotaryEmbedding", 23, ((1, 2, 3, 4), constant(1, 3, 2), constant(1, 3, 2, seed=1))),
    Case("CausalConvWithState", 27, ((2, 3, 6), constant(3, 1, 4)), outputs=2),
]

_FUSED = [
    Case(
        "NhwcConv",
        17,
        ((2, 5, 6, 3), constant(4, 3, 3, 3)),
        {"pads": [1, 0, 1, 0]},
        domain=_MICROSOFT,
        same_as=_conv_between_transposes(constant(4, 3, 3, 3)),
    ),
    Case(
        "FusedConv",
        17,
        ((2, 3, 5, 6), constant(4, 3, 3, 3), constant(4)),
        {"activation": "Relu", "pads": [1, 1, 1, 1]},
        domain=_MICROSOFT,
    ),
    Case("FusedConv", 17, ((2, 3, 5, 6), constant(4, 3, 3, 3), None, (2, 4, 3, 4)), domain=_MICROSOFT),
    Case(
        "FusedGemm",
        17,
        ((3, 4), constant(4, 5), constant(5)),
        {"activation": "LeakyRelu", "activation_alpha": 0.3},
        domain=_MICROSOFT,
    ),
    Case("FusedMatMul", 17, ((2, 3, 4), (2, 5, 4)), {"transB": 1, "alpha": 0.5}, domain=_MICROSOFT),
    Case("FusedMatMul", 17, ((2, 3, 4), constant(4, 5)), {"alpha": 0.5}, domain=_MICROSOFT),
    Case("Gelu", 17, ((2, 3, 4),), domain=_MICROSOFT, id="microsoft.Gelu"),
    Case("BiasGelu", 17, ((2, 3, 4), constant(4)), domain=_MICROSOFT),
    Case("FastGelu", 17, ((2, 3, 4), constant(4)), domain=_MICROSOFT),
    Case("QuickGelu", 17, ((2, 3, 4),), {"alpha": 1.5}, domain=_MICROSOFT),
    Case("SkipLayerNormalization", 17, ((2, 3, 4), (2, 3, 4), constant(4), constant(4)), domain=_MICROSOFT),
]

_FOURIER = [
    *(Case("DFT", 20, ((2, 7, parts),), {"inverse": inverse}) for parts in (1, 2) for inverse in (0, 1)),
    *(Case("DFT", 20, ((2, n, 1),), {"onesided": 1}) for n in (6, 7)),
    *(Case("DFT", 20, ((2, 7, 2), _scalar(n, np.int64))) for n in (5, 9)),
    Case("DFT", 20, ((3, 4, 5, 2), None, _scalar(0, np.int64))),
    Case("DFT", 17, ((2, 4, 3, 2),), {"axis": 2}),
    Case("DFT", 17, ((2, 4, 3, 1),)),
    Case("STFT", 17, ((2, 20, 1), _scalar(3, np.int64), constant(8)), {"onesided": 1}),
    Case("STFT", 17, ((1, 20, 1), _scalar(4, np.int64), None, _scalar(7, np.int64)), {"onesided": 0}),
    Case("STFT", 17, ((1, 12, 2), _scalar(3, np.int64), constant(5)), {"onesided": 0}),
]

CASES = [*_CONSTANTS, *_NOTHING, *_SEQUENCES, *_FUNCTIONS, *_FUSED, *_FOURIER]
