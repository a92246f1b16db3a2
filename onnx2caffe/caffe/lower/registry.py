"""Where lowerings and recipes are registered: key -> named alternatives, in order of preference.

A *lowering* has an ONNX op type as its key and takes the node; a *recipe* has a lower-case key ("transpose", "crop")
and takes blobs and numbers. Both are pure: they emit layers through the `Emitter` and return the result blob(s). The
alternatives of one key are tried in the target's order (else in order of registration); the first one whose every layer
the target accepts is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from onnx2caffe.nodeview import Refused

__all__ = ["ALTERNATIVES", "Alternative", "Refused", "lowers", "recipe"]

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Alternative:
    """One way to express a key: its variant name, the function, and whether its numbers are only approximate."""

    variant: str
    function: Callable[..., Any]
    approximate: bool = False


ALTERNATIVES: dict[str, dict[str, Alternative]] = {}


def lowers(*ops: str, variant: str = "default", approximate: bool = False) -> Callable[[_F], _F]:
    """Register `f(op: Op, net: Emitter) -> Blob | Sequence[Blob]` (one blob per output) for ONNX op types."""

    def put(function: _F) -> _F:
        for key in ops:
            _register(key, Alternative(variant, function, approximate))
        return function

    return put


def recipe(key: str, variant: str, approximate: bool = False) -> Callable[[_F], _F]:
    """Register a recipe `f(net: Emitter, *args) -> Blob | Sequence[Blob]`, called as `net.recipe(key, *args)`."""

    def put(function: _F) -> _F:
        _register(key, Alternative(variant, function, approximate))
        return function

    return put


def _register(key: str, alternative: Alternative) -> None:
    known = ALTERNATIVES.setdefault(key, {})
    if alternative.variant in known:
        raise ValueError(f"{key}={alternative.variant} is registered twice")
    known[alternative.variant] = alternative
