"""Models as nets and ONNX parts between them: what goes where, and the whole proved end to end."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto

from onnx2caffe import api
from onnx2caffe.caffe.read import read_weights
from onnx2caffe.errors import NoReference, NotConvertible, RulesViolated, UsageError
from onnx2caffe.frontend import from_proto
from onnx2caffe.mapfile import Port
from onnx2caffe.partition.cut import cut
from onnx2caffe.partition.flow import FlowNetwork
from onnx2caffe.partition.tail import behind_weights, decoding
from onnx2caffe.partition.weights import macs
from onnx2caffe.partition.wiring import Wiring
from onnx2caffe.verify.inputs import all_runs
from tests.nnie.models import Graph, classifier, detector, quantised, read_map, save, warped

FAST = {"caffe_run": False}


def convert(model, folder, **options):
    return api.convert(save(model, folder), folder / "out", **{**FAST, **options})


def files(folder):
    return sorted(path.name for path in (folder / "out").iterdir())


@pytest.mark.parametrize("target", ["caffe", "bvlc", "nnie"])
def test_what_no_caffe_has_stays_onnx_in_between(tmp_path, target):
    done = convert(warped(), tmp_path, target=target, partition=True)
    assert files(tmp_path) == [
        "m.cpu1.onnx",
        "m.map.json",
        "m.seg1.caffemodel",
        "m.seg1.prototxt",
        "m.seg2.caffemodel",
        "m.seg2.prototxt",
    ]
    document = read_map(tmp_path / "out")
    assert [s["kind"] for s in document["segments"]] == ["caffe", "onnx", "caffe"]
    assert set(document["files"]) == set(files(tmp_path)) - {"m.map.json"}
    assert {"c1", "r1", "c2", "r2", "s"} <= set(document["tensors"])
    assert done.proof.ok
    assert {"c1", "r1", "warped", "c2", "r2", "s"} <= {row.tensor for row in done.proof.rows}
    assert "100.0 % of MACs" in done.summary
    assert "GridSample: not legal" in done.summary


def test_in_every_caffe_there_is(tmp_path, pycaffe):
    done = convert(warped(), tmp_path, target="nnie", caffe_run=True)
    assert {row.runtime for row in done.proof.rows} == {"builtin", "pycaffe"}


@pytest.mark.parametrize("target", ["caffe", "bvlc"])
def test_other_targets_refuse_unless_asked(tmp_path, target):
    with pytest.raises(NotConvertible, match="GridSample 'n_warped'"):
        convert(warped(), tmp_path, target=target)


def test_inspect_says_what_would_run_where(tmp_path):
    seen = api.inspect(save(warped(), tmp_path))
    assert seen.convertible
    assert "100.0 % of MACs" in seen.summary
    assert [blocked.op for blocked in seen.illegal] == ["GridSample"]
    assert not api.inspect(save(warped(), tmp_path), target="caffe").convertible


def test_nnie_refuses_when_asked(tmp_path):
    with pytest.raises(NotConvertible) as problem:
        convert(warped(), tmp_path, target="nnie", partition=False)
    assert [blocked.op for blocked in problem.value.blocked] == ["GridSample"]


def test_nothing_legal_is_refused_with_all_nodes(tmp_path):
    g = Graph()
    g.conv("x", "c", 3, 4)
    model = g.model({"x": [2, 3, 8, 8]}, ["c"])
    with pytest.raises(NotConvertible, match="batch 2"):
        convert(model, tmp_path, target="nnie")


def test_rounding_between_nets_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(NotConvertible) as problem:
        convert(quantised(head_only=False), tmp_path, target="nnie")
    assert [blocked.node for blocked in problem.value.blocked] == ["n_c1.q", "n_c2.q"]
    assert "--strip-qdq" in problem.value.hint
    assert convert(quantised(head_only=False), tmp_path, target="nnie", strip_qdq=True).proof.ok


def test_rounding_in_front_of_the_nets_stays_there(tmp_path):
    done = convert(quantised(head_only=True), tmp_path, target="nnie")
    assert [s["kind"] for s in read_map(tmp_path / "out")["segments"]] == ["onnx", "caffe"]
    assert done.proof.ok


def test_a_refused_input_is_told_by_the_users_nodes(tmp_path):
    """Not by those that passes put in their place."""
    g = Graph()
    g.node("ReduceSum", ["x", g.constant("axes", np.array([1, 2, 3, 4]))], "s", keepdims=0)
    with pytest.raises(NotConvertible) as problem:
        convert(g.model({"x": [1, 2, 3, 4, 5]}, ["s"]), tmp_path, target="nnie")
    assert {blocked.node for blocked in problem.value.blocked} == {"n_s"}


class TestTail:
    @pytest.mark.parametrize(
        ("op", "others", "attributes"),
        [("LogSoftmax", [], {"axis": 1}), ("Log", [], {}), ("Greater", ["limit"], {})],
        ids=["LogSoftmax", "Log", "Greater"],
    )
    def test_auto_leaves_to_the_cpu_what_eight_bits_ruin(self, tmp_path, op, others, attributes):
        g = Graph()
        g.node("Sigmoid", [g.conv("x", "c1", 3, 8)], "r1")
        g.constant("limit", np.float32(0.5))
        g.node("Cast", [g.node(op, ["r1", *others], "coarse", **attributes)], "y", to=TensorProto.FLOAT)
        model = g.model({"x": [1, 3, 5, 6]}, ["y"])
        done = convert(model, tmp_path, target="nnie")
        assert list(read_map(tmp_path / "out")["segments"][0]["outputs"]) == ["r1"]
        assert "8 bits ruin it" in done.summary
        assert done.proof.ok
        assert "CPU" not in convert(model, tmp_path, target="nnie", tail="full").summary

    def test_auto_ends_before_the_decode(self, tmp_path):
        done = convert(detector(), tmp_path, target="nnie")
        ends = read_map(tmp_path / "out")["segments"][0]["outputs"]
        assert {"box0", "box1", "scores"} == set(ends)
        assert "decode" in done.summary
        assert done.proof.ok

    def test_none_ends_with_the_last_weights(self, tmp_path):
        convert(detector(), tmp_path, target="nnie", tail="none")
        assert set(read_map(tmp_path / "out")["segments"][0]["outputs"]) == {"box0", "box1", "cls0", "cls1"}

    def test_full_keeps_what_is_legal(self, tmp_path):
        done = convert(detector(), tmp_path, target="caffe", partition=True, tail="full")
        assert [s["kind"] for s in read_map(tmp_path / "out")["segments"]] == ["caffe"]
        assert "CPU" not in done.summary

    def test_the_integral_over_bins_and_one_kind_of_maps_are_no_decode(self):
        g = Graph()
        g.conv("x", "c", 3, 8)
        g.node("Reshape", ["c", g.constant("four", np.array([1, 2, 4, 16]))], "bins")
        g.node("Softmax", ["bins"], "soft", axis=2)
        g.node("Transpose", ["soft"], "last", perm=[0, 1, 3, 2])
        g.node("MatMul", ["last", g.constant("ramp", np.arange(4, dtype=np.float32).reshape(4, 1))], "mean")
        model = from_proto(g.model({"x": [1, 3, 4, 4]}, ["mean"])).model
        wiring = Wiring(model.graph)
        tail = behind_weights(wiring, {node: macs(node) for node in wiring.nodes})
        assert {node.op_type for node in tail} >= {"Softmax", "MatMul"}
        assert not decoding(wiring, tail)

    def test_what_comes_behind_unlike_maps_is_said_to(self, tmp_path):
        """YOLOX: places and scores of a level are joined, and nothing is decoded."""
        g = Graph()
        g.node("Sigmoid", [g.conv("x", "c", 3, 5)], "score")
        g.node("Concat", [g.conv("x", "box", 3, 4), "score"], "both", axis=1)
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["both"]), tmp_path, target="nnie")
        assert "1 node (Concat: unlike maps joined)" in done.summary

    def test_exp_and_unlike_tensors_are(self):
        model = from_proto(detector()).model
        wiring = Wiring(model.graph)
        tail = behind_weights(wiring, {node: macs(node) for node in wiring.nodes})
        begun = {value.name for node in decoding(wiring, tail) for value in node.outputs}
        assert {"moved0", "decoded1", "boxes", "all"} <= begun
        assert not begun & {"score0", "scores", "cls0"}


class TestCut:
    @pytest.mark.parametrize("name", ["r1", "n_r1"])
    def test_at_a_tensor_or_node(self, tmp_path, name):
        done = convert(classifier(), tmp_path, target="caffe", partition=True, cuts=[name])
        segments = read_map(tmp_path / "out")["segments"]
        assert [s["kind"] for s in segments] == ["caffe", "onnx"]
        assert list(segments[0]["outputs"]) == ["r1"]
        assert "asked for" in done.summary
        assert done.proof.ok

    def test_at_a_tensor_that_passes_would_fold_away(self, tmp_path):
        g = Graph()
        g.conv("x", "c1", 3, 8)
        g.node("Mul", ["c1", g.constant("k", np.float32(3))], "m1")
        g.conv("m1", "c2", 8, 8)
        convert(g.model({"x": [1, 3, 8, 8]}, ["c2"]), tmp_path, target="nnie", cuts=["c1"])
        assert list(read_map(tmp_path / "out")["segments"][0]["outputs"]) == ["c1"]

    def test_at_a_layer_of_the_net(self, tmp_path):
        """One of several that a node becomes: behind the node, for a cut lies where a tensor is the user's."""
        g = Graph()
        g.conv("x", "c1", 3, 8)
        g.node("Clip", ["c1", g.constant("low", np.float32(0)), g.constant("high", np.float32(6))], "r6")
        g.conv("r6", "c2", 8, 8)
        model = g.model({"x": [1, 3, 8, 8]}, ["c2"])
        convert(model, tmp_path, target="nnie")
        layers = read_map(tmp_path / "out")["layers"]
        layer = next(name for name, nodes in layers.items() if name != "n_r6" and nodes == ["n_r6"])
        convert(model, tmp_path, target="nnie", cuts=[layer])
        assert list(read_map(tmp_path / "out")["segments"][0]["outputs"]) == ["r6"]

    def test_unknown_name_lists_near_ones(self, tmp_path):
        with pytest.raises(UsageError, match="--cut pol") as problem:
            convert(classifier(), tmp_path, target="nnie", cuts=["pol"])
        assert "pool" in problem.value.hint


