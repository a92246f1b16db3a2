"""A row of tests/ops in a TVM dialect: the product's own path, without driver and files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from onnx2caffe import frontend
from onnx2caffe.passes import pipeline
from onnx2caffe.runtimes.tvm import CallFault, Tvm
from onnx2caffe.tvm import stops
from onnx2caffe.tvm.emit import Emitted, emit
from tests.ops.harness import Array, Case, Shape, build, difference, free, reference, sample


def emitted(
    model: onnx.ModelProto, dialect: str, shapes: Mapping[str, Shape] | None = None, *, plain_c: bool = False
) -> tuple[frontend.Loaded, Emitted]:
    """The program of a model; `shapes` are those of the feeds, for free dimensions."""
    loaded = frontend.from_proto(model, input_shapes=free(model, shapes or {}))
    stops.check(loaded)
    pipeline.run(loaded.model, pipeline.pipeline("tvm"))
    return loaded, emit(loaded.model, dialect, plain_c=plain_c)


def run(tvm: Tvm, loaded: frontend.Loaded, program: Emitted, feeds: list[dict[str, Array]]) -> list[list[Array]]:
    """The program's outputs on each of the feeds."""
    try:
        tvm.load(program.program.to_json(), program.program.arrays)
    except CallFault as fault:
        raise AssertionError(f"{program.program.calls[fault.number]}: {fault}") from fault
    tvm.build_quickly()
    given = list(zip(loaded.model.graph.inputs, program.program.inputs, strict=True))
    return [tvm.run([np.asarray(feed[v.name or ""], i.type.dtype) for v, i in given]) for feed in feeds]


def check(case: Case, tvm: Tvm, seeds: int = 2) -> Emitted:
    """Emit a case and hold every output against onnxruntime."""
    model = build(case)
    loaded, program = emitted(model, tvm.name)
    feeds = [sample(case, model, seed) for seed in range(seeds)]
    expected = [reference(case.same_as or model, feed) for feed in feeds]
    fns = [call.fn for call in program.program.calls]
    for values, results in zip(expected, run(tvm, loaded, program, feeds), strict=True):
        for output, result in zip(loaded.outputs, results, strict=True):
            assert result.shape == values[output.name].shape, f"{output.name}: {fns}"
            e = difference(values[output.name], result)
            assert e <= case.tolerance, f"{tvm.name}: {output.name} e={e:.2e}; {fns}"
    return program
