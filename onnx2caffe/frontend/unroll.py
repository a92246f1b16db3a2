"""Loops whose number of turns is known here: their bodies, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import Builder, Opaque
from onnx2caffe.frontend.reader import Entry, Reader

__all__ = ["UNROLLED", "Body"]

Body = Callable[[Sequence[Entry | None]], list[Entry | None]]
"""Walks into a loop's body: its inputs → its outputs."""

_MOST = 256
"""Turns, each of which becomes nodes of its own."""


def loop(node: Reader, build: Builder, body: Body) -> list[Entry | None]:
    """Loop with a constant trip count or condition; what the body yields is stacked on a new first axis."""
    given = node.int_list(0, "trip count")
    limit = _MOST + 1 if given is None else given[0]
    condition: Entry | None = node.optional(1) or build.const(np.asarray(True), "condition")
    state, yields, turn = list(node.entries[2:]), [], 0
    while turn < limit and _holds(condition):
        if turn == _MOST:
            raise Opaque(f"a loop of more than {_MOST} turns")
        condition, *results = body([build.const(np.asarray(turn, np.int64), "turn"), condition, *state])
        state = results[: len(state)]
        yields.append(results[len(state) :])
        turn += 1
    if not yields and len(node.wanted) > len(state):
        raise Opaque("a loop without a turn, whose yields have no known shape")
    return [*state, *(_stacked(build, parts, 0) for parts in zip(*yields, strict=True))]


def scan(node: Reader, build: Builder, body: Body) -> list[Entry | None]:
    """Scan over slices of its inputs; what the body yields is stacked. Version 8 does so for each item of a batch."""
    if node.version > 8:
        return _scanned(node, build, body, node.present)
    if node.has(0):
        raise Opaque("sequences of their own lengths")
    values = [node.input(index) for index in range(1, len(node))]
    items = zip(*(_slices(build, value, 0) for value in values), strict=True)
    results = [_scanned(node, build, body, item) for item in items]
    return [_stacked(build, parts, 0) for parts in zip(*results, strict=True)]


def _scanned(node: Reader, build: Builder, body: Body, values: Sequence[ir.Value]) -> list[Entry | None]:
    count = node.integer("num_scan_inputs")
    state: list[Entry | None] = [*values[:-count]]
    kept, given = len(state), values[-count:]
    axes = node.integers("scan_input_axes", (0,) * count)
    backwards = node.integers("scan_input_directions" if node.version > 8 else "directions", (0,) * count)
    pieces = [
        _slices(build, value, node.positive(axis, len(canon.shape(value))))[:: -1 if back else 1]
        for value, axis, back in zip(given, axes, backwards, strict=True)
    ]
    yields = []
    for turn in zip(*pieces, strict=True):
        results = body([*state, *turn])
        state = results[:kept]
        yields.append(results[kept:])
    if not yields:
        raise Opaque("a scan without a turn, whose yields have no known shape")
    kinds = len(node.wanted) - kept
    axes = node.integers("scan_output_axes", (0,) * kinds)
    backwards = node.integers("scan_output_directions", (0,) * kinds)
    stacked = [
        _stacked(build, parts[:: -1 if back else 1], axis)
        for parts, axis, back in zip(zip(*yields, strict=True), axes, backwards, strict=True)
    ]
    return [*state, *stacked]


def _holds(condition: Entry | None) -> bool:
    array = canon.const(condition) if isinstance(condition, ir.Value) else None
    if array is None or array.size != 1:
        raise Opaque("control flow that depends on data")
    return bool(array.reshape(()))


def _slices(build: Builder, x: ir.Value, axis: int) -> list[ir.Value]:
    size = canon.shape(x)[axis]
    if size > _MOST:
        raise Opaque(f"a scan of more than {_MOST} turns")
    return [build.op("Gather", x, build.const(np.asarray(turn, np.int64), "turn"), axis=axis) for turn in range(size)]


def _stacked(build: Builder, parts: Sequence[Entry | None], axis: int) -> ir.Value:
    values = [part for part in parts if isinstance(part, ir.Value)]
    shape = canon.shape(values[0])
    if len(values) < len(parts) or any(canon.shape(value) != shape for value in values):
        raise Opaque("what its turns yield does not stack")
    at = axis % (len(shape) + 1)
    rows = [build.reshape(value, (*shape[:at], 1, *shape[at:])) for value in values]
    return rows[0] if len(rows) == 1 else build.op("Concat", *rows, axis=at)


UNROLLED = {"Loop": loop, "Scan": scan}
