"""Recurrent ops with layout 1 (batch first), which onnxruntime lacks: held against layout 0 on transposed arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onnx2caffe.runtimes.base import Tap
from onnx2caffe.targets.caffe import BVLC, CAFFE
from tests.ops.harness import Case, build, constant, convert, difference, reference

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _pair(op: str, direction: str) -> tuple[Case, Case]:
    """A case with layout 0 and the same with layout 1; computed initial states."""
    two, gates, hidden, items, steps, width = 1 + (direction == "bidirectional"), _GATES[op], 4, 2, 3, 5
    weights = constant(two, gates * hidden, width, scale=0.5), constant(two, gates * hidden, hidden, seed=1, scale=0.5)
    states = [(two, items, hidden)] * (2 if op == "LSTM" else 1)
    attributes = {"hidden_size": hidden, "direction": direction}
    first = Case(op, 14, ((steps, items, width), *weights, None, None, *states), attributes, 1 + len(states))
    turned = ((items, steps, width), *weights, None, None, *[(items, two, hidden)] * len(states))
    return first, replace(first, inputs=turned, attributes={**attributes, "layout": 1})


@pytest.mark.parametrize("target", [CAFFE, BVLC], ids=lambda t: t.name)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_batch_first(op, direction, target, tmp_path, runtimes) -> None:
    steps_first, batch_first = _pair(op, direction)
    written = convert(build(batch_first), target, tmp_path)
    rng = np.random.default_rng(0)
    shapes = {f"x{i}": s for i, s in enumerate(steps_first.inputs) if isinstance(s, tuple)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    expected = reference(build(steps_first), feeds)
    turned = {written.inputs[name]: feed.swapaxes(0, 1) for name, feed in feeds.items()}
    for runtime in runtimes:
        (results,) = runtime.run(written.files, [turned], [Tap(b) for b in written.outputs.values()])
        for name, r in expected.items():
            own = r.transpose(2, 0, 1, 3) if name == "y0" else r.swapaxes(0, 1)
            assert difference(own, results[Tap(written.outputs[name])]) <= 1e-5, f"{runtime.name}: {name}"
