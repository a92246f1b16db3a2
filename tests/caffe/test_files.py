"""Prototxt and caffemodel: what is written is what is read, here and in Caffe; what is wrong is said."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest

from onnx2caffe.caffe import layers as L
from onnx2caffe.caffe.net import Placed
from onnx2caffe.caffe.proto import message
from onnx2caffe.caffe.read import read_net
from onnx2caffe.caffe.write import write_caffemodel, write_prototxt
from onnx2caffe.errors import UnreadableFile, Unsupported
from onnx2caffe.runtimes.base import NetFiles, Tap
from onnx2caffe.runtimes.builtin import Builtin
from tests.caffe.cases import CASES
from tests.caffe.nets import Case, feeds, one_layer, written

HOSTILE = ['"', "'", "\\", "a\nlayer {", "../../x", "名前 é", "# no comment", " ", "\x7f", "a" * 3000]
CONV = Case(L.Convolution(num_output=4, kernel_size=(3, 2), pad=(1, 0)), [(2, 3, 6, 7)])
V1 = """
name: "old"
input: "data" input_dim: 1 input_dim: 3 input_dim: 6 input_dim: 6
layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 blobs_lr: 2 weight_decay: 1
         convolution_param { num_output: 2 kernel_size: 3 stride: 2 weight_filler { type: "xavier" } } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "train" type: DROPOUT bottom: "c" top: "c" include { phase: TRAIN } }
