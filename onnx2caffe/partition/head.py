"""What stands in front of the nets though legal: the layout, the order of planes and the mean of an input.

A camera delivers the first two as the net wants them, and the mapper's cfg subtracts the third; on the net they would
cost time, and the mean 8-bit accuracy (nnie §18.7).
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.match import channel_vector, constant_operand, maker, source
from onnx2caffe.passes.mean import is_input

__all__ = ["Prepared", "belongs_in_front", "prepared"]

_MOVERS = ("Cast", "Gather", "Transpose")
_PICTURES = (1, 3)
"""The numbers of channels that pictures have for the mapper."""
_BYTE = 255
_SHOWN = 4


@dataclass(frozen=True)
class Prepared:
    """How an input of a net comes from one of the model's.

    `subtracted`: what, () if nothing. `mean`: the same, one number per channel of the net's input; None where it is not
    that. `turned`: whether the planes change their order.
    """

    source: str
    subtracted: tuple[float, ...]
    mean: tuple[float, ...] | None
    turned: bool

    @property
    def mapper_mean(self) -> tuple[float, ...] | None:
        """The numbers that the mapper can subtract instead."""
        return self.mean if self.mean is not None and len(self.mean) in _PICTURES else None

    def advice(self, blob: str) -> str:
        """What the camera or the mapper can do instead, for the net's input `blob`; "" where there is nothing to do."""
        turned = f"turned (B, G, R where {self.source!r} takes R, G, B)"
        if not self.subtracted:
            does = f"the head turns the planes of {self.source!r}; leave it out where they come {turned}"
            return f"{does}, and fill {blob!r} with them, [RGB_order] BGR" if self.turned else ""
        does = f"the head subtracts {_listed(self.subtracted)} from {self.source!r}"
        if self.mapper_mean is None:
            takes = "[mean_file] takes one number per channel of pictures with 1 or 3"
            return f"{does}; {takes}: run the head on the CPU, and {blob!r} is [image_type] 0 with [norm_type] 0"
        planes = f"the planes of pixels 0 … 255{', ' + turned if self.turned else ''}"
        return (
            f"{does}; nnie_mapper can do that: {_settings(self.mapper_mean)} in [mean_file], in this order; "
            f"then leave the head out and fill {blob!r} with {planes}"
        )


def belongs_in_front(node: ir.Node) -> bool:
    """Whether a node shifts an input, turns its planes, or makes planes of one whose channels come last."""
    return not canon.is_opaque(node) and (_is_mean(node) or _is_channels_last(node) or _turns_planes(node))


def prepared(value: ir.Value) -> Prepared | None:
    """How `value` comes from an input, if by nothing else than a head does."""
    subtracted: tuple[float, ...] = ()
    mean, turned = None, False
    node = value.producer()
    if node is not None and _is_mean(node):
        found = constant_operand(node)
        assert found is not None
        value, constant = found
        subtracted = tuple(map(float, -constant.ravel()))
        numbers = channel_vector(-constant, canon.shape(value), 1) if len(canon.shape(value)) > 1 else None
        mean = None if numbers is None else tuple(map(float, numbers))
    while (node := maker(value, *_MOVERS)) is not None:
        turned |= _turns_planes(node)
        value = source(node)
    return Prepared(value.name or "", subtracted, mean, turned) if value.is_graph_input() else None


def _is_mean(node: ir.Node) -> bool:
    found = constant_operand(node) if node.op_type == "Add" else None
    return found is not None and is_input(found[0])


def _is_channels_last(node: ir.Node) -> bool:
    perm = list(canon.attribute(node, "perm")) if node.op_type == "Transpose" else []
    return perm == [0, 3, 1, 2] and is_input(source(node))


def _turns_planes(node: ir.Node) -> bool:
    indices = canon.const(source(node, 1)) if node.op_type == "Gather" else None
    if indices is None or canon.attribute(node, "axis") not in (1, 3) or len(canon.shape(source(node))) != 4:
        return False
    return indices.ravel().tolist() == [2, 1, 0] and is_input(source(node))


def _settings(mean: tuple[float, ...]) -> str:
    """The mapper subtracts, then scales, bytes: of a mean of numbers 0 … 1 it wants 255 times as much."""
    if max(map(abs, mean)) > 1:
        return f"[norm_type] 2 and {_listed(mean)}"
    return f"[norm_type] 5, [data_scale] {1 / _BYTE:.8g} and {_listed(tuple(_BYTE * number for number in mean))}"


def _listed(numbers: tuple[float, ...]) -> str:
    """As far as they fit a line."""
    return ", ".join(f"{number:.6g}" for number in numbers[:_SHOWN]) + (" …" if len(numbers) > _SHOWN else "")
