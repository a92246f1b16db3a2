"""The simulation of NNIE's 8 bits is HiSilicon's formula, and one detector loses no more in the mapper's form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx2caffe.caffe.layers import Convolution, Eltwise, Input, ReLU
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.write import write_caffemodel, write_prototxt
from onnx2caffe.runtimes.base import NetFiles, Tap
from onnx2caffe.runtimes.builtin import Builtin
from tests.nnie.safety.compare import FORMS, MODELS, PICTURES, TABLE, Losses, measured, model_file, pictures
from tests.nnie.safety.detectors import overlap
from tests.nnie.safety.eightbit import in_eight_bits, quantised


def test_vendors_test_vector():
    """What libgfpq made of it (nnie §12)."""
    given = np.array([-9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9], np.float32)
    made = [-8.724062, 0, 1, 2, 2.9536524, 4, 4.967431, 5.907305, 7.0250087, 8, 8.724062]
    np.testing.assert_allclose(quantised(given), made, rtol=1e-6)
    np.testing.assert_allclose(quantised(np.float32([1.03])), [1.0])
    np.testing.assert_allclose(quantised(np.float32([1.0443])), [1.0442737], rtol=1e-6)


def test_grid():
    """127 codes of each sign, 0, and one more that is positive; what is on the grid stays."""
    values = quantised(np.concatenate([np.linspace(-3, 3, 200_001), 3 * 2.0 ** -np.linspace(0, 12, 200_001)]))
    assert len(np.unique(values)) == 256
    np.testing.assert_array_equal(quantised(values), values)
    assert (quantised(np.float32([1, 1 / 500, -1 / 400])) != 0).tolist() == [True, False, True]


def net_of(*layers: Placed, shapes: dict[str, tuple[int, ...]], folder: Path) -> NetFiles:
    files = NetFiles(folder / "n.prototxt", folder / "n.caffemodel")
    written = Net("n", list(layers), shapes)
    write_prototxt(written, files.prototxt)
    write_caffemodel(written, files.caffemodel)
    return files


def test_simulation_is_the_formula_layer_by_layer(tmp_path: Path):
    """A convolution and a sum of unlike ranges, held against numpy."""
    rng = np.random.RandomState(0)
    x, weights = rng.standard_normal((1, 4, 5, 6)).astype(np.float32), rng.standard_normal((4, 4, 1, 1))
    bias = rng.standard_normal(4).astype(np.float32)
    shapes = dict.fromkeys(["x", "c", "s"], x.shape)
    convolution = Convolution(num_output=4, kernel_size=(1, 1), blobs=(weights.astype(np.float32), bias))
    files = net_of(
        Placed("x", Input(shape=(x.shape,)), (), ("x",)),
        Placed("c", convolution, ("x",), ("c",)),
        Placed("r", ReLU(), ("c",), ("c",)),
        Placed("s", Eltwise(operation="SUM"), ("c", "x"), ("s",)),
        shapes=shapes,
        folder=tmp_path,
    )
    (values,) = Builtin(in_eight_bits).run(files, [{"x": 40 * x}], [Tap("c", "c"), Tap("s")])
    coded = quantised(40 * x)
    c = np.einsum("nihw,oi->nohw", coded, quantised(weights[..., 0, 0])) + bias.reshape(-1, 1, 1)
    np.testing.assert_allclose(values[Tap("c", "c")], c, rtol=1e-4, atol=1e-3)
    rectified = np.maximum(quantised(values[Tap("c", "c")]), 0)
    largest = max(np.abs(rectified).max(), np.abs(40 * x).max())
    np.testing.assert_allclose(values[Tap("s")], quantised(rectified, largest) + quantised(40 * x, largest), rtol=1e-5)


def test_overlap():
    boxes = np.array([[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 1, 1]], float)
    others = np.array([[0, 0, 2, 2], [1, 0, 3, 2], [2, 2, 3, 3]], float)
    np.testing.assert_allclose(overlap(boxes, others), [1, 1 / 3, 0])


def test_a_form_that_loses_more_is_found():
    rng = np.random.default_rng(0)
    plain = rng.uniform(0.01, 0.02, (24, 4))
    chance = plain + rng.normal(0, 0.001, plain.shape)
    assert Losses({"plain": plain, "nnie": chance}).worse() == []
    assert Losses({"plain": plain, "nnie": chance + np.array([0, 0.01, 0, 0])}).worse() == ["1 - IoU"]


@pytest.mark.skipif(not PICTURES.is_dir(), reason="no ../shared/pictures beside this checkout")
def test_a_detector_loses_no_more_in_the_mappers_form(tmp_path: Path):
    """The cheapest of the table's models, on one picture; `python -m tests.nnie.safety` measures all."""
    name = "yolo_fastestv2"
    picture = next(p for p in pictures() if "person" in p.name)
    losses = measured(model_file(name, tmp_path), MODELS[name], [picture], tmp_path)
    assert losses.worse() == []
    assert all(0 < losses.rows[form][:, 1].mean() < 0.12 for form in FORMS)  # boxes stay boxes


def test_table_has_no_model_that_loses_more():
    lines = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    assert {line[0] for line in lines} == set(MODELS)
    assert all(float(more) <= 3 * float(error) + 1e-5 for *_, more, error in lines)
