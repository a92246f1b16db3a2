"""The measure: what is equal, what differs, what cannot be judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx2caffe.verify.measure import Sample, Verdict, judge, shaken
from onnx2caffe.verify.reference import UserModel

RNG = np.random.default_rng(0)
R = RNG.standard_normal((2, 3, 5)).astype(np.float32)


def sample(plain, **others):
    return Sample(plain, others.get("optimised", plain), others.get("shaken", plain), others.get("rough"))


def test_same_values_are_equal():
    judgement = judge(sample(R), R.copy())
    assert judgement.verdict is Verdict.EQUAL
    assert (judgement.error, judgement.cosine) == (0, pytest.approx(1))


@pytest.mark.parametrize(("off", "verdict"), [(0.9e-4, Verdict.EQUAL), (1.1e-4, Verdict.DIFFERS)])
def test_error_is_relative_to_the_largest_value(off, verdict):
    candidate = R.copy()
    candidate[0, 0, 0] += off * np.abs(R).max()
    assert judge(sample(R), candidate).verdict is verdict


def test_own_noise_widens_what_is_allowed():
    optimised = R.copy()
    optimised[0, 0, 0] += 1e-3 * np.abs(R).max()
    candidate = R.copy()
    candidate[1, 1, 1] += 5e-3 * np.abs(R).max()
    judgement = judge(sample(R, optimised=optimised), candidate)
    assert judgement.verdict is Verdict.EQUAL
    assert judgement.allowed == pytest.approx(1e-2, rel=1e-3)


@pytest.mark.parametrize("noise", ["optimised", "shaken", "rough"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_a_size_that_rounding_changes_is_no_evidence(noise, dtype):
    plain = np.arange(6).reshape(2, 3).astype(dtype)
    judgement = judge(sample(plain, **{noise: plain[:1]}), plain[:1])
    assert judgement.verdict is Verdict.UNJUDGED
    assert "size" in judgement.why


def test_too_much_own_noise_is_no_evidence():
    optimised = R.copy()
    optimised[0, 0, 0] += 6e-3 * np.abs(R).max()
    assert judge(sample(R, optimised=optimised), R + 1).verdict is Verdict.UNJUDGED


def test_turned_direction_is_no_evidence():
    small = np.full((1000,), 1e-3, np.float32)
    small[0] = 1
    turned = small.copy()
    turned[1:] += np.where(np.arange(999) % 2, 4e-3, -4e-3).astype(np.float32)
    assert judge(sample(small, shaken=turned), small).verdict is Verdict.UNJUDGED


def test_cosine_catches_small_errors_everywhere():
    peak = np.full((100000,), 1e-5, np.float32)
    peak[0] = 1e-2
    assert judge(sample(peak), np.where(peak < 1e-3, -peak, peak) * 1).verdict is Verdict.DIFFERS


def test_shapes_must_be_the_same():
    judgement = judge(sample(R), R.reshape(3, 2, 5))
    assert judgement.verdict is Verdict.DIFFERS
    assert "shape [3, 2, 5], expected [2, 3, 5]" in judgement.why


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite_where_the_reference_is(bad):
    candidate = R.copy()
    candidate[0, 0, 0] = bad
    assert judge(sample(R), candidate).verdict is Verdict.DIFFERS
    assert judge(sample(candidate), R).verdict is Verdict.DIFFERS


@pytest.mark.parametrize(("value", "verdict"), [(-3e38, Verdict.EQUAL), (3e38, Verdict.DIFFERS), (0, Verdict.DIFFERS)])
def test_large_numbers_stand_for_infinity(value, verdict):
    reference, candidate = R.copy(), R.copy()
    reference[0, 0, 0], candidate[0, 0, 0] = -np.inf, value
    assert judge(sample(reference), candidate).verdict is verdict


def test_nan_matches_nan():
    both = R.copy()
    both[0, 0, 0] = np.nan
    assert judge(sample(both), both.copy()).verdict is Verdict.EQUAL


def test_zeros_are_equal_to_zeros():
    zeros = np.zeros((3, 3), np.float32)
    assert judge(sample(zeros), zeros).verdict is Verdict.EQUAL


def test_empty_tensors_are_equal():
    empty = np.zeros((0, 4), np.float32)
    assert judge(sample(empty), empty).verdict is Verdict.EQUAL


def test_integers_arrive_as_floats():
    whole = np.arange(20, dtype=np.int64)
    assert judge(sample(whole, optimised=whole), whole.astype(np.float32) + 0.1).verdict is Verdict.EQUAL
    assert judge(sample(whole, optimised=whole), whole.astype(np.float32) + 1).verdict is Verdict.DIFFERS


def test_integers_may_flip_as_the_reference_does():
    whole = np.arange(100, dtype=np.int64)
    flipped = whole.copy()
    flipped[:3] += 1
    candidate = whole.astype(np.float32)
    candidate[10:13] += 1
    assert judge(sample(whole, optimised=whole, rough=flipped), candidate).verdict is Verdict.EQUAL
    candidate[13] += 1
    assert judge(sample(whole, optimised=whole, rough=flipped), candidate).verdict is Verdict.DIFFERS
    assert judge(sample(whole, optimised=np.flip(whole)), candidate).verdict is Verdict.UNJUDGED


def test_booleans_are_zeros_and_ones():
    truth = np.array([True, False, True])
    assert judge(sample(truth, optimised=truth), np.array([1, 0, 1], np.float32)).verdict is Verdict.EQUAL
    assert judge(sample(truth, optimised=truth), np.array([1, 1, 1], np.float32)).verdict is Verdict.DIFFERS


def test_shaking_moves_floats_only():
    feeds = {"x": R, "n": np.arange(5)}
    moved = shaken(feeds, 1e-6)
    assert moved["n"] is feeds["n"]
    assert 0 < np.abs(moved["x"] - R).max() < 1e-4


def test_a_cold_tensor_off_by_rounding_is_unjudged():
    cold = np.linspace(1e-7, 3e-6, 12, dtype=np.float32)
    sample = Sample(cold, cold, cold)
    assert judge(sample, cold + np.float32(5e-8)).verdict is Verdict.UNJUDGED
    assert judge(sample, cold).verdict is Verdict.EQUAL
    assert judge(sample, cold + np.float32(1e-6)).verdict is Verdict.DIFFERS
    warm = np.linspace(1e-3, 3e-2, 12, dtype=np.float32)
    assert judge(Sample(warm, warm, warm), warm * np.float32(1.001)).verdict is Verdict.DIFFERS


def test_equal_scores_that_rounding_parts_are_no_evidence():
    """Softmax of equal scores near 1e10: floats there are 1024 apart, and a shaken input parts none."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["scores"], name="conv"),
        helper.make_node("Softmax", ["scores"], ["shares"], name="softmax", axis=1),
    ]
    w = numpy_helper.from_array(np.full((50, 8, 1, 1), 1e9, np.float32), "w")
    graph = helper.make_graph(
        nodes,
        "scores",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 1, 1])],
        [helper.make_tensor_value_info("shares", TensorProto.FLOAT, [1, 50, 1, 1])],
        [w],
    )
    file = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString()
    model, feeds = UserModel(file, ["scores"]), {"x": np.linspace(0.5, 2, 8, dtype=np.float32).reshape(1, 8, 1, 1)}
    plain = model.sample(feeds, ["scores", "shares"])
    other = np.zeros((1, 50, 1, 1), np.float32)
    other[0, 3] = 1
    assert judge(plain["shares"], other).verdict is Verdict.DIFFERS
    rounded = model.rounded(feeds, ["scores", "shares"])
    assert judge(replace(plain["shares"], rounded=rounded["shares"]), other).verdict is Verdict.UNJUDGED
    scores = replace(plain["scores"], rounded=rounded["scores"])
    assert judge(scores, scores.plain * np.float32(1.001)).verdict is Verdict.DIFFERS
    assert not any(np.array_equal(other, scores.plain) for other in rounded["scores"])


