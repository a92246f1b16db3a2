"""What the layers of this package rest on: how a real Caffe behaves where one would guess otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnx2caffe.errors import RuntimeCrash, RuntimeMissing
from onnx2caffe.runtimes.base import Tap
from tests.runtimes.nets import input_layer, layer, one_layer, written

RNG = np.random.default_rng(3)
X4 = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)


@pytest.fixture
def one(pycaffe, tmp_path):
    def run(kind, params, *xs, **options):
        tops = one_layer(pycaffe, tmp_path, kind, params, *xs, **options)
        return tops[0] if len(tops) == 1 else tops

    return run


def same(a, b, tolerance=1e-5):
    assert np.shape(a) == np.shape(b)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("h", "k", "s", "p", "d"), [(7, 3, 2, 1, 1), (8, 3, 2, 0, 1), (9, 3, 1, 2, 2)])
def test_convolution_rounds_down(one, h, k, s, p, d):
    y = one(
        "Convolution",
        f"convolution_param {{ num_output: 2 kernel_size: {k} stride: {s} pad: {p} dilation: {d} }}",
        (1, 2, h, h),
    )
    assert y.shape[2] == (h + 2 * p - d * (k - 1) - 1) // s + 1


def test_deconvolution_enlarges_by_repetition(one):
    ones = 'weight_filler { type: "constant" value: 1 }'
    y = one(
        "Deconvolution",
        f"convolution_param {{ num_output: 3 group: 3 kernel_size: 2 stride: 2 bias_term: false {ones} }}",
        X4,
    )
    same(y, X4.repeat(2, 2).repeat(2, 3))


@pytest.mark.parametrize("h", range(3, 8))
@pytest.mark.parametrize(("k", "s", "p"), [(2, 1, 0), (2, 2, 1), (2, 3, 0), (3, 1, 1), (3, 2, 2), (3, 3, 2)])
def test_pooling_rounds_up_and_clips_windows_in_the_padding(one, h, k, s, p):
    y = one("Pooling", f"pooling_param {{ pool: MAX kernel_size: {k} stride: {s} pad: {p} }}", (1, 1, h, h))
    size = math.ceil((h + 2 * p - k) / s) + 1
    assert y.shape[2] == (size - 1 if p and (size - 1) * s >= h + p else size)


def test_a_window_outside_gives_the_lowest_float(one):
    y = one("Pooling", "pooling_param { pool: MAX kernel_size: 2 stride: 3 }", np.ones((1, 1, 6, 6)))
    assert y.shape[2] == 3
    assert y[0, 0, 2, 2] == -np.finfo(np.float32).max


def test_average_pooling_counts_padding_but_not_beyond(one):
    y = one("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }", np.ones((1, 1, 4, 4)))
    same(y[0, 0], [[4 / 9, 6 / 9, 2 / 6], [6 / 9, 1, 3 / 6], [2 / 6, 3 / 6, 1 / 4]])


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        ("shape { dim: 0 dim: -1 }", (2, 60)),
        ("axis: 2 shape { dim: 20 }", (2, 3, 20)),
        ("axis: -1 num_axes: 0 shape { dim: 1 }", (2, 3, 4, 5, 1)),
        ("axis: 1 num_axes: 2 shape { dim: -1 }", (2, 12, 5)),
    ],
)
def test_reshape(one, spec, shape):
    same(one("Reshape", f"reshape_param {{ {spec} }}", X4), X4.reshape(shape))


def test_permute(one):
    same(one("Permute", "permute_param { order: [0, 2, 3, 1] }", X4), X4.transpose(0, 2, 3, 1))


def test_scale_broadcasts_its_second_bottom_from_an_axis_on(one):
    by = RNG.standard_normal((2, 3))
    same(one("Scale", "scale_param { axis: 0 }", X4, by), X4 * by[:, :, None, None])


def test_slice_in_uneven_parts(one):
    parts = one("Slice", "slice_param { axis: 1 slice_point: 1 slice_point: 4 }", (2, 6, 4), tops=("a", "b", "c"))
    assert [p.shape[1] for p in parts] == [1, 3, 2]


def test_softmax_over_the_last_axis(one):
    e = np.exp(X4)
    same(one("Softmax", "softmax_param { axis: -1 }", X4), e / e.sum(-1, keepdims=True))


def test_lrn_divides_alpha_by_the_size(one):
    x = RNG.standard_normal((1, 5, 2, 2))
    squares = np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    same(one("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 k: 2 }", x), x / (2 + 0.5 / 3 * sums) ** 0.75)


def test_mvn_adds_epsilon_outside_the_root(one):
    mean, deviation = X4.mean((2, 3), keepdims=True), X4.std((2, 3), keepdims=True)
    same(one("MVN", "mvn_param { eps: 0.1 }", X4), (X4 - mean) / (deviation + 0.1))


def test_power_exp_log(one):
    x = RNG.standard_normal((2, 3))
    same(one("Power", "power_param { power: 2 scale: 3 shift: 1 }", x), (1 + 3 * x) ** 2, 1e-4)
    same(one("Exp", "exp_param { base: 2 scale: 3 shift: 1 }", x), 2 ** (1 + 3 * x), 1e-4)
    same(one("Log", "log_param { base: 2 }", np.array([[1.0, 8.0]])), [[0, 3]])


def test_threshold_is_strict(one):
    same(one("Threshold", "", np.array([[0.0, 1.0]])), [[0, 1]])


def test_relu_of_minus_infinity_is_not_a_number(one):
    assert np.isnan(one("ReLU", "", np.array([[-np.inf]]))).all()


def test_argmax_takes_the_last_of_equal_values(one):
    same(one("ArgMax", "argmax_param { axis: 1 }", np.array([[1.0, 3, 3, 2]])), [[2]])


def test_reduction_goes_to_the_end(one):
    same(one("Reduction", "reduction_param { operation: MEAN axis: 1 }", X4), X4.mean((1, 2, 3)))


def test_upsample_repeats(one):
    same(one("Upsample", "upsample_param { scale: 2 }", X4), X4.repeat(2, 2).repeat(2, 3))


def test_pass_through_moves_space_into_channels(one):
    x = RNG.standard_normal((1, 3, 4, 6)).astype(np.float32)
    moved = x.reshape(1, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 12, 2, 3)
    same(one("PassThrough", "pass_through_param { block_height: 2 block_width: 2 }", x), moved)


def test_lrn_in_place_is_silently_wrong(one):
    right, wrong = one("LRN", "", (1, 5, 2, 2)), one("LRN", "", (1, 5, 2, 2), in_place=True)
    assert np.abs(right - wrong).max() > 1e-3


def test_reshape_shares_memory_with_its_bottom(pycaffe, tmp_path):
    files = written(
        tmp_path,
        input_layer("x", 1, 4),
        layer("Reshape", "a", ["x"], ["y"], "reshape_param { shape { dim: 1 dim: 2 dim: 2 } }"),
        layer("ReLU", "r", ["y"], ["y"]),
        layer("Power", "p", ["x"], ["z"]),
    )
    (results,) = pycaffe.run(files, [{"x": np.array([-1, 2, -3, 4])}], [Tap("z")])
    same(results[Tap("z")], [[0, 2, 0, 4]])


def test_weights_that_are_missing_are_no_error(one):
    same(one("InnerProduct", "inner_product_param { num_output: 1 }", np.ones((1, 2))), [[0]])


@pytest.mark.parametrize(
    ("kind", "params", "xs"),
    [
        ("Pooling", "pooling_param { kernel_size: 1 }", [(2, 3, 4)]),
        ("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: -1 } }", [(2, 3, 4)]),
        ("Scale", "scale_param { axis: 0 }", [(2, 3, 4, 5), (2, 3, 1, 1)]),
        ("Eltwise", "", [(2, 3, 4, 4), (2, 3, 1, 1)]),
        ("ReLU", "", [(2, 3), (2, 3)]),
        ("ReLU", "", [(1,) * 33]),
        ("ReLU", "foo_param { x: 1 }", [(2, 3)]),
    ],
)
def test_refused_by_caffe(one, kind, params, xs):
    with pytest.raises(RuntimeCrash):
        one(kind, params, *xs)


def test_an_unknown_layer_is_refused_by_name(one):
    with pytest.raises(RuntimeMissing, match="Foo"):
        one("Foo", "", (2, 3))
