"""Random small ONNX models: up to a dozen nodes or idioms, ranks 0 to 6, every opset from 7 to onnxruntime's newest."""

from __future__ import annotations

import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.fuzz import dense, elementwise, idioms, layout, spatial
from tests.fuzz.graph import IR_VERSION, Draw, Graph, Unfit

__all__ = ["models"]

OPSETS = tuple(range(7, 29))
FAMILIES = (spatial.MAKERS, layout.MAKERS, elementwise.MAKERS, dense.MAKERS, idioms.MAKERS)


@st.composite
def models(draw: Draw) -> onnx.ModelProto:
    """A legal model; every unread tensor is an output, and now and then a read one, an input, or one tensor twice."""
    g = Graph(draw, draw(st.sampled_from(OPSETS)))
    for _ in range(g.int(1, 2)):
        _add_input(g)
    for _ in range(g.int(2, 12)):
        maker = g.one(*g.one(*FAMILIES))
        try:
            maker(g)
        except Unfit:
            continue
    if not any(node.op_type != "Constant" for node in g.nodes):
        g.add("Relu", g.inputs[0])
    return _model(g)


def _add_input(g: Graph) -> None:
    name = g.name("x")
    rank = g.one(4, 4, 4, 4, 3, 3, 2, 5, 1)
    batch = [g.one(1, 1, 2)] if rank > 1 else []
    sizes = g.one((1, 7), (1, 7), (2, 4))
    g.shapes[name] = (*batch, *(g.one(g.int(*sizes), 4, 6) for _ in range(rank - len(batch))))
    g.inputs.append(name)


def _model(g: Graph) -> onnx.ModelProto:
    types = {n: (TensorProto.FLOAT, s) for n, s in g.shapes.items()} | g.others
    read = {i for node in g.nodes for i in node.input}
    made = [o for node in g.nodes for o in node.output if o in types]
    outputs = [o for o in made if o not in read or g.int(0, 9) == 9]
    if g.int(0, 19) == 19:
        outputs.append(g.inputs[0])
    if g.int(0, 19) == 19:
        twin = g.name("twin")
        g.nodes.append(helper.make_node("Identity", [outputs[0]], [twin], name=g.name("n")))
        types[twin] = types[outputs[0]]
        outputs.append(twin)
    values = {n: helper.make_tensor_value_info(n, *t) for n, t in types.items()}
    computed = {o for node in g.nodes for o in node.output}
    initializers = [c for n, c in g.constants.items() if n not in computed]
    graph = helper.make_graph(
        g.nodes, "fuzz", [values[i] for i in g.inputs], [values[o] for o in outputs], initializers
    )
    opsets = [helper.make_opsetid("", g.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
