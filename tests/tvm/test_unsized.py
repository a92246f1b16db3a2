"""Ends of a network whose sizes depend on data, from reading to map.json."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import parser

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.canon import is_unsized
from onnx2caffe.errors import NotConvertible, NumbersDiffer, RuntimeCrash
from onnx2caffe.frontend import from_proto
from onnx2caffe.mapfile import Place, Port
from onnx2caffe.tvm.relax import unsized
from tests.tvm.harness import emitted, run

UNSIZED = "the shape of its output depends on data"


def model(body: str, outputs: str = "int64[a, b] y") -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => ({outputs}) {{ r = Relu (x) {body} }}'
    )


NON_ZERO = model("y = NonZero (r)")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(NON_ZERO, path)
    return path


def test_an_export_is_proved_and_its_map_says_what_is_unknown(path, tmp_path, running) -> None:
    running("relax")
    done = onnx2caffe.export_tvm(path, tmp_path / "out", dialect="relax")
    assert done.proof is not None
    assert [(row.tensor, row.judgement.verdict) for row in done.proof.rows] == [("r", "equal"), ("y", "equal")]
    export = mapfile.read(done.map_file)
    assert export.outputs == [Port("y", (2, -1), "int64")]
    assert export.segments[0].outputs == {"y": Place("0", (2, -1))}


def test_a_wrong_number_of_them_is_caught(path, tmp_path, running, monkeypatch) -> None:
    running("relax")
    total = unsized._total
    monkeypatch.setattr(unsized, "_total", lambda net, ones: net("subtract", total(net, ones), net.like(1, ones)))
    with pytest.raises(NumbersDiffer, match=r"'y' differs.*shape"):
        onnx2caffe.export_tvm(path, tmp_path / "out", dialect="relax")
    assert not (tmp_path / "out").exists()


def test_a_size_that_is_known_is_checked(running) -> None:
    tvm = running("relax")
    loaded, program = emitted(NON_ZERO, "relax")
    calls = program.program.calls
    calls[-1] = replace(calls[-1], types=[replace(calls[-1].types[0], shape=(3, -1))])
    with pytest.raises(RuntimeCrash, match="shape"):
        run(tvm, loaded, program, [{"x": np.ones((2, 3), np.float32)}])


def test_a_function_may_hold_one_and_name_its_attributes_otherwise(running) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "mine" : 1]> g (float[3, 2] x) => (float[3, a] y, int64[a] n) {
        r = Relu (x) y, n = mine.Distinct <along = -1> (r)
    }
    <domain: "mine", opset_import: ["" : 18]> Distinct <along> (p) => (q, s) {
        q, i, v, s = Unique <axis: int = @along> (p)
    }"""
    loaded, program = emitted(parser.parse_model(text), "relax")
    x = np.array([[1, 1], [2, 2], [0, -1]], np.float32)
    ((distinct, counts),) = run(running("relax"), loaded, program, [{"x": x}])
    np.testing.assert_array_equal(distinct, [[1], [2], [0]])
    np.testing.assert_array_equal(counts, [2])


@pytest.mark.parametrize("readers", ["z = Transpose (y)", "z = Identity (y) u = Neg (z)"])
def test_nothing_inside_a_net_may_read_them(readers: str) -> None:
    last = "u" if "u =" in readers else "z"
    reading = model(f"y = NonZero (r) {readers}", f"int64[a, b] y, int64[c, d] {last}")
    with pytest.raises(NotConvertible, match=f"NonZero 'y': {UNSIZED}, and '?{last}'? reads it"):
        emitted(reading, "relax")


def test_relay_has_none_of_them() -> None:
    with pytest.raises(NotConvertible, match=f"NonZero 'y': {UNSIZED}$"):
        emitted(NON_ZERO, "relay")


@pytest.mark.parametrize("body", ["y = Compress (r, c)", "s = CastLike (x, n) y = Range (s, s, s)"])
def test_no_other_node_counts_as_an_end(body: str) -> None:
    constants = "n = Constant <value_int = 1> () c = Cast <to = 9> (k)"
    given = model(
        f"k = ReduceMax <keepdims = 0> (x) {constants} {body.replace('(s, s, s)', '(k, k, k)')}", "float[a] y"
    )
    nodes = list(from_proto(given).model.graph)
    assert not any(map(is_unsized, nodes))
