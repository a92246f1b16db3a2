"""Functions, control flow, sequences, folding, opaque nodes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from onnx2caffe import canon
from onnx2caffe.errors import UnreadableFile
from onnx2caffe.frontend import from_proto, invariants
from tests.frontend.build import assert_equal, ops, parsed, run


def test_shape_chain_folds_to_one_reshape() -> None:
    proto = parsed(
        """g (float[2, 3, 4] x) => (float[2, 12] y) {
            s = Shape (x)
            zero = Constant <value_int = 0> ()
            n = Gather <axis = 0> (s, zero)
            axes = Constant <value_ints = [0]> ()
            n1 = Unsqueeze (n, axes)
            rest = Constant <value_ints = [-1]> ()
            target = Concat <axis = 0> (n1, rest)
            y = Reshape (x, target)
        }"""
    )
    assert ops(assert_equal(proto)) == ["Reshape"]


def test_functions_are_inlined_with_their_attributes() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "loc" : 1]>
        g (float[1, 4] x) => (float[1, 4] y) { t = loc.twice <alpha = 0.3> (x)
            y = loc.twice <alpha = 0.1> (t) }
        <domain: "loc", opset_import: ["" : 11, "loc" : 1]>
        twice <alpha> (a) => (b) { c = loc.once <alpha: float = @alpha> (a)
            b = loc.once <alpha: float = @alpha> (c) }
        <domain: "loc", opset_import: ["" : 11]>
        once <alpha> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }"""
    )
    loaded = assert_equal(proto)
    assert ops(loaded) == ["LeakyRelu"] * 4
    nodes = list(loaded.model.graph)
    assert [canon.attribute(n, "alpha") for n in nodes] == pytest.approx([0.3, 0.3, 0.1, 0.1])
    assert [canon.sources(n) for n in nodes] == [("t",), ("t",), ("y",), ("y",)]
    assert [t.name for n in nodes for t in canon.tensors(n.outputs[0])] == ["t", "y"]


