"""What an export for the mapper looks like: in place, outputs and names as the `.wk` has them, marks, one `.wk`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from google.protobuf import text_format

from onnx2caffe import api, mapfile
from onnx2caffe.caffe.layers import Concat, Input, ReLU, Reshape, Slice, Softmax
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.proto import message
from onnx2caffe.caffe.read import read_net
from onnx2caffe.caffe.site import read_sites
from onnx2caffe.caffe.wire import read_weights
from onnx2caffe.errors import UsageError
from onnx2caffe.targets.nnie.examine import examine
from onnx2caffe.targets.nnie.finish import NAME_LENGTH, for_mapper
from onnx2caffe.targets.nnie.rules import load_rules
from onnx2caffe.targets.nnie.segments import MARKS, REPORT
from tests.nnie.models import Graph, classifier, detector, read_map, save, warped

FAST = {"caffe_run": False, "target": "nnie"}


def convert(model, folder, **options):
    return api.convert(save(model, folder), folder / "out", **{**FAST, **options})


def parsed(path):
    return text_format.Parse(path.read_text(), message("NetParameter")())


def lines(net) -> list[tuple[str, list[str], list[str]]]:
    return [(layer.name, list(layer.bottom), list(layer.top)) for layer in net.layer]


def weighted(path) -> list[str]:
    """The layers of a caffemodel, each as often as it is there."""
    net = message("NetParameter")()
    net.ParseFromString(path.read_bytes())
    return [layer.name for layer in net.layer]


def without_marks(net):
    """A parsed net whose names have lost their marks, its further tops gone."""
    for layer in net.layer:
        layer.name = re.sub("_(hp|cpu)$", "", layer.name)
        kept = [top for top in layer.top if not top.endswith("_report")]
        del layer.top[:]
        layer.top.extend(kept)
    return net


def forbidden(path):
    rules = load_rules()
    return [f for f in examine(read_sites(path, REPORT), rules) if rules[f.rule].forbidden]


class TestInPlace:
    def test_both_tensors_are_proved(self, tmp_path, pycaffe):
        done = convert(warped(), tmp_path, caffe_run=True)
        net = parsed(tmp_path / "out" / "m.seg2.prototxt")
        assert ("n_r2", ["r2"], ["r2"]) in lines(net)
        tensors = read_map(tmp_path / "out")["tensors"]
        assert tensors["c2"] == {"segment": 2, "blob": "r2", "layer": "n_c2", "shape": [1, 6, 12, 16]}
        assert tensors["r2"] == {"segment": 2, "blob": "r2", "shape": [1, 6, 12, 16]}
        assert {"c2", "r2"} <= {row.tensor for row in done.proof.rows if row.runtime == "pycaffe"}

    def test_not_where_somebody_else_reads_the_value_before(self, tmp_path):
        g = Graph()
        g.node("Relu", [g.conv("x", "c", 3, 4)], "r")
        g.node("Add", ["c", "r"], "sum")
        convert(g.model({"x": [1, 3, 8, 8]}, ["sum"]), tmp_path)
        assert ("n_r", ["c"], ["r"]) in lines(parsed(tmp_path / "out" / "m.prototxt"))

    def test_not_where_the_value_before_is_an_output(self, tmp_path):
        g = Graph()
        g.node("Relu", [g.conv("x", "c", 3, 4)], "r")
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["r", "c"]), tmp_path)
        assert done.proof.ok

    def test_not_behind_what_shares_memory(self):
        net = Net(
            "n",
            [
                Placed("x", Input(shape=((1, 4, 2, 2),)), (), ("x",)),
                Placed("shape", Reshape(shape=(0, 2, 2, 4)), ("x",), ("y",)),
                Placed("relu", ReLU(), ("y",), ("z",)),
            ],
            {"x": (1, 4, 2, 2), "y": (1, 2, 2, 4), "z": (1, 2, 2, 4)},
            ["x"],
            ["z"],
        )
        assert for_mapper(net, {}).layers[-1].bottoms == ("y",)


class TestOutputs:
    def test_one_that_is_read_inside_gets_a_copy_nobody_reads(self, tmp_path):
        convert(warped(), tmp_path)
        net = read_net(tmp_path / "out" / "m.seg1.prototxt", None)
        document = read_map(tmp_path / "out")
        assert net.outputs == [document["segments"][0]["outputs"]["r1"]["blob"]]

        g = Graph()
        g.node("Relu", [g.conv("x", "c", 3, 4)], "r")
        g.conv("r", "d", 4, 4)
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["d", "r"]), tmp_path)
        net = read_net(tmp_path / "out" / "m.prototxt", None)
        assert net.outputs == ["d", "r"]
        assert isinstance(net.layers[-1].layer, Concat)
        assert read_map(tmp_path / "out")["tensors"]["r"]["blob"] != "r"
        assert done.proof.ok

    def test_they_come_in_the_order_of_the_model(self, tmp_path):
        g = Graph()
        g.conv("x", "trunk", 3, 4)
        for name in ("b", "a", "c"):
            g.node("Sigmoid", [g.conv("trunk", f"conv_{name}", 4, 4)], name)
        convert(g.model({"x": [1, 3, 8, 8]}, ["c", "a", "b"]), tmp_path)
        net = read_net(tmp_path / "out" / "m.prototxt", None)
        assert net.outputs == ["c", "a", "b"]
        heads = [f"n_{layer}" for name in "cab" for layer in (f"conv_{name}", name)]
        assert [placed.name for placed in net] == ["x", "n_trunk", *heads]

    def test_three_axes_become_a_map_again(self, tmp_path):
        g = Graph()
        g.conv("x", "c", 3, 4)
        g.node("Reshape", ["c", g.constant("shape", np.array([1, 4, 64]))], "flat")
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["flat"]), tmp_path)
        net = read_net(tmp_path / "out" / "m.prototxt", None)
        assert [net.shapes[blob] for blob in net.outputs] == [(1, 4, 8, 8)]
        assert done.proof.ok

    @pytest.mark.parametrize(
        ("shape", "then", "stored"),
        [
            ((1, 8, 32), "Sigmoid", (1, 4, 8, 8)),
            ((1, 8, 32), "Concat", (1, 1, 8, 64)),
            ((1, 256, 1), "Concat", (1, 512)),
            ((1, 2, 128, 1), "Concat", (1, 1, 2, 256)),
            ((1, 8, 32), "Softmax", (1, 1, 8, 32)),
            ((1, 128, 2), "Softmax", (1, 1, 1, 256)),
            ((1, 8, 32), "Transpose", (1, 1, 32, 8)),
        ],
        ids=str,
    )
    def test_rows_fill_the_memory(self, tmp_path, shape, then, stored):
        g = Graph()
        sources = [g.conv("x", f"c{n}", 3, 4) for n in range(2 if then == "Concat" else 1)]
        target = g.constant("shape", np.array(shape))
        flat = [g.node("Reshape", [name, target], f"{name}.flat") for name in sources]
        attributes = {"Concat": {"axis": 1 if shape[-1] == 1 and len(shape) == 3 else 2}, "Softmax": {"axis": 2}}
        attributes["Transpose"] = {"perm": [0, 2, 1]}
        g.node(then, flat, "y", **attributes.get(then, {}))
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["y"]), tmp_path)
        net = read_net(tmp_path / "out" / "m.prototxt", None)
        assert [net.shapes[blob] for blob in net.outputs] == [stored]
        place = read_map(tmp_path / "out")["segments"][0]["outputs"]["y"]
        assert place["blob"] in net.outputs
        assert place["stored"] == list(stored)
        assert {row.tensor for row in done.proof.rows} >= {*sources, *flat, "y"}
        assert done.proof.ok
        assert "W24" not in {finding.rule for finding in api.check(tmp_path / "out" / "m.prototxt").findings}

    def test_the_map_says_the_shape_on_the_board_where_it_is_another(self, tmp_path, pycaffe):
        g = Graph()
        g.node("Reshape", ["x", g.constant("map", np.array([1, 3, 8, 8]))], "m")
        g.conv("m", "c", 3, 4)
        g.node("Reshape", ["c", g.constant("shape", np.array([1, 2, 2, 64]))], "flat")
        g.node("Softmax", ["flat"], "y", axis=3)
        convert(g.model({"x": [1, 3, 2, 4, 8]}, ["y", "c"]), tmp_path)
        segment = read_map(tmp_path / "out")["segments"][-1]
        net = read_net(tmp_path / "out" / "m.prototxt", None)
        places = {**segment["inputs"], **segment["outputs"]}
        for place in places.values():
            assert place.get("stored", place["shape"]) == list(net.shapes[place["blob"]])
            assert place.get("stored") != place["shape"]
        assert "stored" not in places["c"]
        files = [tmp_path / "out" / f"m.{kind}" for kind in ("prototxt", "caffemodel")]
        assert api.compare(tmp_path / "m.onnx", *files, caffe_run=False).ok

    @pytest.mark.parametrize(
        "outputs", [["c", "flat"], ["flat", "c"], ["flat", "last"], ["c", "flat", "last"]], ids=str
    )
    def test_a_map_and_its_rows(self, tmp_path, outputs):
        """Two outputs of one map, which may be read inside too: nobody inside reads what is put out."""
        g = Graph()
        g.conv("x", "c", 3, 4)
        g.node("Reshape", ["c", g.constant("shape", np.array([1, 4, 64]))], "flat")
        g.node("Softmax", ["flat"], "last", axis=2)
        done = convert(g.model({"x": [1, 3, 8, 8]}, outputs), tmp_path)
        net = read_net(tmp_path / "out" / "m.prototxt", None)
        places = read_map(tmp_path / "out")["segments"][0]["outputs"]
        assert {place["blob"] for place in places.values()} == set(net.outputs)
        assert all(len(net.shapes[blob]) in (2, 4) for blob in net.outputs)
        assert done.proof.ok

    def test_a_row_longer_than_the_nnie_has_is_several(self):
        net = Net(
            "n",
            [Placed("x", Input(shape=((1, 4, 8400),)), (), ("x",)), Placed("s", Softmax(axis=2), ("x",), ("y",))],
            dict.fromkeys("xy", (1, 4, 8400)),
            ["x"],
            ["y"],
        )
        done = for_mapper(net, {})
        assert done.outputs == ["y"]
        assert done.shapes["y"] == (1, 4, 3, 2800)

    def test_tops_that_nobody_reads_are_one_output(self):
        net = Net(
            "n",
            [
                Placed("x", Input(shape=((1, 6, 2, 2),)), (), ("x",)),
                Placed("cut", Slice(axis=1, slice_point=(2, 4), tops=3), ("x",), ("a", "b", "c")),
                Placed("relu", ReLU(), ("b",), ("y",)),
            ],
            {"x": (1, 6, 2, 2), **dict.fromkeys("abcy", (1, 2, 2, 2))},
            ["x"],
            ["y"],
        )
        done = for_mapper(net, {})
        read = {blob for placed in done for blob in placed.bottoms}
        assert len([top for placed in done for top in placed.tops if top not in read]) == 2


class TestNames:
    LONG = "model/backbone/stage3/block_with_a_long_name/head_{}/BiasAdd:0"

    def test_inputs_and_outputs_are_short_unlike_and_plain(self, tmp_path):
        g = Graph()
        source = "data \u00e9 of a very long name indeed/input:0"
        outputs = [self.LONG.format(n) for n in ("a", "b")]
        for name in outputs:
            g.conv(source, name, 3, 4)
        done = convert(g.model({source: [1, 3, 8, 8]}, outputs), tmp_path)
        net = read_net(tmp_path / "out" / "m.prototxt", None)
        ports = [*net.inputs, *net.outputs]
        assert len(set(ports)) == 3
        assert all(len(name) <= NAME_LENGTH and re.fullmatch(r"[A-Za-z0-9_./:-]+", name) for name in ports)
        segment = read_map(tmp_path / "out")["segments"][0]
        assert list(segment["inputs"]) == [source]
        assert list(segment["outputs"]) == outputs
        assert done.proof.ok
        assert not forbidden(tmp_path / "out" / "m.prototxt")

    def test_layers_of_two_nets_have_different_ones(self, tmp_path):
        """Also where they are alike only once they are plain: the map has the nodes of each."""
        model = warped()
        for node in model.graph.node:
            node.name = {"n_c1": "n c", "n_c2": "n?c"}.get(node.name, node.name)
        convert(model, tmp_path, proof=False)
        layers = read_map(tmp_path / "out")["layers"]
        assert (layers["n_c"], layers["n_c_2"]) == (["n c"], ["n?c"])
        assert "n_c_2" in weighted(tmp_path / "out" / "m.seg2.caffemodel")

    @pytest.mark.parametrize("shape", [[1, 6, 5], [1, 1, 1], [1, 4, 6, 1]])
    def test_an_input_put_out_keeps_its_name(self, tmp_path, pycaffe, shape):
        """As rows of one element it is stored anew, behind a Reshape."""
        g = Graph()
        g.node("Identity", ["x"], "y")
        g.node("Relu", ["x"], "r")
        done = convert(g.model({"x": shape}, ["y", "r"]), tmp_path, caffe_run=True)
        assert done.proof.ok
        assert {"y", "r"} <= {row.tensor for row in done.proof.rows if row.runtime == "pycaffe"}
        segment = read_map(tmp_path / "out")["segments"][0]
        assert segment["inputs"]["x"]["blob"] == "x"
        assert not forbidden(tmp_path / "out" / "m.prototxt")

    @pytest.mark.parametrize("target", ["nnie", "caffe"])
    def test_rename(self, tmp_path, target):
        """A blob of that name gives way; the tensors keep theirs."""
        g = Graph()
        g.node("Relu", [g.conv("x", "c", 3, 4)], "r")
        g.node("MaxPool", ["r"], "p", kernel_shape=[2, 2], strides=[2, 2])
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["p"]), tmp_path, target=target, renames={"p": "r"})
        document = read_map(tmp_path / "out")
        assert document["outputs"][0]["name"] == "p"
        assert document["segments"][0]["outputs"]["p"]["blob"] == "r"
        assert document["tensors"]["r"]["blob"] != "r"
        assert done.proof.ok
        assert {"c", "r", "p"} <= {row.tensor for row in done.proof.rows}

    def test_none_ends_like_a_mark_of_the_mappers(self, tmp_path, pycaffe):
        """A first convolution called …_cpu would be the user's own to run, which the mapper refuses there."""
        g = Graph()
        g.conv("image_cpu", "stem_cpu", 3, 8)
        g.node("MaxPool", ["stem_cpu"], "pool_report", kernel_shape=[2, 2], strides=[2, 2])
        g.node("Softmax", [g.conv("pool_report", "c_hp", 8, 4)], "s_hp", axis=1)
        for node in g.nodes:
            node.name = node.output[0]
        model = g.model({"image_cpu": [1, 3, 8, 8]}, ["s_hp", "c_hp"])
        model.graph.name = "net_cpu"
        done = convert(model, tmp_path, tail="full", caffe_run=True, name="m_hp")
        net = parsed(tmp_path / "out" / "m_hp.prototxt")
        names = {net.name, *(name for layer in net.layer for name in (layer.name, *layer.bottom, *layer.top))}
        assert names >= {"net.cpu", "image.cpu", "stem.cpu", "pool.report", "c.hp", "s.hp"}
        assert not [name for name in names if name.endswith(MARKS)]
        assert done.proof.ok
        assert done.share == 1
        document = read_map(tmp_path / "out", "m_hp")
        assert document["layers"]["stem.cpu"] == ["stem_cpu"]
        assert document["tensors"]["pool_report"]["blob"] == "pool.report"
        (note,) = (note.text for note in done.notes if "marks" in note.text)
        assert all(repr(name) in note for name in ("image_cpu", "stem_cpu", "pool_report", "c_hp", "s_hp"))
        assert not forbidden(tmp_path / "out" / "m_hp.prototxt")

    def test_names_that_end_otherwise_are_not_told(self, tmp_path):
        assert not [note for note in convert(warped(), tmp_path, proof=False).notes if "marks" in note.text]

    def test_rename_to_what_ends_like_a_mark(self, tmp_path):
        with pytest.raises(UsageError, match=re.escape("the blob would be called 'x.report'")) as problem:
            convert(warped(), tmp_path, renames={"s": "x_report"})
        assert "_report" in problem.value.hint

    def test_rename_of_what_is_no_output(self, tmp_path):
        with pytest.raises(UsageError, match="--rename nothing") as problem:
            convert(warped(), tmp_path, renames={"nothing": "x"})
        assert problem.value.hint == "outputs: r1, s"


