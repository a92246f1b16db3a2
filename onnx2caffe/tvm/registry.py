"""Where emitters are registered: dialect, ONNX op type → function.

An emitter is pure: `f(op, net)` calls TVM operators through `net` and returns the value(s) of the node's outputs. What
holds in both dialects is registered for `BOTH`; a dialect's own emitter comes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

__all__ = ["BOTH", "DIALECTS", "emits", "emitter"]

DIALECTS = ("relay", "relax")
BOTH = "both"

_F = TypeVar("_F", bound=Callable[..., Any])
_EMITTERS: dict[tuple[str, str], Callable[..., Any]] = {}


def _register(dialect: str, ops: tuple[str, ...], function: _F) -> _F:
    for op in ops:
        if (dialect, op) in _EMITTERS:
            raise ValueError(f"{op} is registered twice for {dialect}")
        _EMITTERS[dialect, op] = function
    return function


def emits(dialect: str, *ops: str) -> Callable[[_F], _F]:
    """Register `f(op: Op, net) -> Value | Sequence[Value | None]` (one per output; None: unread) for ONNX op types."""
    return partial(_register, dialect, ops)


def emitter(dialect: str, op: str) -> Callable[..., Any] | None:
    """The emitter of an op in a dialect; None where there is none."""
    return _EMITTERS.get((dialect, op)) or _EMITTERS.get((BOTH, op))
