"""The builtin runtime: taps, feeds, and what it keeps between runs."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.caffe import layers as L
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.errors import RuntimeCrash, UsageError
from onnx2caffe.runtimes.base import NetFiles, Tap
from onnx2caffe.runtimes.builtin import Builtin
from tests.caffe.nets import Case, feeds, one_layer, weighted, written

X = np.array([[-1, 2, -3, 4]], np.float32)


@pytest.fixture
def chain(tmp_path) -> NetFiles:
    """x, a twice in place, and a reader of a."""
    layers = [
        Placed("in", L.Input(shape=((1, 4),)), (), ("x",)),
        Placed("double", L.Power(scale=2), ("x",), ("a",)),
        Placed("relu", L.ReLU(), ("a",), ("a",)),
        Placed("less", L.Power(shift=-1), ("a",), ("a",)),
        Placed("out", L.AbsVal(), ("a",), ("y",)),
    ]
    shapes = dict.fromkeys("xay", (1, 4))
    return written(tmp_path, Net("chain", layers, shapes, ["x"], ["y"]))


def test_taps_see_each_version(chain, pycaffe):
    taps = [Tap("x"), Tap("a", "double"), Tap("a", "relu"), Tap("a", "less"), Tap("a", "out"), Tap("a"), Tap("y")]
    (ours,), (theirs,) = Builtin().run(chain, [{"x": X}], taps), pycaffe.run(chain, [{"x": X}], taps)
    assert list(ours) == taps
    for tap in taps:
        np.testing.assert_array_equal(ours[tap], theirs[tap])


@pytest.mark.parametrize(
    ("tap", "reason"),
    [(Tap("z"), "no blob 'z'"), (Tap("y", "relu"), "no blob 'y' after layer 'relu'"), (Tap("y", "z"), "no layer 'z'")],
)
def test_wrong_taps(chain, tap, reason):
    with pytest.raises(UsageError, match=reason):
        Builtin().run(chain, [{"x": X}], [tap])


@pytest.mark.parametrize(
    ("feed", "reason"),
    [({}, "'x' is not fed"), ({"x": X[:, :2]}, "has shape"), ({"x": X, "a": X}, "no input 'a'")],
)
def test_wrong_feeds(chain, feed, reason):
    with pytest.raises(UsageError, match=reason):
        Builtin().run(chain, [feed], [Tap("y")])


def test_feeds_of_another_shape_and_type(chain):
    (values,) = Builtin().run(chain, [{"x": X.astype(np.int64).reshape(2, 2)}], [Tap("y")])
    assert values[Tap("y")].tolist() == [[1, 3, 1, 7]]


def test_large_weights_are_fed(tmp_path):
    case = Case(L.InnerProduct(num_output=300), [(3, 400)])
    files = written(tmp_path, one_layer(case))
    runtime = Builtin()
    weights, bias = weighted(case.layer, case.shapes).blobs
    for seed in range(2):
        x = feeds(case, seed)
        (values,) = runtime.run(files, [x], [Tap("y0")])
        np.testing.assert_allclose(values[Tap("y0")], x["x0"] @ weights.T + bias, rtol=1e-4, atol=1e-3)


def test_a_file_written_anew_is_read_anew(tmp_path):
    runtime, tap = Builtin(), Tap("y0")
    case = Case(L.Power(scale=2), [(1, 4)])
    (first,) = runtime.run(written(tmp_path, one_layer(case)), [{"x0": X}], [tap])
    case = Case(L.Power(scale=10.5), [(1, 4)])
    (second,) = runtime.run(written(tmp_path, one_layer(case)), [{"x0": X}], [tap])
    assert (first[tap] == 2 * X).all()
    assert (second[tap] == 10.5 * X).all()
    runtime.close()
    (third,) = runtime.run(written(tmp_path, one_layer(case)), [{"x0": X}], [tap])
    assert (third[tap] == 10.5 * X).all()


def test_missing_types():
    assert Builtin().missing(["ReLU", "Foo", "Convolution"]) == ["Foo"]


def test_an_index_beyond_the_table(tmp_path):
    files = written(tmp_path, one_layer(Case(L.Embed(num_output=2, input_dim=3), [(1,)])))
    with pytest.raises(RuntimeCrash, match="bounds"):
        Builtin().run(files, [{"x0": np.array([7])}], [Tap("y0")])
