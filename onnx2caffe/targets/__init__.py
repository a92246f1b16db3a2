"""The targets by name."""

from __future__ import annotations

from onnx2caffe.errors import UsageError
from onnx2caffe.targets.base import Target
from onnx2caffe.targets.caffe import BVLC, CAFFE
from onnx2caffe.targets.nnie.target import NNIE

__all__ = ["TARGETS", "by_name"]

TARGETS = {target.name: target for target in (CAFFE, BVLC, NNIE)}


def by_name(name: str) -> Target:
    """The target of this name.

    Raises:
        UsageError: there is none.

    """
    if name not in TARGETS:
        raise UsageError(f"no target {name!r}", f"known: {', '.join(TARGETS)}")
    return TARGETS[name]
