"""Structured inputs are the recipe's; the user's files and numbers arrive as they should."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from onnx2caffe.errors import UsageError
from onnx2caffe.mapfile import Port
from onnx2caffe.verify.inputs import Pictures, all_runs, feeds

TOOLS = Path(__file__).parents[3] / "shared" / "tools"
SHAPES = [(1, 3, 64, 48), (2, 3, 5, 1), (1, 12, 50), (1, 1, 4, 16, 16), (2, 8), (3,), (1, 2, 1, 7), ()]


@pytest.fixture(scope="module")
def recipe():
    if not (TOOLS / "structured_input.py").is_file():
        pytest.skip("../shared/tools/structured_input.py is not there")
    sys.path.insert(0, str(TOOLS))
    try:
        import structured_input
    finally:
        sys.path.remove(str(TOOLS))
    return structured_input


def port(shape, dtype="float32", name="x"):
    return Port(name, shape, dtype)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_numbers_as_the_recipe(recipe, shape, seed):
    (value,) = feeds([port(shape)], seed).values()
    assert np.array_equal(value, recipe.structured_input(shape, seed).reshape(shape))


def test_second_input_has_its_own_seed(recipe):
    values = feeds([port((1, 3, 8, 8), name="a"), port((1, 3, 8, 8), name="b")], 2)
    assert np.array_equal(values["b"], recipe.structured_input((1, 3, 8, 8), 1002))


def test_channels_last_is_the_same_field(recipe):
    (value,) = feeds([port((1, 20, 30, 3))], 1).values()
    assert np.array_equal(value, recipe.structured_input((1, 20, 30, 3), 1, layout="NHWC"))


def test_bytes_lie_around_128():
    (value,) = feeds([port((1, 3, 32, 32), "uint8")], 0).values()
    assert value.dtype == np.uint8
    assert 100 < value.mean() < 156
    assert value.std() > 30


def test_integers_are_not_negative_and_booleans_mixed():
    assert (feeds([port((4, 50), "int64")], 0)["x"] >= 0).all()
    assert 0 < feeds([port((4, 50), "bool")], 0)["x"].mean() < 1


def test_numbers_hold_in_every_run():
    runs = list(all_runs([port((1, 3, 4, 4), name="a"), port((1,), "int64", "rate=x")], (0, 1), ["rate=x=16000"]))
    assert [run["rate=x"].item() for run in runs] == [16000, 16000]
    assert not np.array_equal(runs[0]["a"], runs[1]["a"])


def test_numbers_one_by_one():
    (run,) = all_runs([port((1, 3))], (0,), ["x=1,2,3.5"])
    assert run["x"].tolist() == [[1, 2, 3.5]]


def test_file_makes_a_run_of_its_own(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 4)))
    runs = list(all_runs([port((1, 3, 4))], (0,), [f"x={tmp_path / 'x.npy'}"]))
    assert len(runs) == 2
    assert (runs[1]["x"] == 1).all()


@pytest.fixture
def picture(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[..., 0], pixels[..., 1], pixels[..., 2] = 10, 20, 30
    path = tmp_path / "p.png"
    image.fromarray(pixels).save(path)
    return path


def test_picture_is_bgr_and_normalised(picture):
    how = Pictures(mean=(1.0, 2.0, 3.0), std=(2.0,), scale=0.5)
    (run,) = all_runs([port((1, 3, 4, 6))], (), [f"x={picture}"], how)
    assert run["x"].shape == (1, 3, 4, 6)
    assert run["x"][0, :, 0, 0].tolist() == [(15 - 1) / 2, (10 - 2) / 2, (5 - 3) / 2]


def test_picture_in_rgb_channels_last_bytes(picture):
    (run,) = all_runs([port((1, 8, 8, 3), "uint8")], (), [f"x={picture}"], Pictures(rgb=True))
    assert run["x"].dtype == np.uint8
    assert run["x"][0, 0, 0].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("channels", "how", "words"),
    [
        (3, Pictures(mean=(1.0, 2.0)), "--mean has 2 numbers; input 'x' takes 1 number or 3$"),
        (3, Pictures(std=(1.0,) * 4), "--std has 4 numbers; input 'x' takes 1 number or 3$"),
        (1, Pictures(mean=(1.0, 2.0, 3.0)), "--mean has 3 numbers; input 'x' takes 1 number$"),
    ],
)
def test_a_number_per_channel(picture, channels, how, words):
    with pytest.raises(UsageError, match=words):
        list(all_runs([port((1, channels, 4, 6))], (), [f"x={picture}"], how))


@pytest.mark.parametrize("how", [Pictures(scale=1 / 255), Pictures(mean=(200.0,)), Pictures(scale=100.0)])
def test_bytes_that_would_not_be_bytes(picture, how):
    with pytest.raises(UsageError, match="input 'x' is uint8"):
        list(all_runs([port((1, 8, 8, 3), "uint8")], (), [f"x={picture}"], how))


def test_picture_without_pillow_names_the_extra(picture, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UsageError) as caught:
        list(all_runs([port((1, 3, 4, 6))], (), [f"x={picture}"]))
    assert "pip install pillow" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y=1", "names no input"),
        ("x", "names no input"),
        ("x=picture.tif", "neither a number"),
        ("x=1,2", "has shape"),
        ("x=missing.npy", "cannot read"),
        ("x=missing.png", "cannot read"),
    ],
)
def test_wrong_inputs_are_named(text, words):
    with pytest.raises(UsageError, match=words):
        list(all_runs([port((1, 3, 4, 4))], (0,), [text]))


def test_array_of_another_shape_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 3)))
    with pytest.raises(UsageError, match="shape"):
        list(all_runs([port((3, 4))], (0,), [f"x={tmp_path / 'x.npy'}"]))