class TestPorts:
    def test_of_more_outputs_than_a_segment_has_the_cheapest_go_to_another(self, tmp_path):
        g = Graph()
        g.node("Relu", [g.conv("x", "trunk", 3, 8)], "r")
        outputs = [g.conv("r", f"o{n}", 8, n + 1, 1) for n in range(20)]
        done = convert(g.model({"x": [1, 3, 8, 8]}, outputs), tmp_path, target="nnie")
        first, second = read_map(tmp_path / "out")["segments"]
        assert set(first["outputs"]) == {"r", *outputs[5:]}
        assert set(second["outputs"]) == set(outputs[:5])
        assert done.share == 1.0
        assert done.proof.ok

    def test_of_more_outputs_than_eight_segments_have(self, tmp_path):
        g = Graph()
        g.node("Relu", [g.conv("x", "trunk", 3, 8)], "r")
        outputs = [g.conv("r", f"o{n}", 8, 4, 1) for n in range(150)]
        done = convert(g.model({"x": [1, 3, 8, 8]}, outputs), tmp_path, target="nnie", proof=False)
        assert done.segments == 8
        assert [len(s["outputs"]) for s in read_map(tmp_path / "out")["segments"]] == [*[16] * 8, 150 - 8 * 16 + 1]

    def test_outputs_that_no_weights_make_stay_onnx(self, tmp_path):
        g = Graph()
        outputs = [f"o{n}" for n in range(20)]
        g.node("Split", [g.conv("x", "c", 3, 40), g.constant("sizes", np.full(20, 2))], "", outputs, axis=1)
        done = convert(g.model({"x": [1, 3, 8, 8]}, outputs), tmp_path, target="nnie")
        assert done.share == 1.0
        assert done.proof.ok

    def test_the_users_own_limits(self, tmp_path):
        """Inputs and outputs are counted apart."""
        g = Graph()
        g.node("Sum", [g.conv("a", "ca", 3, 4), g.conv("b", "cb", 3, 4)], "y")
        model = g.model({"a": [1, 3, 8, 8], "b": [1, 3, 8, 8]}, ["y", "ca"])
        rules = tmp_path / "my.toml"
        rules.write_text("[E09.when]\noutputs = 1\n")
        convert(model, tmp_path, target="nnie", rules=rules)
        assert len(read_map(tmp_path / "out")["segments"][0]["outputs"]) == 1
        rules.write_text("[E09.when]\ninputs = 1\n")
        convert(model, tmp_path, target="nnie", rules=rules)
        assert [len(s["inputs"]) for s in read_map(tmp_path / "out")["segments"] if s["kind"] == "caffe"] == [1, 1]

    def test_more_inputs_than_a_segment_has(self, tmp_path):
        g = Graph()
        sums = [g.conv(f"x{n}", f"c{n}", 3, 4) for n in range(17)]
        g.node("Sum", sums, "y")
        done = convert(g.model({f"x{n}": [1, 3, 8, 8] for n in range(17)}, ["y"]), tmp_path, target="nnie")
        assert (done.share, done.segments, done.cpu_nodes) == (1.0, 2, 1)
        assert done.proof.ok

    def test_one_layer_with_more_inputs_than_a_segment_has(self, tmp_path):
        g = Graph()
        g.node("Concat", [f"x{n}" for n in range(17)], "all", axis=1)
        g.conv("all", "y", 17, 4)
        done = convert(g.model({f"x{n}": [1, 1, 8, 8] for n in range(17)}, ["y"]), tmp_path, target="nnie")
        assert (done.share, done.cpu_nodes) == (1.0, 1)
        assert done.proof.ok


