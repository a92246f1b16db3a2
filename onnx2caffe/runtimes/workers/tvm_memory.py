"""Memory that TVM's planner may not give away too early (TVM 0.19, `tir.usmp`).

The planner takes a buffer for read when the last statement that reads it has run. Inside a loop that statement runs
again: scratch that the loop fills behind it, such as a softmax' exponentials, may get the same memory and overwrite
what the next turn reads. So every buffer is read once more at the end of where it is known.
"""

from __future__ import annotations

from typing import Any

from tvm import tir

__all__ = ["KEPT"]


def _kept(function: Any, _module: Any, _context: Any) -> Any:
    """Read every parameter at the end of a function, every scratch at the end of its scope."""
    buffers: dict[Any, Any] = {}

    def note(node: Any) -> None:
        if isinstance(node, tir.BufferLoad):
            buffers.setdefault(node.buffer.data, node.buffer)

    def ended(allocate: Any) -> Any:
        buffer = buffers.get(allocate.buffer_var)
        if buffer is None:
            return allocate
        body = tir.SeqStmt([allocate.body, _read(buffer)])
        return tir.Allocate(allocate.buffer_var, allocate.dtype, allocate.extents, allocate.condition, body)

    tir.stmt_functor.post_order_visit(function.body, note)
    parameters = [function.buffer_map[p].data for p in function.params if p in function.buffer_map]
    body = tir.stmt_functor.ir_transform(function.body, None, ended, ["tir.Allocate"])
    reads = [_read(buffers[data]) for data in parameters if data in buffers]
    return function.with_body(tir.SeqStmt([body, *reads]) if reads else body)


def _read(buffer: Any) -> Any:
    return tir.Evaluate(tir.BufferLoad(buffer, [0] * len(buffer.shape)))


KEPT = (3, tir.transform.prim_func_pass(_kept, opt_level=0))
"""Behind the passes that drop statements without effect: for `tir.add_lower_pass`."""
