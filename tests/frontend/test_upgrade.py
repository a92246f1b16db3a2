"""Every (op, version) in the upgrade table against onnxruntime on the file as written."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from onnx2caffe import canon
from onnx2caffe.frontend import from_proto, invariants
from onnx2caffe.frontend.builder import RANDOM
from onnx2caffe.frontend.upgrade import UPGRADES
from tests.frontend.cases import CASES, Case, Const

ort.set_default_logger_severity(4)

STRUCTURAL = {
    "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct",
    "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence", "NhwcConv",
}  # fmt: skip
"""Tested in test_walk.py: they need more than one node."""


def model(case: Case, version: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    names, graph_inputs, initializers, feeds = [], [], [], {}
    for i, given in enumerate(case.inputs):
        names.append("" if given is None else f"i{i}")
        if isinstance(given, Const):
            initializers.append(numpy_helper.from_array(given.array, f"i{i}"))
        elif given is not None:
            feeds[f"i{i}"] = np.asarray(given)
            kind = helper.np_dtype_to_tensor_dtype(feeds[f"i{i}"].dtype)
            graph_inputs.append(helper.make_tensor_value_info(f"i{i}", kind, feeds[f"i{i}"].shape))
    outputs = [f"o{i}" for i in range(case.outputs)]
    attributes = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in case.attributes.items()}
    node = helper.make_node(case.op, names, outputs, name="the node", domain=case.domain, **attributes)
    graph = helper.make_graph([node], "g", graph_inputs, [onnx.ValueInfoProto(name=o) for o in outputs], initializers)
    opsets = [helper.make_opsetid("", 17 if case.domain else max(version, 7))]
    if case.domain:
        opsets.append(helper.make_opsetid(case.domain, 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


NO_KERNEL = {"MaxRoiPool", "RoiAlign", "GlobalLpPool", "MaxUnpool"}
"""Ops whose newest version (22: more types, same meaning) onnxruntime lacks: run as version 21's."""


def session(proto: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def runnable(proto: onnx.ModelProto) -> onnx.ModelProto:
    if any(node.op_type in NO_KERNEL for node in proto.graph.node):
        proto = onnx.ModelProto.FromString(proto.SerializeToString())
        proto.opset_import[0].version = min(proto.opset_import[0].version, 21)
    return proto


def reference(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """onnxruntime; onnx's reference where onnxruntime has no kernel for this opset."""
    proto = runnable(proto)
    try:
        return session(proto).run(None, feeds)
    except Exception:  # onnxruntime's exceptions have no base of their own
        results = [np.asarray(a) for a in ReferenceEvaluator(proto).run(None, feeds)]
        double = any(a.dtype == np.float64 for a in feeds.values())  # numpy's own scalars make doubles too
        return results if double else [a.astype(np.float32) if a.dtype == np.float64 else a for a in results]


def id_of(pair: tuple[Case, int]) -> str:
    return f"{pair[0].id}-v{pair[1]}"


PAIRS = [(case, version) for case in CASES for version in case.versions]


@pytest.mark.parametrize("pair", PAIRS, ids=map(id_of, PAIRS))
def test_upgrade_computes_what_the_file_computes(pair: tuple[Case, int]) -> None:
    case, version = pair
    proto, feeds = model(case, version)
    want = reference(proto, feeds)
    loaded = from_proto(proto)
    assert [n.meta["opaque"] for n in loaded.model.graph if canon.is_opaque(n)] == []
    invariants.check(loaded.model)
    if case.expect is not None:
        assert tuple(n.op_type for n in loaded.model.graph) == case.expect
    runner = session(runnable(ir.to_proto(loaded.model)))
    got = runner.run(None, {i.name: feeds[i.name] for i in runner.get_inputs()})
    for a, b, info in zip(want, got, loaded.outputs, strict=True):
        assert info.shape == a.shape == b.shape
        assert info.dtype == a.dtype.name == b.dtype.name
        if a.dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(b, a)


def test_every_entry_of_the_table_is_tested() -> None:
    tested = {(case.domain, case.op, version) for case, version in PAIRS}
    table = {key for key in UPGRADES if key[1] not in RANDOM | STRUCTURAL}
    assert {(domain, op, version) for domain, op, version in table - tested if not ended(op, version)} == set()


def ended(op: str, version: int) -> bool:
    """Whether a version ended before opset 7, the oldest that onnxruntime runs: tested in tests/ops/cases_legacy.py."""
    return onnx.defs.get_schema(op, 7, "").since_version > version