class TestOutputNames:
    """A Reshape of which nothing is left on the board gives the blob before it the output's name."""

    def rows(self, outputs):
        g = Graph()
        g.node("ReduceMean", [g.conv("x", "c", 3, 6)], "mean", axes=[2], keepdims=0)
        g.node("Reshape", ["mean", g.constant("shape", np.array([6, 5]))], "rows")
        return g.model({"x": [1, 3, 4, 5]}, outputs)

    def test_of_a_reshape(self, tmp_path):
        done = convert(self.rows(["rows"]), tmp_path, target="nnie")
        document = read_map(tmp_path / "out")
        assert document["segments"][0]["outputs"]["rows"]["blob"] == "rows"
        assert document["tensors"]["mean"]["blob"] == "rows"
        assert done.proof.ok

    def test_both_are_outputs(self, tmp_path):
        done = convert(self.rows(["rows", "mean"]), tmp_path, target="nnie")
        outputs = read_map(tmp_path / "out")["segments"][0]["outputs"]
        assert {place["blob"] for place in outputs.values()} == {"mean"}
        assert done.proof.ok

    def test_the_users_own(self, tmp_path):
        convert(self.rows(["rows"]), tmp_path, target="nnie", renames={"rows": "plate"})
        assert read_map(tmp_path / "out")["segments"][0]["outputs"]["rows"]["blob"] == "plate"


