"""Small models in onnx's text format, run as written and as loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

from onnx2caffe.frontend import Loaded, from_proto, invariants

__all__ = ["assert_equal", "ops", "parsed", "run"]

ort.set_default_logger_severity(4)


def parsed(text: str, opset: int = 17, header: str = "") -> onnx.ModelProto:
    """A model of the given graph text."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}{header}]>\n{text}')


def run(proto: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = {i.name for i in session.get_inputs()}
    return list(session.run(None, {k: v for k, v in feeds.items() if k in names}))


def ops(loaded: Loaded) -> list[str]:
    return [node.op_type for node in loaded.model.graph]


def assert_equal(proto: onnx.ModelProto, **options: Any) -> Loaded:
    """Load, check the invariants, and compare with the file as written on random inputs."""
    loaded = from_proto(proto, **options)
    invariants.check(loaded.model)
    rng = np.random.default_rng(0)
    feeds = {i.name: rng.normal(size=i.shape).astype(i.dtype) for i in loaded.inputs}
    want = run(proto, feeds)
    got = run(ir.to_proto(loaded.model), feeds)
    assert len(want) == len(got) == len(loaded.outputs)
    for a, b, info in zip(want, got, loaded.outputs, strict=True):
        assert a.shape == b.shape == info.shape
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)
    return loaded