def test_functions_that_call_each_other_are_refused() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "loc" : 1]>
        g (float[1, 4] x) => (float[1, 4] y) { y = loc.f (x) }
        <domain: "loc", opset_import: ["loc" : 1]> f (a) => (b) { b = loc.f (a) }"""
    )
    with pytest.raises(UnreadableFile, match="nested"):
        from_proto(proto)


CONDITIONAL = """g (float[1, 4] x{extra}) => (float[1, 4] y) {{
    {condition}
    y = If (c) <then_branch = a () => (float[1, 4] p) {{ q = Relu (x)
        p = Neg (q) }}, else_branch = b () => (float[1, 4] r) {{ r = Sigmoid (x) }}>
}}"""


def test_constant_if_takes_its_branch() -> None:
    condition = "s = Shape (x)\n rank = Size (s)\n two = Constant <value_int = 2> ()\n c = Equal (rank, two)"
    assert ops(assert_equal(parsed(CONDITIONAL.format(extra="", condition=condition)))) == ["Relu", "Neg"]


@pytest.mark.parametrize("k", [False, True])
def test_if_on_data_takes_both_branches_and_chooses(k: bool) -> None:
    proto = parsed(CONDITIONAL.format(extra=", bool[1] k", condition="c = Not (k)"))
    loaded = from_proto(proto)
    assert ops(loaded) == ["Not", "Relu", "Neg", "Sigmoid", "Reshape", "Where"]
    feeds = {"x": np.array([[1, -2, 3, -4]], np.float32), "k": np.array([k])}
    (found,), (wanted,) = run(ir.to_proto(loaded.model), feeds), run(proto, feeds)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("other", ["r = Transpose (x)", "r = Cast <to = 7> (x)", "r = RandomUniformLike (x)"])
def test_if_on_data_whose_branches_are_no_choice_is_opaque_and_names_why(other: str) -> None:
    text = CONDITIONAL.replace("r = Sigmoid (x)", other)
    proto = parsed(text.format(extra=", bool k", condition="c = Not (k)"))
    loaded = from_proto(proto)
    invariants.check(loaded.model)
    opaque = [n for n in loaded.model.graph if canon.is_opaque(n)]
    assert [(n.op_type, n.meta["opaque"]) for n in opaque] == [("If", "its condition depends on data")]
    assert {v.name for v in loaded.model.graph.inputs} == {"x", "k"}


LOOP = """g (float[2, 3] x{extra}) => (float last, float all) {{
    {given}
    last, all = Loop ({count}, {condition}, x) <body = b (int64 turn, bool go, float[2, 3] s)
        => (bool more, float[2, 3] next, float[2, 3] seen) {{
            t = Cast <to = 1> (turn)
            next = Add (s, t)
            seen = Mul (next, x)
            {more}
        }}>
}}"""


def test_loops_of_known_length_are_their_turns() -> None:
    counted = parsed(LOOP.format(extra="", given="n = Constant <value_int = 3> ()", count="n", condition="",
                                 more="more = Identity (go)"))  # fmt: skip
    found = ops(assert_equal(counted))
    assert found.count("Mul") == 3
    assert "Loop" not in found
    ended = LOOP.format(extra="", given="yes = Constant <value = bool {1}> ()", count="", condition="yes",
                        more="two = Constant <value_int = 2> () more = Less (turn, two)")  # fmt: skip
    assert ops(assert_equal(parsed(ended))).count("Mul") == 3


@pytest.mark.parametrize(
    ("count", "more", "reason"),
    [
        ("m", "more = Identity (go)", "its trip count ('m') must not depend on data"),
        ("n", "z = ReduceSum <keepdims = 0> (s) more = Cast <to = 9> (z)", "control flow that depends on data"),
        ("big", "more = Identity (go)", "a loop of more than 256 turns"),
    ],
)
def test_other_loops_are_opaque(count: str, more: str, reason: str) -> None:
    given = "n = Constant <value_int = 3> () big = Constant <value_int = 300> ()"
    proto = parsed(LOOP.format(extra=", int64 m", given=given, count=count, condition="", more=more))
    (node,) = (n for n in from_proto(proto).model.graph if canon.is_opaque(n))
    assert (node.op_type, node.meta["opaque"]) == ("Loop", reason)


def test_loops_within_loops_are_not_followed_without_end() -> None:
    body = "r = Relu (s)"
    for depth in range(4):  # 200 ** 4 turns
        body = f"""n = Constant <value_int = 200> ()
            r = Loop (n, , s) <body = b{depth} (int64 i, bool c, float[4] s) => (bool d, float[4] r) {{
                d = Identity (c) {body} }}>"""
    found = from_proto(parsed(f"g (float[4] s) => (float[4] r) {{ {body} }}")).model.graph
    assert [n.meta["opaque"] for n in found] == ["loops and branches of more than 32768 nodes in all"]


def test_scans_are_their_turns_forwards_and_backwards_along_any_axis() -> None:
    proto = parsed(
        """g (float[2] s, float[2, 3] a, float[3, 2] b) => (float last, float sums, float products) {
            last, sums, products = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
                scan_output_axes = [1, 0], scan_output_directions = [1, 0],
                body = t (float[2] c, float[2] p, float[2] q) => (float[2] d, float[2] sum, float[2] product) {
                    sum = Add (p, q)
                    product = Mul (p, q)
                    d = Add (c, sum)
                }> (s, a, b)
        }"""
    )
    assert "Scan" not in ops(assert_equal(proto))


def test_opaque_nodes_spread_to_their_readers_only() -> None:
    proto = parsed(
        """g (float[1, 4] x) => (float[1, 4] y, z) { y = Relu (x)
            i = NonZero (x)
            z = Cast <to = 1> (i) }"""
    )
    loaded = from_proto(proto)
    reasons = {n.op_type: n.meta.get("opaque") for n in loaded.model.graph}
    assert reasons["Relu"] is None
    assert reasons["NonZero"] == "the shape of its output depends on data"
    assert "no static shape" in str(reasons["Cast"])


def test_unknown_domain_and_left_over_attribute_are_opaque() -> None:
    node = helper.make_node("Thing", ["x"], ["y"], domain="my.ops")
    relu = helper.make_node("Relu", ["y"], ["z"], consumed=[1])
    x, z = (helper.make_tensor_value_info(n, 1, [1, 4]) for n in "xz")
    y = helper.make_tensor_value_info("y", 1, [1, 4])
    graph = helper.make_graph([node, relu], "g", [x], [z], value_info=[y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
    thing, left = from_proto(helper.make_model(graph, opset_imports=opsets)).model.graph
    assert "my.ops" in thing.meta["opaque"]
    assert "attribute consumed of Relu-14" in left.meta["opaque"]


SEQUENCES = {
    "at": "s = SequenceConstruct (x, w)\n i = Constant <value_int = -1> ()\n t = SequenceAt (s, i)\n y = Relu (t)",
    "insert, erase": """e = SequenceEmpty ()
        a = SequenceInsert (e, x)
        i = Constant <value_int = 0> ()
        b = SequenceInsert (a, w, i)
        c = SequenceErase (b, i)
        y = ConcatFromSequence <axis = 0> (c)""",
    "stacked": "s = SequenceConstruct (x, w)\n y = ConcatFromSequence <axis = -1, new_axis = 1> (s)",
    "split by size": """k = Constant <value_int = 2> ()
        s = SplitToSequence <axis = 1> (x, k)
        y = ConcatFromSequence <axis = 0> (s)""",
    "split by sizes": """k = Constant <value_ints = [1, 3]> ()
        s = SplitToSequence <axis = 1> (x, k)
        y = ConcatFromSequence <axis = 1> (s)""",
    "split to ones": "s = SplitToSequence <axis = 1, keepdims = 0> (x)\n y = ConcatFromSequence <axis = 0> (s)",
    "length": "s = SplitToSequence <axis = 1> (x)\n n = SequenceLength (s)\n f = Cast <to = 1> (n)\n y = Mul (x, f)",
    "optional": "o = Optional (x)\n h = OptionalHasElement (o)\n g = OptionalGetElement (o)\n y = Where (h, g, w)",
}


@pytest.mark.parametrize("body", SEQUENCES.values(), ids=SEQUENCES)
def test_sequences_disappear(body: str) -> None:
    loaded = assert_equal(parsed(f"g (float[2, 4] x, float[2, 4] w) => (float y) {{ {body} }}", opset=18))
    assert not [n for n in loaded.model.graph if canon.is_opaque(n)]


def test_a_constant_too_large_is_not_folded() -> None:
    proto = parsed(
        """g (float[1] x) => (float y) { s = Constant <value_ints = [1, 40000, 40000]> ()
            c = ConstantOfShape (s)
            y = Add (c, x) }"""
    )
    assert ops(from_proto(proto)) == ["ConstantOfShape", "Add"]


def test_float16_and_double_become_float32() -> None:
    weight = numpy_helper.from_array(np.ones((4, 4), np.float16), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Cast", ["t"], ["y"], to=11)]
    x, y = helper.make_tensor_value_info("x", 10, [2, 4]), helper.make_tensor_value_info("y", 11, [2, 4])
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    loaded = from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert loaded.half
    assert (loaded.inputs[0].dtype, loaded.outputs[0].dtype) == ("float16", "float64")
    assert ops(loaded) == ["MatMul"]
    assert len(loaded.notes) == 2
    invariants.check(loaded.model)


def test_cast_to_float_before_a_product_is_not_half() -> None:
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    nodes = [helper.make_node("Cast", ["x"], ["t"], to=1), helper.make_node("MatMul", ["t", "w"], ["y"])]
    x, y = helper.make_tensor_value_info("x", 10, [2, 4]), helper.make_tensor_value_info("y", 1, [2, 4])
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    assert not from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])).half


def test_nhwc_conv() -> None:
    """No kernel in onnxruntime's CPU build takes it in float, so the oracle is Conv between transposes."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(5, 3, 3, 4)).astype(np.float32)
    x = helper.make_tensor_value_info("x", 1, [2, 6, 7, 4])
    y = helper.make_tensor_value_info("y", 1, None)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]

    def model(nodes: list[onnx.NodeProto], array: np.ndarray) -> onnx.ModelProto:
        graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(array, "w")])
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    fused = from_proto(
        model([helper.make_node("NhwcConv", ["x", "w"], ["y"], domain="com.microsoft", pads=[1, 0, 1, 0])], weight)
    )
    plain = from_proto(
        model(
            [
                helper.make_node("Transpose", ["x"], ["a"], perm=[0, 3, 1, 2]),
                helper.make_node("Conv", ["a", "w"], ["b"], pads=[1, 0, 1, 0]),
                helper.make_node("Transpose", ["b"], ["y"], perm=[0, 2, 3, 1]),
            ],
            weight.transpose(0, 3, 1, 2).copy(),
        )
    )
    assert ops(fused) == ops(plain)
    for a, b in zip(fused.model.graph, plain.model.graph, strict=True):
        assert {k: canon.attribute(a, k) for k in a.attributes} == {k: canon.attribute(b, k) for k in b.attributes}
        for left, right in zip(map(canon.const, a.inputs), map(canon.const, b.inputs), strict=True):
            assert (left is None) == (right is None)
            assert left is None or np.array_equal(left, right)
