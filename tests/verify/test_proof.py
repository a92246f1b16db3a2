"""The proof over several segments, with and without a Caffe, and the replay that finds the guilty step."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.utils import Extractor

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.errors import NumbersDiffer, RuntimeCrash, RuntimeMissing, UnreadableFile
from onnx2caffe.mapfile import CaffeSegment, ExportMap, OnnxSegment, Place, Port, Promise
from onnx2caffe.passes import pipeline
from onnx2caffe.passes.base import Pass, PassResult
from onnx2caffe.runtimes import pycaffe as pycaffe_runtime
from onnx2caffe.runtimes.builtin import Builtin
from onnx2caffe.verify import candidates
from onnx2caffe.verify.inputs import feeds
from onnx2caffe.verify.measure import Verdict
from onnx2caffe.verify.proof import prove
from onnx2caffe.verify.reference import UserModel
from tests.verify.models import save


@pytest.fixture
def cut(tmp_path):
    """The classifier in three segments: its first layers and its end stay ONNX."""
    path = save("classifier", tmp_path)
    extract = Extractor(onnx.load(path)).extract_model
    onnx.save(extract(["x"], ["p1"]), tmp_path / "net.head.onnx")
    onnx.save(extract(["r3"], ["prob"]), tmp_path / "net.tail.onnx")
    onnx.save(extract(["p1"], ["r3"]), tmp_path / "middle.onnx")
    middle = onnx2caffe.convert(tmp_path / "middle.onnx", tmp_path, name="net", target="caffe", force=True, proof=False)
    inner = mapfile.read(middle.map_file)
    (caffe,) = inner.segments
    segments = [
        OnnxSegment("net.head.onnx", {"x": "x"}, {"p1": "p1"}),
        caffe,
        OnnxSegment("net.tail.onnx", {"r3": "r3"}, {"prob": "prob"}),
    ]
    export = replace(
        inner,
        inputs=[Port("x", (1, 3, 32, 32), "float32")],
        outputs=[Port("prob", (1, 10), "float32")],
        segments=segments,
        tensors={name: replace(promise, segment=1) for name, promise in inner.tensors.items()},
    )
    return path, export


def run(path, export, tmp_path):
    model = UserModel(path, [*export.tensors], [port.name for port in export.outputs])
    return prove(tmp_path, export, model, [feeds(export.inputs, seed) for seed in (0, 1)], [Builtin()])


def test_segments_run_in_order(cut, tmp_path):
    proof = run(*cut, tmp_path)
    assert proof.ok
    tensors = [row.tensor for row in proof.rows]
    assert tensors.index("p1") < tensors.index("c2") < tensors.index("prob")
    assert proof.tensors(Verdict.EQUAL) == tensors


def test_tensors_swapped_at_a_border_differ(cut, tmp_path):
    path, export = cut
    export = replace(export, tensors=export.tensors | {"c2": replace(export.tensors["c2"], blob="r2")})
    assert run(path, export, tmp_path).first_difference.tensor == "c2"


def test_small_chunks_say_the_same(cut, tmp_path, monkeypatch):
    whole = run(*cut, tmp_path)
    monkeypatch.setattr("onnx2caffe.verify.proof._ROUND", 1)
    assert run(*cut, tmp_path).rows == whole.rows


def test_map_survives_reading_and_writing(cut, tmp_path):
    _, export = cut
    mapfile.write(export, tmp_path / "again.map.json")
    assert mapfile.read(tmp_path / "again.map.json") == export


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.update(format=2),
        lambda d: d.pop("segments"),
        lambda d: d["segments"][0].update(kind="cuda"),
        lambda d: d["segments"][0].update(file="../../etc/passwd"),
        lambda d: d["tensors"].update(c2=3),
    ],
)
def test_bad_maps_are_refused(cut, tmp_path, spoil):
    path = tmp_path / "bad.map.json"
    mapfile.write(cut[1], path)
    document = json.loads(path.read_text())
    spoil(document)
    path.write_text(json.dumps(document))
    with pytest.raises(UnreadableFile):
        mapfile.read(path)


def test_layer_says_when_a_blob_is_read(tmp_path):
    """Two layers write one blob: the tensor before the second is read right after the first."""
    prototxt = """
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 dim: 3 dim: 3 } } }
    layer { name: "double" type: "Power" bottom: "x" top: "y" power_param { scale: 2 } }
    layer { name: "relu" type: "ReLU" bottom: "y" top: "y" }
    """
    (tmp_path / "n.prototxt").write_text(prototxt)
    (tmp_path / "n.caffemodel").write_bytes(b"")
    shape = (1, 2, 3, 3)
    x, a, b = (onnx.helper.make_tensor_value_info(n, 1, shape) for n in "xab")
    nodes = [onnx.helper.make_node("Add", ["x", "x"], ["a"]), onnx.helper.make_node("Relu", ["a"], ["b"])]
    graph = onnx.helper.make_graph(nodes, "g", [x], [a, b])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    export = ExportMap(
        tool="t",
        target="caffe",
        source_file="",
        source_sha256="",
        files={},
        inputs=[Port("x", shape, "float32")],
        outputs=[Port("a", shape, "float32"), Port("b", shape, "float32")],
        segments=[CaffeSegment("n.prototxt", "n.caffemodel", {"x": Place("x", shape)}, {"b": Place("y", shape)})],
        tensors={"a": Promise(0, "y", shape, "double"), "b": Promise(0, "y", shape)},
    )
    user = UserModel(model.SerializeToString(), ["a", "b"])
    assert prove(tmp_path, export, user, [feeds(export.inputs, 0)], [Builtin()]).ok


class Spoil(Pass):
    """A pass that is wrong: it makes every weight of the second convolution 5 % larger."""

    claim = "none"

    def call(self, model: ir.Model) -> PassResult:
        for node in model.graph:
            if "n_c2" in node.meta.get("sources", ()):
                weights = node.inputs[1]
                weights.const_value = ir.tensor(np.array(weights.const_value.numpy()) * np.float32(1.05))
                return PassResult(model, modified=True)
        return PassResult(model, modified=False)


def test_replay_names_the_pass(tmp_path, monkeypatch):
    honest = pipeline.pipeline

    def spoiled(*args, **options):
        passes = honest(*args, **options)
        return [*passes[:2], Spoil(), *passes[2:]]

    monkeypatch.setattr(pipeline, "pipeline", spoiled)
    with pytest.raises(NumbersDiffer) as caught:
        onnx2caffe.convert(save("classifier", tmp_path), tmp_path / "out", caffe_run=False)
    assert "pass Spoil ('c2')" in caught.value.message
    assert not (tmp_path / "out").exists()


def test_without_a_caffe_the_builtin_proves(tmp_path, monkeypatch):
    def missing(_):
        raise RuntimeMissing("no pycaffe found")

    monkeypatch.setattr(pycaffe_runtime, "find", missing)
    monkeypatch.delenv("ONNX2CAFFE_CAFFE_PYTHON", raising=False)
    done = onnx2caffe.convert(save("decoder", tmp_path), tmp_path / "out")
    assert set(done.proof.runtimes) == {"builtin"}
    monkeypatch.setenv("ONNX2CAFFE_CAFFE_PYTHON", "/nowhere")
    with pytest.raises(RuntimeMissing):
        onnx2caffe.convert(save("decoder", tmp_path), tmp_path / "other")


class Dying:
    """A Caffe that lacks a layer, or is killed while it runs."""

    name = "pycaffe"

    def __init__(self, lacks: tuple[str, ...] = ()) -> None:
        self.lacks = lacks
        self.closed = False

    def version(self) -> str:
        return "caffe 1.0.0"

    def missing(self, types):
        return sorted(set(types) & set(self.lacks))

    def run(self, files, feeds, taps):
        raise RuntimeCrash("the process of caffe was killed by SIGKILL at layer 'n_c2'")

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("lacks", "words"), [((), "SIGKILL"), (("Upsample",), "Upsample")])
def test_caffe_that_fails_leaves_nothing(tmp_path, monkeypatch, lacks, words):
    dying = Dying(lacks)
    monkeypatch.setattr(candidates.pycaffe, "find", lambda _: dying)
    with pytest.raises(RuntimeMissing, match=words) as caught:
        onnx2caffe.convert(save("decoder", tmp_path), tmp_path / "out")
    assert caught.value.exit_code == 4
    assert dying.closed
    assert not (tmp_path / "out").exists()
