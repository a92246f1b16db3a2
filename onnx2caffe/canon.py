"""The canonical model: vocabulary and typed access, shared by every room.

The frontend makes a canonical model, passes keep it canonical (docs/architecture.md, "The canonical model"), exits read
it. Nothing here changes a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

__all__ = [
    "MOST_ELEMENTS",
    "OPSET",
    "Note",
    "Shape",
    "UserTensor",
    "attribute",
    "const",
    "dtype",
    "is_opaque",
    "is_unsized",
    "label",
    "shape",
    "sizes",
    "sources",
    "tensors",
]

OPSET = 23
"""The one opset (ai.onnx) of every canonical model."""

MOST_ELEMENTS = 2**31 - 1
"""Of a computed tensor: the runtimes count with 32 bits, and a pass may look at each place along an axis.

A node that makes a larger one is opaque.
"""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class UserTensor:
    """A tensor of the user's own file: its name and its static ONNX shape."""

    name: str
    shape: Shape


@dataclass(frozen=True)
class Note:
    """Something the user should know: `level` is "note" or "warning", `nodes` the user's node names concerned."""

    level: str
    text: str
    nodes: tuple[str, ...] = ()


def shape(value: ir.Value) -> Shape:
    """The static shape of a canonical value.

    Raises:
        ValueError: the value has no static shape (an opaque node's output).

    """
    dims = value.shape
    if dims is None or not all(isinstance(d, int) for d in dims):
        raise ValueError(f"{value.name!r} has no static shape: {dims}")
    return tuple(int(d) for d in dims)  # type: ignore[arg-type]


def sizes(value: ir.Value) -> Shape:
    """The shape of an output of an unsized node, with -1 for each size that depends on data."""
    if value.shape is None:
        raise ValueError(f"{value.name!r} has no known rank")
    return tuple(dim if isinstance(dim, int) else -1 for dim in value.shape)


def dtype(value: ir.Value) -> ir.DataType:
    """The element type of a canonical value."""
    if value.dtype is None:
        raise ValueError(f"{value.name!r} has no element type")
    return value.dtype


def const(value: ir.Value | None) -> np.ndarray[Any, Any] | None:
    """The array behind an initializer (a view, never a copy), or None for computed values."""
    if value is None or value.const_value is None:
        return None
    return value.const_value.numpy()


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The plain Python value of an attribute (int, float, str, tuple, array), or `default`."""
    found = node.attributes.get(name)
    if found is None:
        return default
    value = found.value
    if found.type == ir.AttributeType.TENSOR:
        return value.numpy()
    return (
        tuple(value)
        if found.type in (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS)
        else value
    )


def tensors(value: ir.Value) -> tuple[UserTensor, ...]:
    """The user's tensors whose values this value holds in C order (shapes may differ from the value's own)."""
    return tuple(value.meta.get("tensors", ()))


def sources(node: ir.Node) -> tuple[str, ...]:
    """The names of the user's nodes that this node stands for."""
    return tuple(node.meta.get("sources", ()))


def label(node: ir.Node) -> str:
    """What messages call a node: the user's nodes that it stands for, else its own name."""
    named = next((value.name for value in node.outputs if value.name), None)
    return ", ".join(sources(node)) or node.name or named or node.op_type


def is_opaque(node: ir.Node) -> bool:
    """True for a node kept as it is (data-dependent shape, control flow, unknown domain): only for CPU or TVM."""
    return bool(node.meta.get("opaque", False))


def is_unsized(node: ir.Node) -> bool:
    """True for an opaque node that lacks nothing but sizes of its outputs, which depend on data.

    Its inputs are canonical; its attributes are the user's own: defaults are absent, an axis may be negative.
    """
    return bool(node.meta.get("unsized", False))
