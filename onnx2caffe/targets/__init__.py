"""The targets by name."""

from __future__ import annotations

from onnx2caffe.errors import UsageError
from onnx2caffe.targets.base import Target
from onnx2caffe.targets.caffe import BVLC, CAFFE

__all__ = ["TARGETS", "by_name"]

TARGETS = {target.name: target for target in (CAFFE, BVLC)}


def by_name(name: str) -> Target:
    """The target of this name.

    Raises:
        UsageError: there is none.

    """
    if name == "nnie":
        raise UsageError("target nnie is not there yet", "--target caffe or --target bvlc")
    if name not in TARGETS:
        raise UsageError(f"no target {name!r}", f"known: {', '.join(TARGETS)}")
    return TARGETS[name]
