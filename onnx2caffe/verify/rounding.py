"""A model that rounds otherwise: every element of its computed float tensors a few units in the last place off."""

from __future__ import annotations

from onnx import ModelProto, TensorProto, helper, shape_inference

__all__ = ["round_otherwise"]

_REACH = 4 * 2.0**-23
"""Relative: as far as orders of summation part in layers of ordinary size."""
_SEED = 7.0


def round_otherwise(proto: ModelProto) -> None:
    """Multiply every float32 tensor that a node of the top-level graph computes by 1 + 4·2^-23·noise, in place.

    Elements that are equal part, as they do in a runtime whose kernels sum some rows in another order: the softmax of a
    thousand equal scores near 1e10 is then seen to be noise. A shaken input alone moves all of them together.
    """
    typed = shape_inference.infer_shapes(proto).graph
    floats = {v.name for v in (*typed.value_info, *typed.output) if v.type.tensor_type.elem_type == TensorProto.FLOAT}
    nodes = list(proto.graph.node)
    proto.graph.ClearField("node")
    for node in nodes:
        computed = [name for name in node.output if name in floats and node.op_type != "Constant"]
        for i, name in enumerate(node.output):
            if name in computed:
                node.output[i] = _exact(name)
        proto.graph.node.append(node)
        for name in computed:
            proto.graph.node.extend(
                [
                    helper.make_node(
                        "RandomUniformLike",
                        [_exact(name)],
                        [f"{name}//factor"],
                        low=1 - _REACH,
                        high=1 + _REACH,
                        seed=_SEED,
                        dtype=TensorProto.FLOAT,
                    ),
                    helper.make_node("Mul", [_exact(name), f"{name}//factor"], [name]),
                ]
            )


def _exact(name: str) -> str:
    return f"{name}//exact"