layers { name: "cat" type: CONCAT bottom: "c" bottom: "c" top: "cat" concat_param { concat_dim: 1 } }
layers { name: "n" type: LRN bottom: "cat" top: "n" }
layers { name: "p" type: POOLING bottom: "n" top: "p" pooling_param { pool: AVE kernel_h: 1 kernel_w: 2 } }
layers { name: "s" type: SOFTMAX bottom: "p" top: "s" }
"""


def fields(layer):
    values = dataclasses.asdict(dataclasses.replace(layer, blobs=()))
    return {name: _uncollapsed(value) for name, value in values.items()}


def _uncollapsed(value):
    """(3, 3) and (3,) are the same to a layer; floats are what float32 keeps."""
    if isinstance(value, tuple) and len(set(value)) == 1 and not isinstance(value[0], tuple):
        return value[:1]
    return np.float32(value) if isinstance(value, float) else value


@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_survive_writing_and_reading(case, tmp_path):
    net = one_layer(case)
    files = written(tmp_path, net)
    again = read_net(files.prototxt, files.caffemodel)
    assert again.shapes == net.shapes
    assert (again.inputs, sorted(again.outputs)) == (net.inputs, sorted(net.outputs))
    for wrote, read in zip(net, again, strict=True):
        assert (wrote.name, wrote.bottoms, wrote.tops) == (read.name, read.bottoms, read.tops)
        assert fields(wrote.layer) == fields(read.layer)
        for a, b in zip(wrote.layer.blobs, read.layer.blobs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_same_net_same_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, one_layer(CONV))
    for file in ("net.prototxt", "net.caffemodel"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_digests_are_those_of_the_files(tmp_path):
    net = one_layer(CONV)
    for write, name in ((write_prototxt, "p"), (write_caffemodel, "m")):
        digest = write(net, tmp_path / name)
        assert digest == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()


def test_caffemodel_is_what_protobuf_writes(tmp_path):
    net = one_layer(CONV)
    write_caffemodel(net, tmp_path / "m")
    parsed = message("NetParameter").FromString((tmp_path / "m").read_bytes())
    assert parsed.name == net.name
    (layer,) = parsed.layer
    assert (layer.name, layer.type) == ("layer", "Convolution")
    for blob, array in zip(layer.blobs, net.layers[-1].layer.blobs, strict=True):
        assert tuple(blob.shape.dim) == array.shape
        np.testing.assert_array_equal(np.array(blob.data, np.float32), array.ravel())


def test_weights_that_are_views(tmp_path):
    weights = np.arange(2 * 3 * 4, dtype=np.float64).reshape(4, 3, 2).transpose(2, 1, 0)[:, :, ::-1].reshape(2, 12)
    net = one_layer(Case(L.InnerProduct(num_output=2, bias_term=False, blobs=(weights.T[::-1].T,)), [(1, 12)]))
    files = written(tmp_path, net)
    (read,) = read_net(files.prototxt, files.caffemodel).layers[-1].layer.blobs
    np.testing.assert_array_equal(read, weights[:, ::-1])


def test_too_large_for_caffe(tmp_path):
    huge = np.broadcast_to(np.float32(0), (2**15, 2**14))
    net = one_layer(Case(L.InnerProduct(num_output=2**15, bias_term=False, blobs=(huge,)), [(1, 2**14)]))
    with pytest.raises(Unsupported, match="2147483647"):
        write_caffemodel(net, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names(name, pycaffe, tmp_path):
    net = one_layer(CONV)
    net.name = name
    placed = net.layers[-1]
    net.layers[-1] = Placed(name, placed.layer, placed.bottoms, (name,))
    net.shapes[name], net.outputs = net.shapes.pop("y0"), [name]
    files = written(tmp_path, net)
    again = read_net(files.prototxt, files.caffemodel)
    assert (again.name, again.layers[-1].name, again.outputs) == (name, name, [name])
    (theirs,) = pycaffe.run(files, [feeds(CONV)], [Tap(name)])
    (ours,) = Builtin().run(files, [feeds(CONV)], [Tap(name)])
    np.testing.assert_allclose(ours[Tap(name)], theirs[Tap(name)], rtol=1e-5, atol=1e-5)


def test_header_lines_are_comments(tmp_path):
    write_prototxt(one_layer(CONV), tmp_path / "p", ["made by\nlayer { }", "", "\x00\x1b[31m"])
    lines = (tmp_path / "p").read_text().splitlines()
    assert lines[:4] == ["# made by", "# layer { }", "#", "# ??[31m"]
    read_net(tmp_path / "p", None)


def test_floats_are_shortest(tmp_path):
    write_prototxt(one_layer(Case(L.Power(power=0.1, scale=1 / 3), [(1,)])), tmp_path / "p")
    text = (tmp_path / "p").read_text()
    assert "power: 0.1\n" in text
    assert "scale: 0.33333334\n" in text
    assert "shift" not in text


def test_old_prototxt(pycaffe, tmp_path):
    prototxt = tmp_path / "old.prototxt"
    prototxt.write_text(V1)
    net = read_net(prototxt, None)
    assert [(p.name, p.layer.type) for p in net] == [
        ("input", "Input"), ("c", "Convolution"), ("r", "ReLU"), ("cat", "Concat"), ("n", "LRN"), ("p", "Pooling"),
        ("s", "Softmax"),
    ]  # fmt: skip
    pooled = dict.fromkeys("ps", (1, 4, 2, 1))
    assert net.shapes == {"data": (1, 3, 6, 6), "c": (1, 2, 2, 2), "cat": (1, 4, 2, 2), "n": (1, 4, 2, 2), **pooled}
    rng = np.random.default_rng(0)
    weights, bias = rng.standard_normal((2, 3, 3, 3)), rng.standard_normal(2)
    files = NetFiles(prototxt, tmp_path / "old.caffemodel")
    old = message("NetParameter")()
    layer = old.layers.add(name="c")
    layer.blobs.add(num=2, channels=3, height=3, width=3, data=weights.ravel())
    layer.blobs.add(num=1, channels=1, height=1, width=2, double_data=bias)
    files.caffemodel.write_bytes(old.SerializeToString())
    feed = {"data": rng.standard_normal((1, 3, 6, 6))}
    taps = [Tap("c", "c"), Tap("c", "r"), Tap("c"), Tap("s")]
    (theirs,), (ours,) = pycaffe.run(files, [feed], taps), Builtin().run(files, [feed], taps)
    for tap in taps:
        np.testing.assert_allclose(ours[tap], theirs[tap], rtol=1e-5, atol=1e-5)
    assert (ours[taps[0]] < 0).any()
    assert (ours[taps[1]] >= 0).all()


def _prototxt(tmp_path: Path, *layers: str) -> Path:
    path = tmp_path / "net.prototxt"
    path.write_text("\n".join(['input: "x" input_shape { dim: 1 dim: 2 dim: 4 dim: 4 }', *layers]))
    return path


CONV_TEXT = (
    'layer {{ name: "c" type: "Convolution" bottom: "x" top: "y" '
    "convolution_param {{ num_output: 2 kernel_size: 1 {} }} }}"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('layer { name: "a" type: "ReLU" bottom: "x" top: "y" relu_param { slope: 1 } }', r"2:66.*slope"),
        ("layer { name: 'a'", "is not a prototxt"),
        ("layer { name: \"a\" type: 'Power' bottom: 'x' top: 'y' power_param { power: x } }", "is not a prototxt"),
        ('layer { name: "a" type: "ReLU" bottom: "z" top: "y" }', "unknown bottom blob 'z'"),
        ('layer { name: "a" type: "ReLU" bottom: "x" top: "y" top: "z" }', "has 2 tops, makes 1"),
        ('layer { name: "a" type: "LRN" bottom: "x" top: "x" }', "in place"),
        ('layer { name: "a" type: "Silence" top: "x" }', "0 bottoms"),
        (CONV_TEXT.format("axis: 2"), "convolution_param.axis is not supported"),
        (CONV_TEXT.format("} power_param { power: 2"), "power_param does not belong"),
        ('layer { name: "c" type: "Convolution" bottom: "x" top: "y" }', "num_output is missing"),
        ('layer { name: "a" type: "Reshape" bottom: "x" top: "y" reshape_param { shape { dim: 5 } } }', "elements"),
        ("layers { name: 'a' type: RELU bottom: 'x' top: 'y' } layer { name: 'b' type: 'ReLU' }", "both `layer`"),
        ('input: "z"', "2 inputs and 1 input shapes"),
    ],
)  # fmt: skip
def test_wrong_prototxt(text, reason, tmp_path):
    with pytest.raises(UnreadableFile, match=reason):
        read_net(_prototxt(tmp_path, text), None)


def test_one_shape_for_several_inputs(pycaffe, tmp_path):
    files = NetFiles(tmp_path / "p", tmp_path / "m")
    files.prototxt.write_text('layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: 2 } } }')
    files.caffemodel.write_bytes(b"")
    assert read_net(files.prototxt, None).shapes == {"a": (2,), "b": (2,)}
    pycaffe.run(files, [{"a": [1, 2], "b": [3, 4]}], [Tap("b")])


def test_all_unknown_types_are_named(tmp_path):
    layers = [
        f'layer {{ name: "{i}" type: "{t}" bottom: "x" top: "{i}" }}' for i, t in enumerate(["Foo", "Bar", "Foo"])
    ]
    with pytest.raises(Unsupported, match=r"Bar \(1\), Foo \(2\)"):
        read_net(_prototxt(tmp_path, *layers), None)


def test_in_place_after_another_reader(tmp_path):
    reader = 'layer { name: "a" type: "Power" bottom: "x" top: "y" }'
    place = 'layer { name: "b" type: "ReLU" bottom: "x" top: "x" }'
    with pytest.raises(UnreadableFile, match="an earlier layer reads"):
        read_net(_prototxt(tmp_path, reader, place), None)
    read_net(_prototxt(tmp_path, place, reader), None)


def test_missing_weights(pycaffe, tmp_path):
    prototxt, empty = _prototxt(tmp_path, CONV_TEXT.format("")), tmp_path / "m"
    empty.write_bytes(b"")
    with pytest.raises(UnreadableFile, match="no weights"):
        read_net(prototxt, empty)
    filled = 'weight_filler { type: "bilinear" } bias_filler { value: 2 }'
    prototxt = _prototxt(tmp_path, CONV_TEXT.format(filled).replace("kernel_size: 1", "kernel_size: 4"))
    feed, tap = {"x": np.random.default_rng(0).standard_normal((1, 2, 4, 4))}, Tap("y")
    files = NetFiles(prototxt, empty)
    (theirs,), (ours,) = pycaffe.run(files, [feed], [tap]), Builtin().run(files, [feed], [tap])
    np.testing.assert_allclose(ours[tap], theirs[tap], rtol=1e-5)


@pytest.mark.parametrize(
    ("blobs", "reason"),
    [
        ([(2, 2, 1, 1)], "has 1 blobs for it, it needs 2"),
        ([(2, 2, 1, 1), (1, 1, 1, 2)], "blob of shape"),
        ([(2, 2), (2,)], "blob of shape"),
    ],
)
def test_weights_that_do_not_fit(blobs, reason, tmp_path):
    model = message("NetParameter")()
    layer = model.layer.add(name="c")
    for shape in blobs:
        layer.blobs.add(shape={"dim": shape}, data=np.zeros(int(np.prod(shape))))
    (tmp_path / "m").write_bytes(model.SerializeToString())
    with pytest.raises(UnreadableFile, match=reason):
        read_net(_prototxt(tmp_path, CONV_TEXT.format("")), tmp_path / "m")


@pytest.mark.parametrize("cut", [1, 3, 10, 40, 100, -1])
def test_broken_caffemodel(cut, tmp_path):
    files = written(tmp_path, one_layer(CONV))
    files.caffemodel.write_bytes(files.caffemodel.read_bytes()[:cut])
    with pytest.raises(UnreadableFile):
        read_net(files.prototxt, files.caffemodel)


def test_not_a_caffemodel(tmp_path):
    files = written(tmp_path, one_layer(CONV))
    files.caffemodel.write_bytes(b"\x89PNG\r\n" * 100)
    with pytest.raises(UnreadableFile, match="not a caffemodel"):
        read_net(files.prototxt, files.caffemodel)
    with pytest.raises(UnreadableFile, match="cannot read"):
        read_net(files.prototxt, tmp_path / "none")
    with pytest.raises(UnreadableFile, match="cannot read"):
        read_net(tmp_path / "none", None)


def test_binary_is_not_a_prototxt(tmp_path):
    (tmp_path / "p").write_bytes(bytes(range(256)))
    with pytest.raises(UnreadableFile, match="not a prototxt"):
        read_net(tmp_path / "p", None)


def test_foreign_field_numbers_do_not_matter(tmp_path):
    """In another fork's caffemodel a number may mean another message."""
    net = one_layer(CONV)
    files = written(tmp_path, net)
    alien = message("LayerParameter")(name="alien")
    alien.permute_param.order.extend([0, 1])
    data = alien.SerializeToString().replace(b"\xd2\x0c", b"\xb2\x09")
    files.caffemodel.write_bytes(b"\xa2\x06" + bytes([len(data)]) + data + files.caffemodel.read_bytes())
    read_net(files.prototxt, files.caffemodel)


