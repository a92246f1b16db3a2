"""A row of every op through `--target c`: compiled by this machine's gcc, equal to onnxruntime."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx2caffe import ccode, cli
from onnx2caffe.errors import NotConvertible
from onnx2caffe.nodeview import Refused
from onnx2caffe.runtimes import c as runtime
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.tvm.net import Value
from onnx2caffe.tvm.program import Type
from onnx2caffe.tvm.relay.plain import PlainNet
from tests.ops.cases_unsized import CASES as UNSIZED
from tests.ops.harness import Array, Case, all_cases, build, difference, reference, sample
from tests.tvm.harness import emitted
from tests.tvm.test_ops import refusal

EACH = {"And", "MaxRoiPool", "TopK", "Trilu"}
"""Ops of which C has some rows in a form of its own, or not: all their rows."""

REFUSED = {
    "TopK11-1x25600_1--refused": "655360000 comparisons",
    **{
        case.name(): "constant truths, which where reads"
        for case in all_cases()
        if case.op == "MaxRoiPool" and not case.refused
    },
    **{case.name(): "depends on data" for case in UNSIZED},
}
"""Rows that Relay takes and C does not."""


def rows() -> list[Case]:
    cases = sorted(all_cases(), key=lambda case: bool(case.refused))
    first = {case.op: case for case in reversed(cases)}
    return [case for case in cases if case is first[case.op] or case.op in EACH]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name()) for case in rows()])
def test_op(case: Case, tmp_path: Path, running) -> None:
    if (cc := runtime.compiler()) is None:
        pytest.skip("apt-get install gcc")
    model = build(case)
    if text := REFUSED.get(case.name(), "") or refusal(case, "relay"):
        with pytest.raises(NotConvertible, match=text):
            emitted(model, "relay", plain_c=True)
        return
    feeds = sample(case, model, 0)
    expected = reference(case.same_as or model, feeds)
    for name, value in ran(model, feeds, running("relay"), tmp_path, cc).items():
        e = difference(expected[name], value)
        assert e <= case.tolerance, f"{name} e={e:.2e}"


def ran(model: onnx.ModelProto, feeds: Mapping[str, Array], tvm: Tvm, folder: Path, cc: str) -> dict[str, Array]:
    """The outputs of a model as C."""
    loaded, program = emitted(model, "relay", plain_c=True)
    code = ccode.write(tvm, loaded, program, folder, name="row", opt_level=3)
    face = code.interface
    units = [folder / code.files[what] for what in ("c", "operators")]
    with contextlib.closing(runtime.CLibrary(units, face.function, cc)) as library:
        given = [np.asarray(feeds[a.tensor], a.type.dtype).reshape(a.type.shape) for a in face.inputs]
        found = library.run(given, [(a.type.dtype, a.type.shape) for a in face.outputs])
    return {a.tensor: value for a, value in zip(face.outputs, found, strict=True)}


@pytest.mark.parametrize("fn", ["argsort", "sort", "topk"])
def test_what_the_runtime_does_is_refused(fn: str) -> None:
    net = PlainNet()
    with pytest.raises(Refused, match=f"function {fn}"):
        net(fn, Value({"input": 0}, Type("float32", (3,))))


def test_truths_that_would_need_memory_are_refused() -> None:
    net = PlainNet()
    x, known = Value({"input": 0}, Type("bool", (2,))), net.const(np.array([True, False]))
    with pytest.raises(Refused, match="constant truths, which equal reads"):
        net("equal", x, known, dtype="bool")


def test_a_refusal_names_the_node_before_anything_is_built(tmp_path: Path, capsys) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], name="far too many")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, n)) for name, n in (("x", 25600), ("y", 3)))
    k = helper.make_tensor("k", TensorProto.INT64, (1,), [3])
    model = helper.make_model(
        helper.make_graph([node], "net", [x], [y], [k]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    onnx.save(model, tmp_path / "net.onnx")
    assert cli.main(["tvm", str(tmp_path / "net.onnx"), "--target", "c", "-o", str(tmp_path / "out")]) == 3
    assert "TopK 'far too many': plain C has no runtime that sorts" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