class TestMarks:
    def test_the_marked_net_differs_in_names_only(self, tmp_path):
        convert(classifier(), tmp_path, hp=["c1"], report=["r1"], cpu=["n_pool"], tail="full")
        plain, marks = (parsed(tmp_path / "out" / f"m{kind}.prototxt") for kind in ("", ".marked"))
        assert {layer.name for layer in marks.layer} - {layer.name for layer in plain.layer} == {
            "n_c1_hp",
            "n_pool_cpu",
        }
        (relu,) = (layer for layer in marks.layer if layer.type == "ReLU")
        assert list(relu.top) == ["r1", "r1_report"]
        assert not forbidden(tmp_path / "out" / "m.marked.prototxt")
        assert without_marks(marks) == plain

    def test_what_is_reported_has_a_short_name_of_its_own(self, tmp_path):
        """In place a blob holds two tensors; the board knows 31 characters of an output's name."""
        g = Graph()
        long = "a/module/of/a/very/long/path/that/ends/in/conv 1"
        g.node("Relu", [g.conv("x", long, 3, 8)], "r")
        g.conv("r", "c", 8, 4)
        convert(g.model({"x": [1, 3, 8, 8]}, ["c"]), tmp_path, report=[long, "r"])
        marks = parsed(tmp_path / "out" / "m.marked.prototxt")
        extra = [top for layer in marks.layer for top in layer.top if top.endswith("_report")]
        assert extra == ["ng/path/that/ends/in/conv_1"[-24:] + "_report", "r_report"]
        assert not forbidden(tmp_path / "out" / "m.marked.prototxt")

    def test_the_caffemodel_holds_marked_layers_twice(self, tmp_path, pycaffe):
        done = convert(classifier(), tmp_path, hp=["n_c1"], caffe_run=True)
        weights = read_weights(tmp_path / "out" / "m.caffemodel")
        for one, other in zip(weights["n_c1"], weights["n_c1_hp"], strict=True):
            np.testing.assert_array_equal(one.values, other.values)
        assert done.proof.ok

    def test_names_that_the_model_has_already(self, tmp_path, pycaffe):
        """A layer and a tensor are called like the mark of another: weights go by layer name."""
        g = Graph()
        g.conv("x", "c", 3, 4)
        g.conv("c", "c_hp", 4, 4)
        g.node("Softmax", ["c_hp"], "c_report", axis=1)
        g.conv("c_report", "end", 4, 4)
        for node in g.nodes:
            node.name = node.output[0]
        marks = {"hp": ["c"], "report": ["c", "c_report"], "tail": "full"}
        done = convert(g.model({"x": [1, 3, 8, 8]}, ["end"]), tmp_path, caffe_run=True, **marks)
        assert done.proof.ok
        net = parsed(tmp_path / "out" / "m.marked.prototxt")
        tops = [top for layer in net.layer for top in layer.top]
        assert len({*tops}) == len(tops)
        assert [layer.name for layer in net.layer] == ["x", "c_hp", "c.hp", "c.report", "end"]
        assert sorted(weighted(tmp_path / "out" / "m.caffemodel")) == ["c", "c.hp", "c_hp", "end"]
        weights = read_weights(tmp_path / "out" / "m.caffemodel")
        assert weights["c"][0].values.size == weights["c_hp"][0].values.size == 4 * 3 * 9

    def test_what_a_mark_brings_to_a_border_has_a_short_name(self, tmp_path):
        g = Graph()
        long = "a/module/of/a/very/long/path/whose/end/tells/most/{}"
        g.conv("x", long.format("a"), 3, 4)
        g.conv(long.format("a"), long.format("b"), 4, 4)
        g.conv(long.format("b"), "c", 4, 4)
        convert(g.model({"x": [1, 3, 8, 8]}, ["c"]), tmp_path, cpu=[long.format("b")])
        found = api.check(tmp_path / "out" / "m.marked.prototxt").findings
        assert not {"W05", "W21"} & {finding.rule for finding in found}
        blobs = [
            (list(layer.bottom), list(layer.top)) for layer in parsed(tmp_path / "out" / "m.marked.prototxt").layer
        ]
        a, b = (long.format(end)[-NAME_LENGTH:] for end in "ab")
        assert blobs == [([], ["x"]), (["x"], [a]), ([a], [b]), ([b], ["c"])]

    @pytest.mark.parametrize(
        ("mark", "count", "words"), [("report", 16, "17 outputs, at most 16"), ("cpu", 8, "9 segments, at most 8")]
    )
    def test_more_than_the_mapper_takes(self, tmp_path, mark, count, words):
        g = Graph()
        last = g.conv("x", "start", 3, 4, 1)
        for number in range(2 * count):
            last = g.conv(last, f"c{number}", 4, 4, 1)
        model = g.model({"x": [1, 3, 8, 8]}, [last])
        names = [f"c{2 * number}" for number in range(count)]
        with pytest.raises(UsageError, match=f"E09.*{words}") as problem:
            convert(model, tmp_path, **{mark: names})
        assert "fewer marks" in problem.value.hint
        assert not (tmp_path / "out").exists()
        convert(model, tmp_path, proof=False, **{mark: names[1:]})
        assert not forbidden(tmp_path / "out" / "m.marked.prototxt")
        (tmp_path / "my.toml").write_text("[E09.when]\noutputs = 17\nsegments = 9\n")
        convert(model, tmp_path, proof=False, force=True, rules=tmp_path / "my.toml", **{mark: names})

    def test_findings_at_marked_layers_name_the_nodes(self, tmp_path):
        convert(classifier(), tmp_path, hp=["n_c1"])
        cfg = tmp_path / "m.cfg"
        cfg.write_text("[compile_mode] 0\n")
        report = api.check(tmp_path / "out" / "m.marked.prototxt", cfg=cfg)
        assert [(f.layer, f.nodes) for f in report.findings if f.rule == "E07"] == [("n_c1_hp", ("n_c1",))]

    def test_unknown_name(self, tmp_path):
        with pytest.raises(UsageError, match="--hp n_c2") as problem:
            convert(classifier(), tmp_path, hp=["n_c2"])
        assert "n_c1" in problem.value.hint

    @pytest.mark.parametrize("option", ["report", "hp"])
    def test_what_a_net_is_given_gets_none(self, tmp_path, option):
        """`warped` is computed between two nets."""
        for name in ("x", "warped"):
            with pytest.raises(UsageError, match=f"{name}: no tensor, node or layer that a net computes"):
                convert(warped(), tmp_path, **{option: [name]})

    @pytest.mark.parametrize("name", ["r1", "c1"])
    def test_where_none_may_stand(self, tmp_path, name):
        """An in-place activation, and the layer right after the data."""
        with pytest.raises(UsageError, match="E08"):
            convert(classifier(), tmp_path, cpu=[name])

    def test_only_for_the_mapper(self, tmp_path):
        with pytest.raises(UsageError, match="for the mapper") as problem:
            convert(classifier(), tmp_path, target="caffe", hp=["c1"])
        assert problem.value.hint == "--target nnie"


