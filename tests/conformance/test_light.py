"""The nine real architectures inside the installed onnx wheel, as they are and with seeded noise for constant weights.

As they are, every weight is one constant and their outputs hardly depend on the input; with noise they do.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnx2caffe

LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("light_*.onnx"))


def noisy(model: onnx.ModelProto) -> onnx.ModelProto:
    """Float weights (initializers and ConstantOfShape results) replaced by noise that keeps activations alive."""
    rng = np.random.default_rng(0)
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    filled = [n for n in model.graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    for node in filled:
        model.graph.node.remove(node)
        model.graph.initializer.append(_noise(rng, node.output[0], tuple(shapes[node.input[0]])))
    for tensor in list(model.graph.initializer):
        if tensor.data_type == tensor.FLOAT and tensor.name not in {n.output[0] for n in filled}:
            tensor.CopyFrom(_noise(rng, tensor.name, tuple(tensor.dims)))
    return model


def _noise(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> onnx.TensorProto:
    if len(shape) > 1:
        array = rng.standard_normal(shape, np.float32) * np.float32((2 / np.prod(shape[1:])) ** 0.5)
    else:
        array = rng.uniform(0.5, 1.5, shape).astype(np.float32)  # scales and variances must be positive
    return numpy_helper.from_array(array, name)


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
@pytest.mark.parametrize("weights", ["as they are", "noise"])
def test_light_model(path: Path, weights: str, tmp_path: Path, pycaffe) -> None:
    source = path
    if weights == "noise":
        source = tmp_path / path.name
        onnx.save(noisy(onnx.load(path)), source)
    done = onnx2caffe.convert(source, tmp_path / "out")
    assert done.proof is not None
    assert {r.runtime for r in done.proof.rows} == {"builtin", "pycaffe"}
    assert done.proof.first_difference is None


def test_there_are_nine() -> None:
    assert len(LIGHT) == 9