class TestRequirements:
    @pytest.mark.parametrize(
        "option",
        [{"tail": "nix"}, {"min_nnie_macs": 5}, {"min_nnie_macs": float("nan")}, {"require_segments": 0}],
        ids=str,
    )
    def test_no_value_of_an_option(self, tmp_path, option):
        """The functions refuse what the command line does."""
        with pytest.raises(UsageError, match=f"--{next(iter(option)).replace('_', '-')} "):
            convert(classifier(), tmp_path, target="nnie", **option)

    def test_segments(self, tmp_path):
        with pytest.raises(RulesViolated, match="2 segments; 1 "):
            convert(warped(), tmp_path, target="nnie", require_segments=1)
        assert not (tmp_path / "out").exists()
        assert convert(warped(), tmp_path, target="nnie", require_segments=2).proof.ok

    def test_share_of_multiply_accumulates(self, tmp_path):
        with pytest.raises(RulesViolated, match="are required"):
            convert(classifier(), tmp_path, target="nnie", min_nnie_macs=1.0, cuts=["pool"])


def test_another_export_in_the_folder_leaves_nothing_behind(tmp_path):
    convert(warped(), tmp_path, target="nnie")
    convert(warped(), tmp_path, target="nnie", cuts=["r1"])
    assert files(tmp_path) == ["m.caffemodel", "m.map.json", "m.prototxt", "m.tail.onnx"]


@pytest.mark.parametrize("option", [{"runs": 0}, {"runs": -1}, {"runtimes": ["nix"]}], ids=str)
def test_compare_refuses_no_value_of_an_option(tmp_path, option):
    """Nothing compared would be nothing that differs."""
    convert(warped(), tmp_path, target="nnie")
    net = [tmp_path / "out" / f"m.seg2.{ending}" for ending in ("prototxt", "caffemodel")]
    with pytest.raises(UsageError, match=r"--run(s|time) \S+: no "):
        api.compare(tmp_path / "m.onnx", *net, caffe_run=False, **option)


def test_compare_runs_the_stitched_whole(tmp_path):
    convert(warped(), tmp_path, target="nnie")
    out = tmp_path / "out"
    found = api.compare(tmp_path / "m.onnx", out / "m.seg2.prototxt", out / "m.seg2.caffemodel", caffe_run=False)
    assert found.ok
    assert {"c1", "warped", "s"} <= {row.tensor for row in found.proof.rows}


def test_a_net_of_another_shape_in_front_of_a_part_differs(tmp_path):
    """What the part cannot read is the net's fault, not the model's."""
    convert(warped(), tmp_path, target="nnie")
    net = tmp_path / "out" / "m.seg1.prototxt"
    net.write_text(net.read_text().replace("pad: 1", "pad: 3"))
    found = api.compare(tmp_path / "m.onnx", net, net.with_suffix(".caffemodel"), caffe_run=False)
    assert not found.ok
    assert found.proof.first_difference.tensor == "c1"


def test_a_model_that_onnxruntime_does_not_run_is_named(tmp_path):
    """Not the part that holds its broken node."""
    g = Graph()
    g.conv("x", "c", 3, 4)
    g.node("Cnov", ["c"], "y")
    with pytest.raises(NoReference, match=r"cannot run .*m\.onnx, .*Cnov"):
        convert(g.model({"x": [1, 3, 8, 8]}, ["y"]), tmp_path, target="nnie")


def test_one_name_where_several_are_meant(tmp_path):
    with pytest.raises(UsageError, match="cuts='pool'") as caught:
        convert(classifier(), tmp_path, target="nnie", cuts="pool")
    assert caught.value.hint == "cuts=['pool']"