class TestRules:
    """Who owns the vendor's guide knows better."""

    def depthwise(self):
        g = Graph()
        g.node("Conv", ["x", g.constant("w", np.ones((4, 1, 3, 3), np.float32))], "c", group=4)
        return g.model({"x": [1, 4, 8, 8]}, ["c"])

    def types(self, folder) -> list[str]:
        return [layer.type for layer in parsed(folder / "out" / "m.prototxt").layer]

    def test_what_they_refuse_is_not_written(self, tmp_path):
        rules = tmp_path / "my.toml"
        rules.write_text(
            "[X1]\nseverity = 'refused'\nwhen = { types = ['DepthwiseConv'], field = 'num_output', max = 0 }\n"
        )
        convert(self.depthwise(), tmp_path)
        assert self.types(tmp_path) == ["Input", "DepthwiseConv"]
        convert(self.depthwise(), tmp_path, rules=rules)
        assert api.check(tmp_path / "m.onnx", rules=rules).at_least("refused") == []
        assert self.types(tmp_path) == ["Input", "Convolution"]

    def test_what_they_allow_is(self, tmp_path):
        rules = tmp_path / "my.toml"
        rules.write_text("[E05.when]\ntypes = ['Input', 'Clip']\n")
        g = Graph()
        g.node("Clip", ["x", g.constant("a", np.float32(0)), g.constant("b", np.float32(6))], "y")
        convert(g.model({"x": [1, 4, 8, 8]}, ["y"]), tmp_path, rules=rules)
        assert self.types(tmp_path) == ["Input", "Clip"]

    def test_only_for_the_mapper(self, tmp_path):
        with pytest.raises(UsageError, match="for the mapper"):
            convert(self.depthwise(), tmp_path, target="caffe", rules=tmp_path / "my.toml")


