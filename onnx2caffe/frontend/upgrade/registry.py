"""The table (domain, op, since_version) → the function that reads that version of the op into canonical form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from onnx2caffe.frontend.builder import Builder
from onnx2caffe.frontend.reader import Entry, Reader

__all__ = ["INLINED", "MICROSOFT", "REASONS", "UPGRADES", "Upgrade", "inlined", "refused", "unchanged", "upgrades"]

Upgrade = Callable[[Reader, Builder], ir.Value | Sequence[Entry | None]]

MICROSOFT = "com.microsoft"

UPGRADES: dict[tuple[str, str, int], Upgrade] = {}

REASONS: dict[str, str] = {}
"""Why ops of ai.onnx that are in no version in the table have no canonical form."""


def upgrades(op_type: str, *versions: int, domain: str = "") -> Callable[[Upgrade], Upgrade]:
    """Register how these versions of an op are read.

    The function reads every attribute it knows and returns the node's output (or all of them, in order). It raises
    `Opaque` for what has no canonical form.
    """

    def register(function: Upgrade) -> Upgrade:
        for version in versions or (1,):
            UPGRADES[domain, op_type, version] = function
        return function

    return register


def unchanged(op_type: str, *versions: int) -> None:
    """Register versions that mean what opset 23 means: same inputs, same attributes, each made explicit."""
    upgrades(op_type, *versions)(_same)


def refused(reason: str, *op_types: str) -> None:
    """State why no version of these ops has a canonical form."""
    REASONS.update(dict.fromkeys(op_types, reason))


def inlined(op_type: str, *versions: int) -> None:
    """Register versions that are replaced by the function body in ONNX's own schema."""
    upgrades(op_type, *versions)(INLINED)


def INLINED(node: Reader, build: Builder) -> ir.Value:  # noqa: N802 - a marker, compared by identity
    """Stands in the table for "walk into the schema's function body"; the walk does that itself."""
    raise NotImplementedError(node.op)


def _same(node: Reader, build: Builder) -> Sequence[ir.Value]:
    return build.many(node.op, node.inputs, len(node.wanted), **node.explicit())
