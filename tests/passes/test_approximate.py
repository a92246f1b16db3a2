"""LoseBorders: what a plain Deconvolution of tents computes, and a conversion that asks for it."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe import api
from onnx2caffe.passes.approximate import LoseBorders
from tests.nnie.models import Graph, save
from tests.passes.check import build, counts, infer_all, noise

MODES = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}


def doubled(**modes):
    scales = np.float32([1, 1, 2, 3])
    return build({"x": [1, 2, 4, 5]}, [("Resize", ["x", "", scales], "y", MODES | modes), ("Relu", "y", "z")], ["z"])


def test_the_inside_stays_and_the_border_shrinks():
    model, feeds = doubled(), {"x": np.abs(noise(1, 2, 4, 5)) + 1}
    exact = infer_all(model, feeds)["z"]
    LoseBorders(["n0_Resize"]).call(model)
    assert counts(model) == {"Resize": 1, "Mul": 1, "Relu": 1}
    ratio = infer_all(model, feeds)["z"] / exact
    np.testing.assert_allclose(ratio[..., 1:-1, 1:-1], 1, rtol=1e-6)
    rows, columns = np.ones(8), np.ones(15)
    rows[[0, -1]], columns[[0, -1]] = 1 - 1 / 4, 1 - 1 / 3
    np.testing.assert_allclose(ratio[0, 0], np.outer(rows, columns), rtol=1e-6)


@pytest.mark.parametrize(
    ("modes", "sources"),
    [({}, ["other"]), ({"mode": "nearest"}, ["n0_Resize"]), ({"mode": "cubic"}, ["n0_Resize"])],
    ids=["not asked for", "nearest", "cubic"],
)
def test_what_stays(modes, sources):
    model = doubled(**modes)
    assert not LoseBorders(sources).call(model).modified


@pytest.mark.parametrize("target", ["nnie", "caffe", "bvlc"])
def test_a_conversion_is_proved_against_what_was_asked_for(target, tmp_path, pycaffe):
    g = Graph()
    g.conv("x", "c", 3, 4)
    g.node("Resize", ["c", "", g.constant("k", np.float32([1, 1, 2, 2]))], "big", **MODES)
    g.conv("big", "y", 4, 4)
    path = save(g.model({"x": [1, 3, 8, 8]}, ["y"]), tmp_path)
    recipes = {"resize": "deconvolution", "bilinear": "deconv"}
    done = api.convert(path, tmp_path / "out", target=target, recipes=recipes)
    assert done.proof.ok
    assert {"c", "big", "y"} <= {row.tensor for row in done.proof.rows}
    assert done.proof.without == "the border of its linear enlargements"
    (note,) = (note for note in done.notes if note.level == "warning")
    assert note.text.startswith(
        "1 node approximate (--recipe): against the file as it is, output 'y' differs by up to "
    )
    assert "Deconvolution" in done.prototxt.read_text()
    plain = api.convert(path, tmp_path / "exact", target=target, caffe_run=False)
    assert not plain.proof.without