def test_a_model_that_answers_nan_alone_is_no_evidence():
    nan = np.full((1, 3), np.nan, np.float32)
    assert judge(Sample(nan, nan, nan), nan).verdict is Verdict.UNJUDGED
    assert judge(Sample(nan, nan, nan), np.zeros_like(nan)).verdict is Verdict.DIFFERS


def test_the_first_of_equal_scores_is_no_evidence():
    """ArgMax of saturated tanhs: each of two that are equal is the greater one when rounded one way or the other."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["scores"], name="tanh"),
        helper.make_node("ArgMax", ["scores"], ["best"], name="best", axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "best",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 40])],
        [helper.make_tensor_value_info("best", TensorProto.INT64, [1, 40])],
    )
    file = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString()
    x = np.full((1, 2, 40), 20, np.float32)
    x[0, 0, 20:] = 0.5
    model, feeds = UserModel(file, ["scores"]), {"x": x}
    plain = model.sample(feeds, ["best"])["best"]
    tied, wrong = plain.plain.copy(), plain.plain.copy()
    tied[0, 7] = 1
    wrong[0, 27] = 0
    rounded = replace(plain, rounded=model.rounded(feeds, ["best"])["best"])
    assert judge(plain, tied).verdict is Verdict.DIFFERS
    assert judge(rounded, tied).verdict is not Verdict.DIFFERS
    assert (rounded.rounded[0] != rounded.rounded[1])[0].tolist() == [True] * 20 + [False] * 20
