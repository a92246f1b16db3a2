"""Every layer type: shapes, values and refusals are Caffe's own."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.caffe.layers import LAYERS, Input, LayerError, Silence
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.errors import RuntimeCrash
from onnx2caffe.runtimes.base import Tap
from onnx2caffe.runtimes.builtin import Builtin
from tests.caffe.cases import CASES, REFUSED
from tests.caffe.nets import feeds, one_layer, written

RUNS = 2


@pytest.mark.parametrize("case", CASES, ids=str)
def test_builtin_computes_what_caffe_computes(case, pycaffe, tmp_path):
    net = one_layer(case)
    files = written(tmp_path, net)
    taps = [Tap(top) for top in net.outputs]
    runs = [feeds(case, seed) for seed in range(RUNS)]
    for theirs, ours in zip(pycaffe.run(files, runs, taps), Builtin().run(files, runs, taps), strict=True):
        for tap in taps:
            expected = theirs[tap]
            assert expected.shape == ours[tap].shape == net.shapes[tap.blob]
            finite = np.abs(expected[np.isfinite(expected)])
            scale = 1e-5 * finite.max() if finite.size else 0
            np.testing.assert_allclose(ours[tap], expected, rtol=1e-5, atol=scale)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refuses_what_caffe_refuses(case, pycaffe, tmp_path):
    with pytest.raises(LayerError):
        case.layer.infer(case.shapes)
    bottoms = [f"x{i}" for i in range(len(case.shapes))]
    tops = tuple(f"y{i}" for i in range(getattr(case.layer, "tops", 1)))
    inputs = [Placed(b, Input(shape=(s,)), (), (b,)) for b, s in zip(bottoms, case.shapes, strict=True)]
    net = Net("net", [*inputs, Placed("layer", case.layer, tuple(bottoms), tops)])
    with pytest.raises(RuntimeCrash):
        pycaffe.run(written(tmp_path, net), [feeds(case)], [Tap(tops[0])])


def test_every_layer_type_has_a_case():
    assert {case.layer.type for case in CASES} == set(LAYERS) - {Input.type, Silence.type}


def test_wrong_weights_are_refused():
    layer = one_layer(next(c for c in CASES if c.layer.type == "Convolution")).layers[-1].layer
    with pytest.raises(LayerError, match="needs blobs of shapes"):
        layer.infer([(1, 3, 9, 9)])