class TestRemarks:
    """What nobody has seen compiled is said once for all nets, with a way around it."""

    def said(self, model, folder, **options) -> list[str]:
        notes = convert(model, folder, proof=False, **options).notes
        return [note.text.partition("): ")[2] for note in notes if note.text.startswith("unproven")]

    def test_one_line_for_all_nets(self, tmp_path):
        g = Graph()
        g.node("TopK", [g.conv("x", "c1", 3, 8), g.constant("k", np.array([8]))], "t", ["t", "i"], axis=1)
        g.node("Tanh", ["c1"], "t1")
        g.node("Tanh", [g.conv("t", "c2", 8, 8)], "t2")
        g.node("Tanh", [g.conv("t2", "c3", 8, 8)], "t3")
        model = g.model({"x": [1, 3, 8, 8]}, ["t1", "t3"])
        assert self.said(model, tmp_path, tail="full") == ["type TanH, 3 layers"]
        assert len(read_map(tmp_path / "out")["segments"]) == 3

    @pytest.mark.parametrize(
        ("size", "kernel", "stride", "recipes", "said"),
        [
            (8, 3, 2, {}, "type DepthwiseConv that crops, 1 layer; another way: --recipe crop=slice"),
            (8, 3, 2, {"crop": "slice"}, "type Slice, 2 layers; another way: --recipe crop=dw"),
            (8, 1, 2, {}, "type DepthwiseConv, 1 layer; another way: --recipe depthwise=conv"),
        ],
    )
    def test_a_pooling_that_rounds_down(self, tmp_path, size, kernel, stride, recipes, said):
        g = Graph()
        g.node("MaxPool", [g.conv("x", "c", 3, 4)], "p", kernel_shape=[kernel] * 2, strides=[stride] * 2)
        model = g.model({"x": [1, 3, size, size]}, ["p"])
        assert self.said(model, tmp_path, recipes=recipes, tail="full") == [said]

    def test_a_convolution_of_the_users_is_no_crop(self, tmp_path):
        g = Graph()
        weights = np.ones((4, 1, 3, 3), np.float32)
        g.node("Conv", [g.conv("x", "c", 3, 4), g.constant("w", weights)], "y", group=4)
        (said,) = self.said(g.model({"x": [1, 3, 8, 8]}, ["y"]), tmp_path)
        assert said == "type DepthwiseConv, 1 layer; another way: --recipe depthwise=conv"