def test_the_vendors_prototxts(pytestconfig):
    folder = pytestconfig.rootpath.parent / "shared" / "nnie_prototxt"
    if not folder.is_dir():
        pytest.skip("no ../shared/nnie_prototxt beside the repository")
    refused = set()
    for path in folder.rglob("*.prototxt"):
        try:
            net = read_net(path, None)
        except UnreadableFile:
            refused.add(path.stem)
        else:
            assert net.inputs
            assert net.outputs
    assert refused == {"nanodet_320_raw"}, "it has two slice points for two tops, which Caffe refuses, too"


@pytest.mark.parametrize(
    "layer",
    [
        'type: "Slice"',
        'type: "Split"',
        'type: "Upsample" top: "y" upsample_param { scale: inf }',
        'type: "Upsample" top: "y" upsample_param { scale: 1e30 }',
        'type: "Convolution" top: "y" convolution_param { num_output: 2 kernel_size: 1 stride: 0 }',
        'type: "Convolution" top: "y" convolution_param { num_output: 2 kernel_size: 1 group: 0 }',
        'type: "Pooling" top: "y" pooling_param { kernel_h: 2 }',
        'type: "Pooling" top: "y" pooling_param { pool: STOCHASTIC kernel_size: 2 }',
        'type: "Reshape" top: "y" reshape_param { shape { dim: -5 } }',
        'type: "Permute" top: "y" permute_param { order: 4000000000 }',
        'type: "ShuffleChannel" top: "y" shuffle_channel_param { group: 0 }',
        'type: "Reorg" top: "y" reorg_param { stride: 0 }',
        'type: "LRN" top: "y" lrn_param { local_size: 0 }',
        'type: "ArgMax" top: "y" argmax_param { top_k: 0 }',
    ],
)
def test_nonsense_is_refused_not_run(layer, tmp_path):
    with pytest.raises(UnreadableFile, match="layer 'a'"):
        read_net(_prototxt(tmp_path, f'layer {{ name: "a" bottom: "x" {layer} }}'), None)
