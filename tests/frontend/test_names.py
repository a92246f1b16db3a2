"""Names and provenance, and the check that a model is canonical."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnx2caffe import canon
from onnx2caffe.frontend import from_proto, invariants
from onnx2caffe.frontend.names import Names, add_sources, names_of, replace_value
from tests.frontend.build import parsed


def chain() -> ir.Model:
    return from_proto(
        parsed("g (float[2, 3] x) => (float[6] y) { a = Relu (x)\n b = Neg (a)\n s = Constant <value_ints = [6]> ()\n"
               "y = Reshape (b, s) }")
    ).model  # fmt: skip


def names(value: ir.Value) -> list[str]:
    return [t.name for t in canon.tensors(value)]


def test_new_names_are_not_taken_twice() -> None:
    maker = Names(["a", "a__x"])
    assert [maker.new("a", "x"), maker.new("a", "x"), maker.new("b", "x")] == ["a__x__2", "a__x__3", "b__x"]
    assert maker.unique("a__x__2") == "a__x__2__2"


def test_names_of_a_graph_know_all_its_names() -> None:
    maker = names_of(chain().graph)
    assert [maker.unique(n) for n in ("x", "a", "y", "free")] == ["x__2", "a__2", "y__2", "free"]


def test_the_users_name_moves_with_the_values() -> None:
    model = chain()
    neg = list(model.graph)[1]
    relu = neg.inputs[0]
    assert relu is not None
    double = ir.node("Mul", [relu, relu])
    double.outputs[0].name = "b__mul"
    double.outputs[0].type, double.outputs[0].shape = relu.type, relu.shape
    neg.append(double)
    replace_value(neg.outputs[0], double.outputs[0])
    assert double.outputs[0].name == "b"
    assert names(double.outputs[0]) == ["b"]
    model.graph.remove(neg, safe=True)
    double.name = "double"
    invariants.check(model)


def test_a_removed_reshape_leaves_its_tensors_with_its_input() -> None:
    model = chain()
    reshape = list(model.graph)[2]
    source = reshape.inputs[0]
    assert source is not None
    replace_value(reshape.outputs[0], source)
    assert [(t.name, t.shape) for t in canon.tensors(source)] == [("b", (2, 3)), ("y", (6,))]
    assert source.name == "b"
    assert model.graph.outputs[0] is source


def test_sources_accumulate_once() -> None:
    node = next(iter(chain().graph))
    add_sources(node, ["b", "a", "b"])
    assert canon.sources(node) == ("a", "b")


def test_a_loaded_model_is_canonical() -> None:
    assert list(invariants.violations(chain())) == []


def spoil_opset(model: ir.Model) -> None:
    model.graph.opset_imports[""] = 17


def spoil_shape(model: ir.Model) -> None:
    next(iter(model.graph)).outputs[0].shape = ir.Shape(["N", 3])


def spoil_dtype(model: ir.Model) -> None:
    next(iter(model.graph)).outputs[0].type = ir.TensorType(ir.DataType.FLOAT16)


def spoil_op(model: ir.Model) -> None:
    next(iter(model.graph)).op_type = "Identity"


def spoil_dead(model: ir.Model) -> None:
    dead = ir.node("Exp", [model.graph.inputs[0]], name="dead")
    dead.outputs[0].name, dead.outputs[0].type, dead.outputs[0].shape = (
        "d",
        ir.TensorType(ir.DataType.FLOAT),
        ir.Shape([2, 3]),
    )
    model.graph.append(dead)


def spoil_target(model: ir.Model) -> None:
    target = list(model.graph)[2].inputs[1]
    assert target is not None
    target.const_value = ir.Tensor(np.asarray([-1]))


def spoil_names(model: ir.Model) -> None:
    first, second, _ = model.graph
    second.name = first.name


def spoil_tensors(model: ir.Model) -> None:
    first, second, _ = model.graph
    second.outputs[0].meta["tensors"] = canon.tensors(first.outputs[0])


SPOILT = {
    spoil_opset: "opset 17", spoil_shape: "static", spoil_dtype: "FLOAT16", spoil_op: "no such op", spoil_dead: "dead",
    spoil_target: "target", spoil_names: "twice", spoil_tensors: "two values",
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "words"), SPOILT.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_violations_are_named(spoil: object, words: str) -> None:
    model = chain()
    spoil(model)  # type: ignore[operator]
    with pytest.raises(invariants.NotCanonical, match=words):
        invariants.check(model)
