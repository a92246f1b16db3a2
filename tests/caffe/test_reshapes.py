"""Reshapes that somebody reads through."""

from __future__ import annotations

import numpy as np

from onnx2caffe.caffe.finish import finish
from onnx2caffe.caffe.layers import InnerProduct, Input, Reshape, Sigmoid
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.targets.caffe import CAFFE


def _net(outputs: list[str], *layers: Placed) -> Net:
    net = Net("net", [Placed("x", Input(shape=((2, 3, 4),)), (), ("x",)), *layers], inputs=["x"], outputs=outputs)
    for placed in net:
        tops = placed.layer.infer([net.shapes[b] for b in placed.bottoms])
        net.shapes.update(zip(placed.tops, tops, strict=True))
    return net


def _dense(bottom: str, inputs: int, axis: int = 1) -> Placed:
    layer = InnerProduct(num_output=5, axis=axis, bias_term=False, blobs=(np.ones((5, inputs), np.float32),))
    return Placed("fc", layer, (bottom,), ("fc",))


def _reshape(name: str, bottom: str, *shape: int) -> Placed:
    return Placed(name, Reshape(shape=shape), (bottom,), (name,))


def test_a_chain_of_reshapes_is_one() -> None:
    net = finish(_net(["b"], _reshape("a", "x", 6, 4), _reshape("b", "a", 24)), CAFFE)
    assert [(p.name, p.bottoms) for p in net] == [("x", ()), ("b", ("x",))]
    assert net.twins == {"a": "x"}


def test_inner_product_flattens_itself() -> None:
    net = finish(_net(["fc"], _reshape("flat", "x", 2, 12), _dense("flat", 12)), CAFFE)
    assert [(p.name, p.bottoms) for p in net] == [("x", ()), ("fc", ("x",))]


def test_inner_product_keeps_a_reshape_of_the_axes_before_its_own() -> None:
    net = finish(_net(["fc"], _reshape("rows", "x", 6, 4), _dense("rows", 4)), CAFFE)
    assert [p.name for p in net] == ["x", "rows", "fc"]


def test_a_reshape_that_is_an_output_stays() -> None:
    net = finish(_net(["flat", "fc"], _reshape("flat", "x", 2, 12), _dense("flat", 12)), CAFFE)
    assert [p.name for p in net] == ["x", "flat", "fc"]
    assert not net.twins


def test_there_and_back_is_nothing() -> None:
    sigmoid = Placed("y", Sigmoid(), ("back",), ("y",))
    net = finish(_net(["y"], _reshape("flat", "x", 24), _reshape("back", "flat", 2, 3, 4), sigmoid), CAFFE)
    assert [(p.name, p.bottoms) for p in net] == [("x", ()), ("y", ("x",))]


def test_copied_dimensions_depend_on_the_bottom() -> None:
    net = finish(_net(["b"], _reshape("a", "x", 6, 4), _reshape("b", "a", 0, 2, 2)), CAFFE)
    assert [p.name for p in net] == ["x", "a", "b"]
