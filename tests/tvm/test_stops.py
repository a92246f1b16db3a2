"""Where the source method stops, on the model as given: each stop names the node, and the command exits with 3."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx2caffe import cli, frontend
from onnx2caffe.errors import NotConvertible
from onnx2caffe.tvm import stops


def model(op: str, inputs: list, opset: int, **attributes) -> onnx.ModelProto:
    """A node `stop` of these inputs: a shape is an input of the graph, an array a constant."""
    values, constants, names = [], [], []
    for number, source in enumerate(inputs):
        names.append(f"x{number}")
        if isinstance(source, tuple):
            values.append(helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, source))
        else:
            constants.append(numpy_helper.from_array(np.asarray(source, np.float32), names[-1]))
    node = helper.make_node(op, names, ["y"], name="stop", **attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "stops", values, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


STOPS = {
    "matmul-one": (model("MatMul", [(2, 3)], 13), "it has 1 input where ONNX defines 2"),
    "matmul-three": (model("MatMul", [(2, 3), (3, 4), (2, 4)], 13), "it has 3 inputs where ONNX defines 2"),
    "upsample-one": (model("Upsample", [(1, 2, 3, 4)], 9), "it has 1 input where ONNX defines 2"),
    "upsample-three": (
        model("Upsample", [(1, 2, 3, 4), [1, 1, 2, 2], [1]], 9),
        "it has 3 inputs where ONNX defines 2",
    ),
    "upsample-attribute-and-input": (
        model("Upsample", [(1, 2, 3, 4), [1, 1, 2, 2]], 7, scales=[1.0, 1.0, 2.0, 2.0]),
        "it has 3 inputs where ONNX defines 2",
    ),
    "upsample-5d": (model("Upsample", [(1, 2, 3, 4, 5), [1, 1, 2, 2, 2]], 9), "5 axes; ONNX has that"),
    "upsample-5d-attribute": (
        model("Upsample", [(1, 2, 3, 4, 5)], 7, scales=[1.0, 1.0, 2.0, 2.0, 2.0]),
        "5 axes; ONNX has that",
    ),
    "upsample-channels": (model("Upsample", [(1, 2, 3, 4), [1, 2, 2, 2]], 9), "the channels; ONNX has that"),
    "upsample-batch": (
        model("Upsample", [(1, 2, 3, 4)], 7, scales=[2.0, 1.0, 2.0, 2.0]),
        "the channels; ONNX has that",
    ),
}


@pytest.mark.parametrize("name", STOPS)
def test_stop(name: str, tmp_path, capsys) -> None:
    proto, words = STOPS[name]
    with pytest.raises(NotConvertible, match=words) as caught:
        stops.check(frontend.from_proto(proto))
    assert [blocked.node for blocked in caught.value.blocked] == ["stop"]
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    assert cli.main(["tvm", str(path), "-o", str(tmp_path / "out")]) == 3
    assert "'stop'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "proto",
    [
        model("MatMul", [(2, 3), (3, 4)], 13),
        model("Upsample", [(1, 2, 3, 4), [1, 1, 2, 2]], 9),
        model("Upsample", [(1, 2, 3, 4)], 7, scales=[1.0, 1.0, 2.0, 3.0]),
        model("Resize", [(1, 2, 3, 4, 5), [], [1, 1, 2, 2, 2]], 13),
        model("Resize", [(1, 2, 3, 4), [], [1, 2, 2, 2]], 13),
    ],
    ids=["matmul", "upsample-9", "upsample-7", "resize-5d", "resize-channels"],
)
def test_nothing_stops_what_the_method_covers(proto) -> None:
    stops.check(frontend.from_proto(proto))
