"""Finishing: what is written is needed, named once, and no output by accident."""

from __future__ import annotations

import pytest

from onnx2caffe.caffe.finish import finish
from onnx2caffe.caffe.layers import Eltwise, Input, Parameter, Power, Silence, Slice
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.runtimes.base import Tap
from onnx2caffe.targets import CAFFE
from tests.caffe.nets import weighted, written


def net_of(*layers: Placed, outputs: list[str], shape=(1, 4)) -> Net:
    net = Net("net", [Placed("x", Input(shape=(shape,)), (), ("x",))], {"x": shape}, ["x"], outputs)
    for placed in layers:
        tops = placed.layer.infer([net.shapes[b] for b in placed.bottoms])
        net.shapes.update(zip(placed.tops, tops, strict=True))
        net.layers.append(placed)
    return net


def power(name: str, bottom: str, top: str = "") -> Placed:
    return Placed(name, Power(scale=2), (bottom,), (top or name,))


def test_dead_layers_go():
    parameter = Placed("w", weighted(Parameter(shape=(2,)), []), (), ("w",))
    net = finish(net_of(power("a", "x"), power("dead", "x"), power("dead2", "dead"), parameter, outputs=["a"]), CAFFE)
    assert [p.name for p in net] == ["x", "a"]
    assert set(net.shapes) == {"x", "a"}


def test_unread_tops_are_silenced(pycaffe, tmp_path):
    cut = Placed("cut", Slice(slice_point=(1, 2), tops=3), ("x",), ("a", "b", "c"))
    silence = Placed("silence", Power(), ("b",), ("y",))
    net = finish(net_of(cut, silence, outputs=["y"]), CAFFE)
    last = net.layers[-1]
    assert (last.name, last.layer.type, last.bottoms) == ("silence_2", Silence.type, ("a", "c"))
    pycaffe.run(written(tmp_path, net), [{"x": [[1, 2, 3, 4]]}], [Tap("y")])


def test_an_unread_input_is_no_output():
    net = net_of(Placed("w", weighted(Parameter(shape=(2,)), []), (), ("w",)), outputs=["w"])
    assert finish(net, CAFFE).layers[-1].bottoms == ("x",)


def test_an_output_that_is_read_needs_no_copy():
    net = net_of(power("a", "x"), power("b", "a"), outputs=["a", "b", "x"])
    assert finish(net, CAFFE).layers == net.layers


@pytest.mark.parametrize("clash", ["a_layer_0_split", "a_layer_0_split_0", "a_layer_0_split_1"])
def test_names_that_caffe_makes_itself(clash, pycaffe, tmp_path):
    both = Placed("both", Eltwise(), ("b", clash), ("y",))
    net = finish(net_of(power("layer", "x", "a"), power("b", "a"), power(clash, "a"), both, outputs=["y"]), CAFFE)
    assert set(net.shapes) == {"x", "a", "b", clash, "y"}
    (values,) = pycaffe.run(written(tmp_path, net), [{"x": [[1, 2, 3, 4]]}], [Tap("y")])
    assert values[Tap("y")].tolist() == [[8, 16, 24, 32]]


def test_two_splits_of_one_name(pycaffe, tmp_path):
    layers = [power("b_c", "x", "a"), power("c", "a", "a_b"), power("d", "a"), power("e", "a_b"), power("f", "a_b")]
    total = Placed("y", Eltwise(), ("d", "e", "f"), ("y",))
    net = finish(net_of(*layers, total, outputs=["y"]), CAFFE)
    (values,) = pycaffe.run(written(tmp_path, net), [{"x": [[1, 2, 3, 4]]}], [Tap("y")])
    assert values[Tap("y")].tolist() == [[20, 40, 60, 80]]
