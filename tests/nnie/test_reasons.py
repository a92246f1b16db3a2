"""Why nodes stay ONNX, as the user reads it: one reason per node, about its tensors and not about helpers' layers."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe import api
from onnx2caffe.errors import NotConvertible
from tests.nnie.models import Graph, save


def reasons(model, folder, **options):
    """Node -> why it stays ONNX."""
    done = api.convert(save(model, folder), folder / "out", proof=False, **options)
    found = [note for note in done.notes if note.text.startswith("stays ONNX: ")]
    return {node: note.text.removeprefix("stays ONNX: ") for note in found for node in note.nodes}


def recurrent():
    """A map's columns as the steps of an LSTM, and a dense layer on what it puts out."""
    g = Graph()
    rng = np.random.RandomState(2)
    g.node("Reshape", [g.conv("x", "c", 3, 4), g.constant("flat", np.array([4, 6]))], "columns")
    g.node("Transpose", ["columns"], "turned", perm=[1, 0])
    g.node("Reshape", ["turned", g.constant("steps", np.array([6, 1, 4]))], "sequence")
    for name, size in (("w", 4), ("r", 5)):
        g.constant(name, rng.standard_normal((1, 20, size)).astype(np.float32))
    g.node("LSTM", ["sequence", "w", "r"], "states", hidden_size=5)
    g.node("Reshape", ["states", g.constant("rows", np.array([6, 5]))], "list")
    g.node("MatMul", ["list", g.constant("dense", rng.standard_normal((5, 3)).astype(np.float32))], "y")
    return g.model({"x": [1, 3, 1, 6]}, ["y"])


def test_a_sequence_lies_on_the_batch(tmp_path):
    found = reasons(recurrent(), tmp_path)
    assert found["n_states"].startswith("tensor [6, 1, 4]: nnie E04, work on the batch axis: batch 6; ")
    assert "LSTM and RNN layers ([net_type] 2) are not written" in found["n_states"]
    assert found["n_y"] == "tensor [6, 5]: nnie E04, work on the batch axis: batch 6"


def test_too_many_axes(tmp_path):
    g = Graph()
    g.node("Reshape", [g.conv("x", "c", 3, 4), g.constant("cube", np.array([1, 2, 2, 8, 8]))], "folded")
    g.node("Transpose", ["folded"], "y", perm=[0, 3, 1, 4, 2])
    found = reasons(g.model({"x": [1, 3, 8, 8]}, ["y"]), tmp_path)
    assert found == {"n_y": "tensor [1, 2, 2, 8, 8]: nnie E03, blob of more than 4 axes: 5 axes"}


@pytest.mark.parametrize(("channels", "said"), [(4000, True), (4, False)])
def test_next_to_nothing_on_the_chip(tmp_path, channels, said):
    """A convolution over time, then a small one."""
    g = Graph()
    weights = np.ones((1, channels, 1, 1, 1), np.float32)
    g.node("Conv", ["x", g.constant("w", weights)], "deep")
    g.node("Reshape", ["deep", g.constant("flat", np.array([1, 1, 4, 4]))], "map")
    g.conv("map", "y", 1, 1, 1)
    done = api.convert(save(g.model({"x": [1, channels, 2, 2, 4]}, ["y"]), tmp_path), tmp_path / "out", proof=False)
    warnings = [note.text for note in done.notes if note.level == "warning"]
    assert ("next to none of the multiply-accumulates run on a net" in warnings) == said
    assert ("NNIE: 0.0 % of MACs" in done.summary) == said


def test_machines_get_every_reason(tmp_path):
    (blocked, *_) = api.inspect(save(recurrent(), tmp_path)).illegal
    assert blocked.op == "LSTM"
    assert len(blocked.reasons) > 1
    assert all("; or " not in reason for reason in blocked.reasons)


class TestBatch:
    def model(self, batch):
        g = Graph()
        g.node("Relu", [g.conv("x", "c1", 3, 4)], "r1")
        g.node("MaxPool", [g.conv("r1", "c2", 4, 4)], "y", kernel_shape=[2, 2])
        return g.model({"x": [batch, 3, 8, 8]}, ["y"])

    @pytest.mark.parametrize("partition", [None, False])
    @pytest.mark.parametrize(
        ("batch", "shapes", "hint"),
        [
            ("N", {"x": (2, 3, 8, 8)}, "a net of target nnie has batch 1: --input-shape x:1,3,8,8"),
            (2, {}, "the file says batch 2 for input 'x': export it with batch 1, or a free one"),
        ],
    )
    def test_is_one(self, tmp_path, batch, shapes, hint, partition):
        with pytest.raises(NotConvertible) as problem:
            reasons(self.model(batch), tmp_path, input_shapes=shapes, partition=partition)
        assert problem.value.hint == hint
        if partition is None:
            first, *behind = problem.value.blocked
            assert first.node == "n_c1"
            assert {blocked.reasons for blocked in behind} == {("behind an input that no net takes in",)}
            assert [blocked.node for blocked in behind] == ["n_r1", "n_c2", "n_y"]
            assert "; or " not in problem.value.message
