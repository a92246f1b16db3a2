"""Random graphs are equal in every runtime on every target, or refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings

from onnx2caffe.errors import Unsupported
from onnx2caffe.runtimes.base import Tap
from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.targets.caffe import BVLC, CAFFE
from tests.fuzz.graphs import models
from tests.ops.harness import convert, difference, reference

EXAMPLES = int(os.environ.get("ONNX2CAFFE_FUZZ", "1000"))
"""Per target: CI runs 2,000 in all, `make fuzz N=…` as many as asked."""


@pytest.fixture(scope="module")
def runtimes(pycaffe):
    return [Builtin(), pycaffe]


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: (1.5 * rng.standard_normal(s)).astype(np.float32) for name, s in shapes.items()}


def shaken(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {k: (v * (1 + 1e-6 * rng.standard_normal(v.shape))).astype(np.float32) for k, v in feeds.items()}


@pytest.mark.parametrize("target", [CAFFE, BVLC], ids=lambda t: t.name)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    derandomize="ONNX2CAFFE_FUZZ" not in os.environ,
    print_blob=True,
)
@given(model=models())
def test_random_graph(model: onnx.ModelProto, target, runtimes, tmp_path_factory) -> None:
    feeds = feeds_of(model)
    try:
        expected, near = reference(model, feeds), reference(model, shaken(feeds))
    except Exception:
        assume(False)
    judged = [k for k, r in expected.items() if np.isfinite(r).all() and difference(r, near[k]) < 5e-3]
    assume(judged)
    try:
        written = convert(model, target, folder(tmp_path_factory))
    except Unsupported:
        return
    blobs = {written.inputs[k]: v for k, v in feeds.items() if k in written.inputs}
    taps = [Tap(b) for b in dict.fromkeys(written.outputs.values())]
    for runtime in runtimes:
        (results,) = runtime.run(written.files, [blobs], taps)
        for name in judged:
            allowed = max(1e-4, 10 * difference(expected[name], near[name]))
            e = difference(expected[name], results[Tap(written.outputs[name])])
            assert e <= allowed, f"{runtime.name}: {name} e={e:.1e} allowed {allowed:.1e}; {written.types}"


def folder(factory) -> Path:
    """One folder for all examples: the files are rewritten each time."""
    base = Path(factory.getbasetemp()) / "fuzz"
    base.mkdir(exist_ok=True)
    return base
