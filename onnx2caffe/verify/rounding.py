"""A model that rounds otherwise: every element of its computed float tensors a few units in the last place off."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

__all__ = ["round_otherwise"]

_REACH = 4 * 2.0**-23
"""Relative: as far as orders of summation part in layers of ordinary size."""
_SEED = 7.0
_ONE = "//one"


def round_otherwise(proto: ModelProto, mirrored: bool = False) -> None:
    """Multiply every float32 tensor that a node of the top-level graph computes by 1 + 4·2^-23·noise, in place.

    Elements that are equal part, as they do in a runtime whose kernels sum some rows in another order: the softmax of a
    thousand equal scores near 1e10 is then seen to be noise. A shaken input alone moves all of them together.
    `mirrored`: by 1 - 4·2^-23 of the same noise. Of two elements that are equal each is then the greater one once, so
    that what ArgMax says of them is seen to be noise too.
    """
    typed = shape_inference.infer_shapes(proto).graph
    floats = {v.name for v in (*typed.value_info, *typed.output) if v.type.tensor_type.elem_type == TensorProto.FLOAT}
    nodes = list(proto.graph.node)
    proto.graph.ClearField("node")
    proto.graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), _ONE))
    for node in nodes:
        computed = [name for name in node.output if name in floats and node.op_type != "Constant"]
        for i, name in enumerate(node.output):
            if name in computed:
                node.output[i] = _exact(name)
        proto.graph.node.append(node)
        for name in computed:
            proto.graph.node.extend(_moved(name, "Sub" if mirrored else "Add"))


def _moved(name: str, turn: str) -> list[NodeProto]:
    noise, factor = f"{name}//noise", f"{name}//factor"
    return [
        helper.make_node(
            "RandomUniformLike",
            [_exact(name)],
            [noise],
            low=-_REACH,
            high=_REACH,
            seed=_SEED,
            dtype=TensorProto.FLOAT,
        ),
        helper.make_node(turn, [_ONE, noise], [factor]),
        helper.make_node("Mul", [_exact(name), factor], [name]),
    ]


def _exact(name: str) -> str:
    return f"{name}//exact"
