"""ONNX's own backend suites and this project's patterns, as (model, feeds, expected) with parameters frozen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from tests.patterns import patterns

SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator")

PARAMETERS = frozenset(
    """BatchNormalization Clip Conv ConvTranspose GRU Gemm GroupNormalization InstanceNormalization LSTM
    LayerNormalization PRelu Pad RMSNormalization RNN Resize Upsample""".split()
)
"""Ops whose inputs after the first are weights or bounds in every real network."""


@dataclass(frozen=True)
class Sample:
    """A model with one set of inputs and the outputs its suite expects (None where the suite has none)."""

    suite: str
    name: str
    op: str
    model: onnx.ModelProto
    feeds: dict[str, Any]
    expected: list[Any] | None


def samples(suite: str) -> Iterator[Sample]:
    """All cases of one suite, parameters and shape-like inputs frozen as exporters write them."""
    for case in load_model_tests(kind=suite):
        model, data = _load(case)
        inputs, expected = data[0]
        feeds = dict(zip((i.name for i in _true_inputs(model)), inputs, strict=False))
        op = model.graph.node[-1].op_type if len(model.graph.node) == 1 else "(several)"
        yield Sample(suite, case.name, op, *freeze(model, feeds), list(expected))


def _load(case: Any) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    if case.model is not None:
        return case.model, [(list(i), list(o)) for i, o in case.data_sets]
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
    except Exception:
        return file.name


def _true_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    constants = {i.name for i in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in constants]


def freeze(model: onnx.ModelProto, feeds: dict[str, Any]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Make initializers of the inputs that networks hold as constants; the first input always stays one."""
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    parameters = {n for node in model.graph.node if node.op_type in PARAMETERS for n in node.input[1:]}
    kept = {}
    for position, (name, value) in enumerate(feeds.items()):
        shape_like = isinstance(value, np.ndarray) and value.dtype.kind in "iu"
        if position and isinstance(value, np.ndarray) and (name in parameters or shape_like):
            (entry,) = (i for i in frozen.graph.input if i.name == name)
            frozen.graph.input.remove(entry)
            frozen.graph.initializer.append(numpy_helper.from_array(value, name))
        else:
            kept[name] = value
    return frozen, kept


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
