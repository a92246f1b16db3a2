"""The evaluator against onnxruntime, node by node, and on int64 index maps."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnx2caffe import canon
from onnx2caffe.frontend import from_proto
from onnx2caffe.frontend.evaluate import MOVERS, NotEvaluable, evaluate, run
from tests.frontend.build import parsed
from tests.frontend.cases import CASES, Case
from tests.frontend.test_upgrade import model, runnable, session

LATEST = [case for case in CASES if from_proto(model(case, case.versions[-1])[0]).model.graph.num_nodes()]


def interpreted(graph: ir.Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """A whole canonical graph, one `evaluate` after the other."""
    arrays = {value: feeds[str(value.name)] for value in graph.inputs}
    for value in graph.initializers.values():
        array = canon.const(value)
        assert array is not None
        arrays[value] = array
    for node in graph:
        inputs = [None if value is None else arrays[value] for value in node.inputs]
        arrays.update(zip(node.outputs, evaluate(node, inputs), strict=True))
    return [arrays[value] for value in graph.outputs]


@pytest.mark.parametrize("case", LATEST, ids=lambda case: case.id)
def test_evaluate_agrees_with_onnxruntime(case: Case) -> None:
    proto, feeds = model(case, case.versions[-1])
    loaded = from_proto(proto).model
    runner = session(runnable(ir.to_proto(loaded)))
    try:
        got = interpreted(loaded.graph, feeds)
    except NotEvaluable as error:
        pytest.skip(f"onnxruntime: {error}"[:100])
    want = runner.run(None, {i.name: feeds[i.name] for i in runner.get_inputs()})
    for a, b in zip(want, got, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)


def lone_mover(case: Case) -> ir.Node | None:
    nodes = list(from_proto(model(case, case.versions[-1])[0]).model.graph)
    plain = len(nodes) == 1 and canon.attribute(nodes[0], "reduction", "none") == "none"
    return nodes[0] if plain and nodes[0].op_type in MOVERS else None


MOVING = [case for case in LATEST if lone_mover(case) is not None]


@pytest.mark.parametrize("case", MOVING, ids=lambda case: case.id)
def test_movers_move_indices_as_they_move_data(case: Case) -> None:
    proto, feeds = model(case, case.versions[-1])
    loaded = from_proto(proto).model
    (node,) = loaded.graph
    data = [feeds[str(v.name)] if v is not None and canon.const(v) is None else canon.const(v) for v in node.inputs]
    fill = 0.0
    indices: list[np.ndarray | None] = []
    flat = np.zeros(0, np.float32)
    for position, array in enumerate(data):
        if array is None or array.dtype != np.float32:
            indices.append(array)
        elif node.op_type == "Pad" and position == 2:
            fill = float(array)
            indices.append(np.asarray(-1))
        else:
            indices.append(np.arange(array.size).reshape(array.shape) + flat.size)
            flat = np.concatenate([flat, array.ravel()])
    want = session(runnable(ir.to_proto(loaded))).run(None, feeds)
    for index, values in zip(evaluate(node, indices), want, strict=True):
        assert index.dtype == np.int64
        np.testing.assert_array_equal(np.where(index < 0, np.float32(fill), flat[index]), values)


def test_all_movers_are_tested() -> None:
    tested = {node.op_type for case in MOVING if (node := lone_mover(case)) is not None}
    assert tested == MOVERS


def test_arithmetic_of_integers_is_onnx_not_python() -> None:
    a, b = np.asarray([7, -7, 7, -7]), np.asarray([2, 2, -2, -2])
    np.testing.assert_array_equal(run("Div", {}, [a, b])[0], [3, -3, -3, 3])
    np.testing.assert_array_equal(run("Mod", {"fmod": 0}, [a, b])[0], [1, 1, -1, -1])
    np.testing.assert_array_equal(run("Mod", {"fmod": 1}, [a, b])[0], [1, -1, 1, -1])
    np.testing.assert_array_equal(run("Cast", {"to": 7}, [np.float32([1.7, -1.7])])[0], [1, -1])


def test_what_nobody_can_run_is_said() -> None:
    with pytest.raises(NotEvaluable, match="Nothing"):
        run("Nothing", {}, [np.zeros(1, np.float32)])


def test_a_node_that_cannot_fold_stays() -> None:
    proto = parsed(
        "g () => (float[2] y) { c = Constant <value_ints = [1, 0]> ()\n d = Div (c, c)\n y = Cast <to = 1> (d) }"
    )
    assert [n.op_type for n in from_proto(proto).model.graph] in ([], ["Div", "Cast"])
