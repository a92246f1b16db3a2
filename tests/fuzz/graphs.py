"""Random small ONNX models of every opset from 7 to onnxruntime's newest.

`models`: up to a dozen nodes or idioms, ranks 0 to 6. `networks`: up to eight blocks of convolutional networks on one
to four inputs, mostly pictures.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.fuzz import dense, elementwise, idioms, layout, spatial
from tests.fuzz import networks as blocks
from tests.fuzz.graph import IR_VERSION, Draw, Graph, Maker, Unfit

__all__ = ["models", "networks"]

OPSETS = tuple(range(7, 29))
FAMILIES = (spatial.MAKERS, layout.MAKERS, elementwise.MAKERS, dense.MAKERS, idioms.MAKERS)


@st.composite
def models(draw: Draw, batches: Sequence[int] = (1, 1, 2)) -> onnx.ModelProto:
    """A legal model, its batches drawn from `batches`.

    Every unread tensor is an output, and now and then a read one, an input, or one tensor twice.
    """
    g = Graph(draw, draw(st.sampled_from(OPSETS)))
    for _ in range(g.int(1, 2)):
        _add_input(g, batches)
    for _ in range(g.int(2, 12)):
        _try(g, g.one(*g.one(*FAMILIES)))
    if not any(node.op_type != "Constant" for node in g.nodes):
        g.add("Relu", g.inputs[0])
    return _model(g)


@st.composite
def networks(draw: Draw) -> onnx.ModelProto:
    """A legal convolutional network; outputs as those of `models`."""
    g = Graph(draw, draw(st.sampled_from(OPSETS)))
    for _ in range(g.one(1, 1, 1, 2, 2, 3, 4)):
        _add_picture(g)
        _try(g, g.one(*blocks.STEMS))
    for _ in range(g.int(1, 8)):
        _try(g, g.one(*blocks.MAKERS) if g.int(0, 9) < 9 else g.one(*g.one(*FAMILIES)))
    if not any(node.op_type != "Constant" for node in g.nodes):
        g.add("Relu", g.inputs[0])
    return _model(g)


def _try(g: Graph, maker: Maker) -> None:
    with contextlib.suppress(Unfit):
        maker(g)


def _add_picture(g: Graph) -> None:
    """A picture or a map, now and then channels last, of odd and even size; or a vector."""
    name = g.name("x")
    channels = g.one(3, 3, 1, 4, 6, 8)
    size = [g.one(g.int(5, 16), 7, 8, 12, 13) for _ in range(2)]
    kind = g.int(0, 9)
    g.shapes[name] = (1, 6) if kind == 9 else (1, *size, channels) if kind == 8 else (1, channels, *size)
    g.inputs.append(name)


def _add_input(g: Graph, batches: Sequence[int]) -> None:
    name = g.name("x")
    rank = g.one(4, 4, 4, 4, 3, 3, 2, 5, 1)
    batch = [g.one(*batches)] if rank > 1 else []
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
