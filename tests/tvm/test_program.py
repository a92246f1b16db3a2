"""The constants of a program: those that its calls read, each once."""

from __future__ import annotations

import numpy as np
import pytest

from onnx2caffe.tvm.program import Call, Constant, Input, Program, Type
from onnx2caffe.tvm.registry import DIALECTS
from onnx2caffe.tvm.relay.net import RelayNet
from tests.ops.harness import Case, build, constant
from tests.tvm.harness import emitted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_weight_does_not_stand_beside_its_transposed(dialect: str) -> None:
    model = build(Case("Gemm", 13, ((2, 6), constant(6, 5), constant(5)), {"transB": 0}))
    _, program = emitted(model, dialect)
    arrays = {constant.name: constant.array.shape for constant in program.program.constants}
    assert sorted(arrays.values()) == [(5,), (5, 6) if dialect == "relay" else (6, 5)]


def test_what_is_read_keeps_its_place() -> None:
    kind = Type("float32", (2,))
    constants = [Constant(name, np.full(2, number, np.float32)) for number, name in enumerate("abcd")]
    calls = [
        Call("concat", [[{"input": 0}, {"constant": 3}], 0], {"like": {"constant": 1}}, [kind], False, "n"),
        Call("add", [{"call": 0}, 1], {"mode": "constant"}, [kind], False, "n"),
    ]
    program = Program([Input("x", kind)], constants, calls, [{"call": 1}, {"constant": 3}]).without_unread()
    assert [one.name for one in program.constants] == ["b", "d"]
    assert program.calls[0].args == [[{"input": 0}, {"constant": 1}], 0]
    assert program.calls[0].attrs == {"like": {"constant": 0}}
    assert program.calls[1] == calls[1]
    assert program.outputs == [{"call": 1}, {"constant": 1}]


def test_a_call_alone_is_given_what_it_reads() -> None:
    one, two = Type("float32", (2,)), Type("int32", (3,))
    constants = [Constant(name, np.zeros(2, np.float32)) for name in "ab"]
    calls = [
        Call("topk", [{"input": 0}], {}, [one, two], True, "n"),
        Call("concat", [[{"call": 0, "item": 1}, {"constant": 1}, {"call": 0, "item": 1}]], {}, [one], False, "m"),
    ]
    program = Program([Input("x", one)], constants, calls, [{"call": 1}])
    assert program.alone(0).outputs == [{"call": 0, "item": 0}, {"call": 0, "item": 1}]
    assert program.alone(1).calls[0].args == [[{"input": 0}, {"constant": 0}, {"input": 0}]]
    assert [given.type for given in program.alone(1).inputs] == [two]
    assert [constant.name for constant in program.alone(1).constants] == ["b"]


def test_a_weight_turned_there_and_back_is_the_users_own() -> None:
    net = RelayNet()
    weight = net.const(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    turned = net.transpose(weight, (1, 0))
    assert turned.reference != weight.reference
    assert np.array_equal(turned.array, weight.array.T)
    assert net.transpose(turned, (1, 0)) is weight
