"""Ops that no Caffe layer computes and no composition of layers reaches, with the reason (recipes §18)."""

from __future__ import annotations

from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob

__all__ = ["REASONS"]

_OPS_BY_REASON: dict[str, tuple[str, ...]] = {
    "no Caffe layer computes it, and no combination of layers": ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Det"),
    "the last bit of a sum decides a whole step, and Caffe sums in another order; --strip-qdq drops the quantisation "
    "and says what that changes": ("QuantizeLinear",),
}

REASONS: dict[str, str] = {op: reason for reason, ops in _OPS_BY_REASON.items() for op in ops}
"""Op type -> why it is refused."""


@lowers(*REASONS)
def _refuse(op: Op, net: Emitter) -> Blob:
    """Nothing: there is no Caffe form (recipes §18)."""
    raise Refused(REASONS[op.type])