def test_compare_saves_what_goes_into_each_net(tmp_path):
    """One line per input of the comparison; the second net's is what the part before it makes of the first's."""
    convert(warped(), tmp_path, target="nnie", proof=False)
    out, lists = tmp_path / "out", tmp_path / "lists" / "new"
    net = (out / "m.seg1.prototxt", out / "m.seg1.caffemodel")
    api.compare(tmp_path / "m.onnx", *net, caffe_run=False, runs=2, save_inputs=lists)
    assert sorted(path.name for path in lists.iterdir()) == ["m.seg1.x.txt", "m.seg2.warped.txt"]
    first, second = (np.loadtxt(lists / name, dtype=np.float32) for name in ("m.seg1.x.txt", "m.seg2.warped.txt"))
    assert (first.shape, second.shape) == ((2, 3 * 12 * 16), (2, 8 * 12 * 16))
    whole = onnx.load(tmp_path / "m.onnx")
    whole.graph.output.append(onnx.ValueInfoProto(name="warped"))
    session = onnxruntime.InferenceSession(whole.SerializeToString(), providers=["CPUExecutionProvider"])
    infos = [Port("x", (1, 3, 12, 16), "float32"), Port("grid", (1, 12, 16, 2), "float32")]
    for row, given in zip(second, all_runs(infos, (0, 1)), strict=True):
        np.testing.assert_allclose(row, session.run(["warped"], given)[0].ravel(), atol=1e-5)


def test_what_goes_into_no_net_is_not_saved(tmp_path):
    with pytest.raises(UsageError, match="--save-inputs"):
        api.compare(save(warped(), tmp_path), runtimes=["relay"], save_inputs=tmp_path)


def test_parts_run_alone(tmp_path):
    convert(warped(), tmp_path, target="nnie")
    part = tmp_path / "out" / "m.cpu1.onnx"
    onnx.checker.check_model(str(part))
    session = onnxruntime.InferenceSession(str(part), providers=["CPUExecutionProvider"])
    assert [i.name for i in session.get_inputs()] == ["r1", "grid"]


def test_outputs_without_a_net_behind_them(tmp_path):
    """An output that is an input, and one that is a constant."""
    g = Graph()
    g.conv("x", "c", 3, 4)
    g.node("Identity", ["x"], "same")
    g.node("Identity", ["x"], "again")
    g.node("Add", [g.constant("one", np.ones(2, np.float32)), "one"], "two")
    done = convert(g.model({"x": [1, 3, 8, 8]}, ["c", "same", "again", "two"]), tmp_path, target="nnie")
    assert done.proof.ok
    assert {row.tensor for row in done.proof.rows} >= {"c", "same", "again", "two"}


def test_same_bytes_again(tmp_path):
    (tmp_path / "again").mkdir()
    first = convert(detector(), tmp_path, target="nnie")
    second = convert(detector(), tmp_path / "again", target="nnie")
    assert [p.read_bytes() for p in first.files] == [p.read_bytes() for p in second.files]


class TestMinimumCut:
    def test_network(self):
        network = FlowNetwork()
        a, b = network.vertex(), network.vertex()
        for tail, head, room in ((0, a, 3), (a, b, 1), (b, 1, 3), (0, b, 1)):
            network.edge(tail, head, room)
        assert network.cut(greatest=False) == {0, a}
        assert network.cut(greatest=True) == {0, a}

    def test_ties(self):
        network = FlowNetwork()
        a, b = network.vertex(), network.vertex()
        for tail, head in ((0, a), (a, b), (b, 1)):
            network.edge(tail, head, 2)
        assert network.cut(greatest=False) == {0}
        assert network.cut(greatest=True) == {0, a, b}

    def test_the_border_is_where_least_crosses(self):
        """wide -> narrow -> wide, and the net ends at the narrow one."""
        g = Graph()
        g.conv("x", "c", 3, 8)
        g.node("Relu", ["c"], "wide")
        g.node("MaxPool", ["wide"], "narrow", kernel_shape=[2, 2], strides=[2, 2])
        g.node("Concat", ["narrow", "narrow"], "again", axis=1)
        g.node("Concat", ["again", "again"], "much", axis=1)
        g.node("NonZero", ["much"], "places")
        model = from_proto(g.model({"x": [1, 3, 8, 8]}, ["places"], ("places",))).model
        wiring = Wiring(model.graph)
        barred = {node for node in wiring.nodes if node.op_type == "NonZero"}
        weights = {node: macs(node) for node in wiring.nodes}
        parts = cut(
            wiring, barred, weights, kept=set(), price=lambda v, _: int(np.prod(v.shape or [])), most=8, later={}
        )
        assert [part.caffe for part in parts] == [True, False]
        assert [value.name for value in parts[0].outputs] == ["narrow"]

    def test_more_nets_than_there_may_be(self):
        """The poorest go first."""
        g = Graph()
        x = "x"
        for step, channels in enumerate((4, 16, 4)):
            g.conv(x, f"c{step}", 4 if step != 2 else 16, channels)
            x = g.node("Erf", [f"c{step}"], f"e{step}") if step < 2 else f"c{step}"
        model = from_proto(g.model({"x": [1, 4, 8, 8]}, [x])).model
        wiring = Wiring(model.graph)
        barred = {node for node in wiring.nodes if node.op_type == "Erf"}
        weights = {node: macs(node) for node in wiring.nodes}
        for most, kept in ((3, 3), (2, 2), (1, 1)):
            parts = cut(wiring, barred, weights, kept=set(), price=lambda v, _: 1, most=most, later={})
            assert sum(part.caffe for part in parts) == kept
            _check_partition(wiring, parts)
        (net,) = (part for part in parts if part.caffe)
        assert "c1" in {value.name for node in net.nodes for value in node.outputs} or len(net.nodes) == 1


