"""ONNX's own backend suites and this project's patterns, as (model, feeds, expected) with parameters frozen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from tests.patterns import patterns

SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator")

LISTED = frozenset(
    """Abs Add And ArgMax ArgMin Attention AveragePool BatchNormalization Cast Celu CenterCropPad Clip Concat Constant
    ConstantOfShape Conv ConvTranspose CumSum DepthToSpace DequantizeLinear Div Dropout Einsum Elu Equal Erf Exp Expand
    Flatten Floor GRU Gather GatherElements Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater
    GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization LRN LSTM
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool MaxRoiPool
    Mean MeanVarianceNormalization Min Mish Mul Neg NonZero OneHot PRelu Pad Pow QuantizeLinear RMSNormalization RNN
    Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare Relu Reshape Resize RoiAlign ScatterND Selu Shape Shrink Sigmoid Sign Slice Softmax Softplus
    Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze
    Upsample Where""".split()
)
"""Ops a CNN uses: what other converters claim together, and what exporters write that none of them has."""

PARAMETERS = frozenset(
    """BatchNormalization Clip Compress Conv ConvTranspose DeformConv DequantizeLinear Dropout GRU Gemm GridSample
    GroupNormalization InstanceNormalization LSTM LayerNormalization OneHot PRelu Pad QLinearConv QLinearMatMul
    QuantizeLinear RMSNormalization RNN Resize STFT Upsample""".split()
)
"""Ops whose inputs after the first are weights, bounds or constant grids in every real network."""

GENERATORS = frozenset("BlackmanWindow ConstantOfShape HammingWindow HannWindow MelWeightMatrix Range".split())
"""Ops all of whose inputs are sizes or bounds."""

COUNTED = frozenset({"Loop"})
"""Ops whose first inputs are a trip count and a condition, which networks hold as constants."""

COMPUTED = frozenset(
    """Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Sub
    Sum Where Xor""".split()
)
"""Ops whose integer inputs are data, not sizes or positions."""


@dataclass(frozen=True)
class Sample:
    """A model with one set of inputs and the outputs its suite expects (None where the suite has none).

    A feed that is None leaves out an optional input, which no net can do without.
    """

    suite: str
    name: str
    op: str
    model: onnx.ModelProto
    feeds: dict[str, Any]
    expected: list[Any] | None

    def left_out(self) -> str:
        """What to say of an input that the case leaves out; "" if there is none."""
        missing = [name for name, value in self.feeds.items() if value is None]
        return f"the optional input {missing[0]!r} is left out, without which no net runs" if missing else ""


def samples(suite: str) -> Iterator[Sample]:
    """All cases of one suite, parameters and shape-like inputs frozen as exporters write them.

    A case in its expanded form has the same inputs frozen as the plain one.
    """
    constants: dict[str, list[str]] = {}
    for case in load_model_tests(kind=suite):
        model, data = _load(case)
        inputs, expected = data[0]
        feeds = dict(zip((i.name for i in _true_inputs(model)), inputs, strict=False))
        op = model.graph.node[-1].op_type if len(model.graph.node) == 1 else "(several)"
        plain, expanded, _ = case.name.partition("_expanded")
        constants[case.name] = constants[plain] if expanded and plain in constants else parameters(model, feeds)
        yield Sample(suite, case.name, op, *freeze(model, feeds, constants[case.name]), expected)


def _load(case: Any) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    if case.model is not None:
        return case.model, [([_value(v) for v in i], [_value(v) for v in o]) for i, o in case.data_sets]
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        pair = []
        for kind in ("input", "output"):
            files = sorted(data.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
            pair.append([_tensor(f) for f in files])
        sets.append((pair[0], pair[1]))
    return model, sets


def _tensor(file: Path) -> Any:
    try:
        return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
    except Exception:  # no tensor: onnx and protobuf raise many kinds; the case is told by its file's name
        return file.name


def _value(data: Any) -> Any:
    """Tensors as arrays; sequences and optionals as they are."""
    if isinstance(data, onnx.TensorProto):
        return numpy_helper.to_array(data)
    return np.asarray(data) if isinstance(data, np.generic) else data


def _true_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    constants = {i.name for i in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in constants]


def parameters(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[str]:
    """The inputs that networks hold as constants; the first one is data, unless its op only knows sizes."""
    weights = {n for node in model.graph.node if node.op_type in PARAMETERS for n in node.input[1:]}
    data = {n for node in model.graph.node if node.op_type in COMPUTED for n in node.input}
    counts = {n for node in model.graph.node if node.op_type in COUNTED for n in node.input[:2]}
    if all(node.op_type in GENERATORS for node in model.graph.node):
        return list(feeds)
    return [
        name
        for position, (name, value) in enumerate(feeds.items())
        if isinstance(value, np.ndarray)
        if name in counts or (position and (name in weights or (value.dtype.kind in "iu" and name not in data)))
    ]


def freeze(
    model: onnx.ModelProto, feeds: dict[str, Any], constants: Sequence[str]
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model with these inputs as initializers, and what is left to feed."""
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    for name in constants:
        (entry,) = (i for i in frozen.graph.input if i.name == name)
        frozen.graph.input.remove(entry)
        frozen.graph.initializer.append(numpy_helper.from_array(feeds[name], name))
    return frozen, {name: value for name, value in feeds.items() if name not in constants}


def pattern_samples() -> Iterator[Sample]:
    """This project's own small models of what users hit, fed with noise."""
    for pattern in patterns():
        yield Sample("patterns", pattern.name, "(several)", pattern.model, noise(pattern.model), None)


def noise(model: onnx.ModelProto, seed: int = 0) -> dict[str, Any]:
    """Normal noise of both signs, std 1.5; small integers where the model wants integers."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in _true_inputs(model):
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dims = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        drawn = 1.5 * rng.standard_normal(dims)
        feeds[value.name] = (np.abs(drawn).astype(kind) if kind.kind in "iu" else drawn.astype(kind)).reshape(dims)
    return feeds