class TestSingleWk:
    def test_parts_between_are_custom_layers(self, tmp_path):
        convert(warped(), tmp_path, single_wk=True, hp=["c2"])
        net = parsed(tmp_path / "out" / "m.wk.prototxt")
        (custom,) = (layer for layer in net.layer if layer.type == "Custom")
        assert list(custom.bottom) == ["r1", "grid"]
        assert list(custom.top) == ["warped"]
        assert [list(shape.dim) for shape in custom.custom_param.shape] == [[1, 8, 12, 16]]
        fields = {field.name for field, _ in custom.ListFields()}
        assert fields == {"name", "type", "bottom", "top", "custom_param"}
        assert not forbidden(tmp_path / "out" / "m.wk.prototxt")

    def test_marks_stand_beside_it_too(self, tmp_path):
        """Two nets have a layer of one name, once their nodes' names are plain: each mark stands where it is meant."""
        model = warped()
        for node in model.graph.node:
            node.name = {"n_c1": "n c", "n_c2": "n?c"}.get(node.name, node.name)
        done = convert(model, tmp_path, single_wk=True, hp=["n?c"], report=["s", "c1"])
        plain, marks = (parsed(tmp_path / "out" / f"m.wk{kind}.prototxt") for kind in ("", ".marked"))
        assert {layer.name for layer in marks.layer} - {layer.name for layer in plain.layer} == {"n_c_2_hp"}
        assert [top for layer in marks.layer for top in layer.top if top.endswith("_report")] == [
            "c1_report",
            "s_report",
        ]
        assert without_marks(marks) == plain
        assert sorted(weighted(tmp_path / "out" / "m.wk.caffemodel")) == ["n_c", "n_c_2", "n_c_2_hp"]
        assert read_weights(tmp_path / "out" / "m.wk.caffemodel")["n_c_2_hp"][0].values.size == 6 * 8 * 9
        assert not [f for path in done.files if path.suffix == ".prototxt" for f in forbidden(path)]

    def test_marks_that_only_one_net_has_room_for(self, tmp_path):
        """Each of two nets has room for the marks; together they have too many segments."""
        g = Graph()
        last = "x"
        for part in "ab":
            for number in range(9):
                last = g.conv(last, f"{part}{number}", 3, 3, 1)
            if part == "a":
                last = g.node("GridSample", [last, "grid"], "warped")
        model = g.model({"x": [1, 3, 8, 8], "grid": [1, 8, 8, 2]}, [last])
        marks = [f"{part}{number}" for part in "ab" for number in (1, 3, 5, 7)]
        convert(model, tmp_path, proof=False, cpu=marks)
        with pytest.raises(UsageError, match=r"E09.*10 segments, at most 8"):
            convert(model, tmp_path, proof=False, force=True, cpu=marks, single_wk=True)

    def test_a_name_of_the_users_choice_stays(self, tmp_path):
        """An input of that name gives way: of segments, each may have it."""
        convert(warped(), tmp_path, single_wk=True, renames={"s": "x"})
        net = parsed(tmp_path / "out" / "m.wk.prototxt")
        assert [list(layer.top) for layer in net.layer if layer.type == "Input"] == [["grid"], ["x_2"]]
        assert list(net.layer[-1].top) == ["x"]
        assert len({top for layer in net.layer for top in layer.top if layer.type != "ReLU"}) == len(net.layer) - 2

    def test_names_are_plain_and_short(self, tmp_path):
        model = warped()
        for node in model.graph.node:
            node.input[:] = ["a map \u00e9" if name == "warped" else name for name in node.input]
            node.output[:] = ["a map \u00e9" if name == "warped" else name for name in node.output]
        convert(model, tmp_path, single_wk=True, name="\u00fc x_hp", proof=False)
        path = tmp_path / "out" / "\u00fc x_hp.wk.prototxt"
        net = parsed(path)
        assert net.name == "__x.hp"
        (custom,) = (layer for layer in net.layer if layer.type == "Custom")
        assert (custom.name, list(custom.top)) == ("__x_hp.cpu1", ["a_map__"])
        assert "W16" not in {finding.rule for finding in api.check(path).findings}

    def test_what_only_the_cpu_reads_is_an_input_of_any_shape(self, tmp_path):
        """The mapper wants a batch of 1, and two axes at least: a row of numbers is one."""
        g = Graph()
        g.conv("x", "c1", 3, 8)
        g.node("GridSample", ["c1", "grid"], "warped")
        g.node("Mul", ["warped", "columns"], "scaled")
        g.conv("scaled", "c2", 8, 4)
        inputs = {"x": [1, 3, 12, 16], "grid": [1, 12, 16, 2], "columns": [16]}
        convert(g.model(inputs, ["c2"]), tmp_path, single_wk=True)
        net = parsed(tmp_path / "out" / "m.wk.prototxt")
        shapes = {layer.name: list(layer.input_param.shape[0].dim) for layer in net.layer if layer.type == "Input"}
        assert shapes == {"x": [1, 3, 12, 16], "grid": [1, 12, 16, 2], "columns": [1, 16]}
        assert not forbidden(tmp_path / "out" / "m.wk.prototxt")

    def test_a_net_takes_another_ones_output_in_its_own_shape(self, tmp_path):
        """A tensor of three axes is put out as a map."""
        g = Graph()
        g.conv("x", "c1", 3, 8)
        g.node("ReduceMean", ["c1"], "rows1", axes=[3], keepdims=0)
        g.node("GridSample", ["c1", "grid"], "warped")
        g.conv("warped", "c2", 8, 8)
        g.node("ReduceMean", ["c2"], "rows2", axes=[3], keepdims=0)
        g.node("Concat", ["rows1", "rows2"], "rows", axis=2)
        model = g.model({"x": [1, 3, 12, 16], "grid": [1, 12, 16, 2]}, ["rows"])
        convert(model, tmp_path, single_wk=True, tail="full")
        assert read_map(tmp_path / "out")["tensors"]["rows1"]["shape"] == [1, 8, 12]
        assert list(parsed(tmp_path / "out" / "m.seg1.prototxt").layer[-1].reshape_param.shape.dim) == [0, 1, 8, 12]
        assert not forbidden(tmp_path / "out" / "m.wk.prototxt")

    def test_one_net_is_one_wk_already(self, tmp_path):
        done = convert(classifier(), tmp_path, single_wk=True, tail="full")
        assert not [path for path in done.files if ".wk." in path.name]
        assert "--single-wk has no effect" in " ".join(note.text for note in done.notes)
        assert "single_wk" not in read_map(tmp_path / "out")

    def test_the_map_names_it(self, tmp_path):
        done = convert(warped(), tmp_path, single_wk=True)
        assert read_map(tmp_path / "out")["single_wk"] == {"prototxt": "m.wk.prototxt", "caffemodel": "m.wk.caffemodel"}
        assert mapfile.read(done.map_file).single_wk["prototxt"] == "m.wk.prototxt"
        assert not [note for note in done.notes if "--single-wk" in note.text]


@pytest.mark.parametrize("model", [warped, detector, classifier])
@pytest.mark.parametrize("tail", ["auto", "none", "full"])
def test_the_mapper_has_nothing_against_any_net(tmp_path, model, tail):
    done = convert(model(), tmp_path, tail=tail, single_wk=True)
    assert not [f for path in done.files if path.suffix == ".prototxt" for f in forbidden(path)]