def _check_partition(wiring: Wiring, parts) -> None:
    """Every node once, and nobody reads what comes later."""
    place = {node: number for number, part in enumerate(parts) for node in part.nodes}
    assert set(place) == set(wiring.nodes)
    for node in wiring.nodes:
        assert all(place[one] <= place[node] for one in wiring.before(node))


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs(seed):
    """Levels of random graphs: a partition, no barred node on a net, every wanted one on one."""
    rng = np.random.RandomState(seed)
    g = Graph()
    known = ["x"]
    for number in range(20):
        a, b = rng.choice(known[-6:]), rng.choice(known[-6:])
        kind = rng.randint(3)
        name = f"t{number}"
        if kind == 0:
            g.conv(a, name, 4, 4, 1)
        elif kind == 1:
            g.node("Erf", [a], name)
        else:
            g.node("Add", [a, b], name)
        known.append(name)
    read = {i for node in g.nodes for i in node.input}
    outputs = [name for name in known if name not in read]
    model: ir.Model = from_proto(g.model({"x": [1, 4, 4, 4]}, outputs)).model
    wiring = Wiring(model.graph)
    barred = {node for node in wiring.nodes if node.op_type == "Erf"}
    weights = {node: macs(node) for node in wiring.nodes}
    price = lambda value, _: int(np.prod(value.shape or []))  # noqa: E731
    parts = cut(wiring, barred, weights, kept=set(), price=price, most=20, later={})
    _check_partition(wiring, parts)
    on_nets = {node for part in parts if part.caffe for node in part.nodes}
    assert not on_nets & barred
    assert {node for node in wiring.nodes if weights[node]} <= on_nets


class TestHead:
    MEAN, STD = (100.0, 110.0, 120.0), (50.0, 60.0, 70.0)

    def _model(self, pads=True, nhwc=False):
        g = Graph()
        x = "x"
        if nhwc:
            x = g.node("Transpose", ["x"], "nchw", perm=[0, 3, 1, 2])
        for op, name, numbers in (("Sub", "centred", self.MEAN), ("Div", "scaled", self.STD)):
            x = g.node(op, [x, g.constant(f"{name}.k", np.array(numbers, np.float32).reshape(1, 3, 1, 1))], name)
        g.node("Relu", [g.conv(x, "c", 3, 8, 3 if pads else 1)], "r")
        return g.model({"x": [1, 8, 8, 3] if nhwc else [1, 3, 8, 8]}, ["r"])

    @pytest.mark.parametrize("pads", [True, False])
    @pytest.mark.parametrize("nhwc", [True, False])
    def test_mean_in_front_scale_in_the_weights(self, tmp_path, pads, nhwc):
        done = convert(self._model(pads, nhwc), tmp_path, target="nnie")
        assert files(tmp_path) == ["m.caffemodel", "m.head.onnx", "m.map.json", "m.prototxt"]
        head = onnx.load(tmp_path / "out" / "m.head.onnx").graph
        assert {node.op_type for node in head.node} <= {"Add", "Transpose"}
        net = (tmp_path / "out" / "m.prototxt").read_text()
        assert net.count("layer {") == 3
        assert "Add" in done.summary
        assert any("100, 110, 120" in note.text for note in done.notes)
        assert done.proof.ok

    @pytest.mark.parametrize("flip", ["Gather", "Slice"])
    @pytest.mark.parametrize("first", ["mean", "order", "layout"])
    def test_bytes_with_channels_last_in_another_order(self, tmp_path, first, flip):
        """Cast, layout and mean are the head's; the order and the scale are in the weights."""
        g = Graph()
        steps = {"mean": ["mean", "order", "layout"], "order": ["order", "layout", "mean"]}
        x, axis = g.node("Cast", ["x"], "float", to=1), 3
        for name in steps.get(first, ["layout", "order", "mean"]):
            shape = (1, 3, 1, 1) if axis == 1 else (3,)
            if name == "layout":
                x, axis = g.node("Transpose", [x], name, perm=[0, 3, 1, 2]), 1
            elif name == "mean":
                x = g.node("Sub", [x, g.constant("m", np.float32(self.MEAN).reshape(shape))], "centred")
                x = g.node("Div", [x, g.constant("s", np.float32(self.STD).reshape(shape))], name)
            elif flip == "Gather":
                x = g.node(flip, [x, g.constant("i", np.array([2, 1, 0]))], name, axis=axis)
            else:
                bounds = [g.constant(f"b{i}", np.array([n])) for i, n in enumerate((-1, -4, axis, -1))]
                x = g.node(flip, [x, *bounds], name)
        g.node("Relu", [g.conv(x, "c", 3, 8)], "r")
        model = g.model({"x": [1, 8, 8, 3]}, ["r"])
        model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
        done = convert(model, tmp_path, target="nnie")
        head = onnx.load(tmp_path / "out" / "m.head.onnx").graph
        assert [node.op_type for node in head.node] == ["Cast", "Transpose", "Add"]
        assert (tmp_path / "out" / "m.prototxt").read_text().count("layer {") == 3
        assert "CPU: 3 nodes (Cast, Transpose, Add: head)" in done.summary
        assert done.proof.ok

    def test_channels_last_without_a_mean(self, tmp_path):
        g = Graph()
        g.node("Transpose", ["x"], "planes", perm=[0, 3, 1, 2])
        g.conv("planes", "c", 3, 4)
        done = convert(g.model({"x": [1, 8, 8, 3]}, ["c"]), tmp_path, target="nnie")
        assert "CPU: 1 node (Transpose: head)" in done.summary
        assert not [note for note in done.notes if "subtracts" in note.text]

    def test_scale_before_mean(self, tmp_path):
        """x / 255 - mean, then / std, as torchvision does it."""
        g = Graph()
        g.node("Mul", ["x", g.constant("k", np.float32(1 / 255))], "unit")
        g.node("Sub", ["unit", g.constant("m", np.array([0.4, 0.5, 0.6], np.float32).reshape(1, 3, 1, 1))], "centred")
        g.conv("centred", "c", 3, 8)
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["c"]), tmp_path, target="nnie")
        head = onnx.load(tmp_path / "out" / "m.head.onnx").graph
        (mean,) = (onnx.numpy_helper.to_array(t) for t in head.initializer)
        np.testing.assert_allclose(mean.ravel(), [-102, -127.5, -153], rtol=1e-6)
        assert (tmp_path / "out" / "m.prototxt").read_text().count("layer {") == 2
        assert done.proof.ok

    def test_scale_alone_needs_no_head(self, tmp_path):
        g = Graph()
        g.node("Mul", ["x", g.constant("k", np.float32(1 / 255))], "unit")
        g.conv("unit", "c", 3, 8)
        convert(g.model({"x": [1, 3, 8, 8]}, ["c"]), tmp_path, target="nnie")
        assert files(tmp_path) == ["m.caffemodel", "m.map.json", "m.prototxt"]


class TestBgr:
    """`bgr`: the net takes the planes of an R, G, B input as B, G, R, and the head turns them."""

    MEAN = np.float32([10, 20, 30]).reshape(1, 3, 1, 1)

    def _model(self, channels=3, inputs=("x",), mean=None):
        g = Graph()
        found = []
        for name in inputs:
            value = name if mean is None else g.node("Sub", [name, g.constant(f"{name}.m", mean)], f"{name}.centred")
            found.append(g.node("Relu", [g.conv(value, f"{name}.c", channels, 4)], f"{name}.r"))
        return g.model({name: [1, channels, 8, 8] for name in inputs}, found)

    def _weights(self, folder):
        return read_weights(folder / "m.caffemodel")["n_x.c"][0].values.reshape(4, 3, 3, 3).copy()

    def test_the_head_turns_and_the_weights_turn_back(self, tmp_path):
        plain = convert(self._model(), tmp_path)
        weights = self._weights(plain.map_file.parent)
        done = convert(self._model(), tmp_path, bgr=["x"])
        assert done.proof.ok
        assert "CPU: 1 node (Gather: head)" in done.summary
        x = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
        head = onnxruntime.InferenceSession(tmp_path / "out" / "m.head.onnx", providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(head.run(None, {"x": x})[0], x[:, ::-1])
        np.testing.assert_array_equal(self._weights(tmp_path / "out"), weights[:, ::-1])
        (note,) = (note.text for note in done.notes if "turns the planes" in note.text)
        assert "turned (B, G, R where 'x' takes R, G, B), and fill 'x__bgr'" in note
        assert not [note for note in plain.notes if "planes" in note.text]

    def test_the_mean_is_told_in_the_order_of_the_planes(self, tmp_path):
        done = convert(self._model(mean=self.MEAN), tmp_path, bgr=["x"])
        assert done.proof.ok
        assert [node.op_type for node in onnx.load(tmp_path / "out" / "m.head.onnx").graph.node] == ["Gather", "Add"]
        (place,) = read_map(tmp_path / "out")["segments"][1]["inputs"].values()
        assert place["mean"] == [30, 20, 10]
        (note,) = (note.text for note in done.notes if "subtracts" in note.text)
        assert "[norm_type] 2 and 30, 20, 10 in [mean_file]" in note
        assert note.endswith("turned (B, G, R where 'x' takes R, G, B)")

    def test_one_of_several_inputs(self, tmp_path):
        done = convert(self._model(inputs=("x", "y")), tmp_path, bgr=["y"])
        assert done.proof.ok
        (head, net) = read_map(tmp_path / "out")["segments"]
        assert list(head["inputs"]) == ["y"]
        assert {place["blob"] for place in net["inputs"].values()} == {"x", "y__bgr"}

    @pytest.mark.parametrize(
        ("channels", "options", "text"),
        [
            (3, {"bgr": ["z"]}, "--bgr z: no input"),
            (1, {"bgr": ["x"]}, "its shape is"),
            (3, {"bgr": ["x"], "target": "caffe"}, "leaves the turn"),
            (3, {"bgr": ["x"], "partition": False}, "leaves the turn"),
        ],
    )
    def test_refused(self, tmp_path, channels, options, text):
        with pytest.raises(UsageError, match=text):
            convert(self._model(channels), tmp_path, **options)


class TestMeanOfTheHead:
    """What of it the mapper can do, the note says and the map holds."""

    def _convert(self, tmp_path, shape, mean):
        g = Graph()
        g.node("Sub", ["x", g.constant("m", np.float32(mean))], "centred")
        g.conv("centred", "c", shape[1], 4)
        done = convert(g.model({"x": shape}, ["c"]), tmp_path)
        (place,) = read_map(tmp_path / "out")["segments"][1]["inputs"].values()
        (note,) = (note.text for note in done.notes if "subtracts" in note.text)
        return note, place.get("mean")

    def test_one_number_for_all_planes(self, tmp_path):
        note, mean = self._convert(tmp_path, [1, 3, 8, 8], 127.5)
        assert "nnie_mapper can do that: [norm_type] 2 and 127.5, 127.5, 127.5 in [mean_file], in this order" in note
        assert "leave the head out and fill 'centred'" in note
        assert mean == [127.5] * 3

    def test_of_numbers_below_one(self, tmp_path):
        note, mean = self._convert(tmp_path, [1, 3, 8, 8], np.reshape([0.485, 0.456, 0.406], (3, 1, 1)))
        assert "[norm_type] 5, [data_scale] 0.0039215686 and 123.675, 116.28, 103.53 in [mean_file]" in note
        np.testing.assert_allclose(mean, [0.485, 0.456, 0.406], rtol=1e-6)

    @pytest.mark.parametrize(
        ("channels", "mean"), [(4, np.ones((4, 1, 1))), (3, np.ones((8, 8)))], ids=["no picture", "per pixel"]
    )
    def test_what_no_mean_file_can_hold(self, tmp_path, channels, mean):
        note, held = self._convert(tmp_path, [1, channels, 8, 8], mean)
        assert "run the head on the CPU, and 'centred' is [image_type] 0 with [norm_type] 0" in note
        assert held is None


@pytest.mark.parametrize("op", ["RoiAlign", "MaxRoiPool"])
def test_parts_are_of_an_opset_that_onnxruntime_runs(tmp_path, op):
    """Whose kernels for regions end before the canonical opset."""
    g = Graph()
    g.conv("x", "c", 3, 4)
    g.constant("rois", np.array([[0, 0, 0, 4, 4], [0, 1, 2, 7, 6]], np.float32)[:, 1 if op == "RoiAlign" else 0 :])
    g.constant("batch", np.zeros(2, np.int64))
    if op == "RoiAlign":
        g.node(op, ["c", "rois", "batch"], "r", output_height=2, output_width=2)
    else:
        g.node(op, ["c", "rois"], "r", pooled_shape=[2, 2])
    g.node("Sin", ["r"], "y")
    assert convert(g.model({"x": [1, 3, 8, 8]}, ["y"]), tmp_path, target="nnie").proof.ok
    part = onnx.load(tmp_path / "out" / "m.tail.onnx")
    assert [opset.version for opset in part.opset_import if not opset.domain] == [21]


def test_sizes_that_depend_on_data_in_front_of_weights(tmp_path):
    """The look for a mean passes by what has no static shape."""
    g = Graph()
    g.conv("x", "c", 3, 4)
    g.node("NonZero", ["c"], "places")
    g.node("Cast", ["places"], "floats", to=TensorProto.FLOAT)
    g.node("Add", ["floats", g.constant("one", np.ones(1, np.float32))], "moved")
    g.node("ReduceMean", ["moved", g.constant("axis", np.array([1]))], "mean", keepdims=0)
    g.node("Reshape", ["mean", g.constant("map", np.array([1, 4, 1, 1]))], "m")
    g.conv("m", "y", 4, 2)
    model = g.model({"x": [1, 3, 8, 8]}, ["y"])
    model.opset_import[0].version = 18
    assert convert(model, tmp_path, target="nnie").proof.ok
