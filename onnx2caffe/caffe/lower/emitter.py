"""The hands of a lowering: add a layer, get its blob; try alternatives, roll back those the target refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from onnx2caffe.caffe.layers import BNLL, ELU, AbsVal, Eltwise, Exp, Log, Power, ReLU, Sigmoid, TanH, Threshold
from onnx2caffe.caffe.layers.base import Layer, LayerError, Shape
from onnx2caffe.caffe.lower.registry import ALTERNATIVES, Alternative, Refused
from onnx2caffe.caffe.net import Blob, Placed
from onnx2caffe.caffe.rules import Rules

__all__ = ["PROVISIONAL", "Emitter"]

_T = TypeVar("_T")

_POINTWISE = (AbsVal, BNLL, ELU, Eltwise, Exp, Log, Power, ReLU, Sigmoid, TanH, Threshold)
"""Layers to which the shape of a blob means nothing."""

PROVISIONAL = "\0"
"""Starts every provisional name: no name in a net holds it (`caffe/names.py`), so none can clash."""


class Emitter:
    """Collects the layers of one lowered node; names are provisional until `caffe/lower/lower.py` binds them."""

    def __init__(self, rules: Rules, prefix: str, chosen: Mapping[str, str] | None = None) -> None:
        self._rules = rules
        self.prefix = PROVISIONAL + prefix
        self._chosen = chosen or {}
        self._count = 0
        self._trying: list[tuple[object, ...]] = []
        self.placed: list[Placed] = []
        self.shapes: dict[str, Shape] = {}
        self.used: list[tuple[str, str]] = []
        """(key, variant) of every recipe taken, for reports."""

    def __call__(self, layer: Layer, *bottoms: Blob, what: str = "") -> Blob:
        """Add a layer with one top. `what` names the step (default: the layer's type).

        Raises:
            Refused: Caffe or the target would refuse the layer.

        """
        (top,) = self.many(layer, *bottoms, what=what)
        return top

    def many(self, layer: Layer, *bottoms: Blob, what: str = "") -> tuple[Blob, ...]:
        """Add a layer with any number of tops (none: Silence)."""
        if any(b.held is not None for b in bottoms):
            return self._place_seen(layer, bottoms, what)
        shapes = [b.shape for b in bottoms]
        try:
            tops = layer.infer(shapes)
        except LayerError as problem:
            raise Refused(f"{layer.type}: {problem}") from problem
        if reason := self._rules.refuses(layer, shapes, tops):
            raise Refused(reason)
        self._count += 1
        name = f"{self.prefix}__{what or layer.type.lower()}{self._count}"
        names = [name if len(tops) == 1 else f"{name}_{i}" for i in range(len(tops))]
        self.placed.append(Placed(name, layer, tuple(b.name for b in bottoms), tuple(names)))
        self.shapes.update(zip(names, tops, strict=True))
        return tuple(Blob(n, s) for n, s in zip(names, tops, strict=True))

    def _place_seen(self, layer: Layer, bottoms: Sequence[Blob], what: str) -> tuple[Blob, ...]:
        """Add a layer that reads tensors of other shapes than their blobs have: only what has no axes can."""
        first = next(b for b in bottoms if b.held is not None)
        alike = [b.seen_as(b.own) if b.own == first.own else self._reshaped(b, first.own) for b in bottoms]
        if not isinstance(layer, _POINTWISE) or any(b.held for b in alike) or len({b.shape for b in bottoms}) > 1:
            own, shape = list(first.own), list(first.shape)
            raise Refused(f"no Reshape of the target makes {own} the {shape} that {layer.type} would read")
        return tuple(top.seen_as(first.shape) for top in self.many(layer, *alike, what=what))

    def _reshaped(self, blob: Blob, shape: Shape) -> Blob:
        return self.recipe("reshape", blob.seen_as(blob.own), shape)

    def recipe(self, key: str, *args: Any, **options: Any) -> Blob:
        """Take the first alternative of `key` that applies and the target accepts; its one result blob."""
        return cast("Blob", self.attempt(key, self, *args, **options))

    def attempt(self, key: str, *args: Any, **options: Any) -> Any:
        """Try the alternatives of `key` in order.

        Raises:
            Refused: none applies; the text holds one reason per alternative.

        """
        trial = (key, *map(_signature, args), *map(_signature, sorted(options.items())))
        if trial in self._trying:
            raise Refused(f"{key} leads back to itself")
        self._trying.append(trial)
        try:
            return self._first(key, *args, **options)
        finally:
            self._trying.pop()

    def _first(self, key: str, *args: Any, **options: Any) -> Any:
        ways = [partial(self._take, key, way, *args, **options) for way in self.alternatives(key)]
        if not ways:
            raise Refused(f"no way to express {key}")
        return self.either(*ways)

    def _take(self, key: str, alternative: Alternative, *args: Any, **options: Any) -> Any:
        try:
            result = alternative.function(*args, **options)
        except Refused as problem:
            if self._is_chosen(key):
                raise Refused(f"--recipe {key}={alternative.variant}: {problem}") from problem
            raise
        self.used.append((key, alternative.variant))
        return result

    def either(self, *ways: Callable[[], _T]) -> _T:
        """The result of the first way that applies and the target accepts; what others added is taken back.

        Raises:
            Refused: none; the text holds one reason per way.

        """
        reasons: list[str] = []
        for way in ways:
            mark = len(self.placed), len(self.used)
            try:
                return way()
            except Refused as problem:
                del self.placed[mark[0] :], self.used[mark[1] :]
                reasons += problem.reasons
        raise Refused(*dict.fromkeys(reasons))

    def alternatives(self, key: str) -> list[Alternative]:
        """The alternatives of `key`, best first: the user's choice alone, or the target's order, then the rest.

        A choice that needs `key` itself for its parts (`power=steps`) gets them in any form.
        """
        known = ALTERNATIVES.get(key, {})
        if self._is_chosen(key):
            return [known[self._chosen[key]]]
        first = [v for v in self._rules.order(key) if v in known]
        return [known[v] for v in (*first, *(v for v in known if v not in first)) if not known[v].approximate]

    def _is_chosen(self, key: str) -> bool:
        """Whether the attempt at `key` under way, which is not a part of another one, has the user's choice."""
        return key in self._chosen and sum(trial[0] == key for trial in self._trying) == 1


def _signature(argument: Any) -> object:
    """What makes an attempt the same as one under way: blobs differ by their shapes only."""
    if isinstance(argument, Blob):
        return argument.shape, argument.own
    if isinstance(argument, np.ndarray):
        return argument.shape, argument.tobytes()
    if isinstance(argument, list | tuple):
        return tuple(map(_signature, argument))
    return argument
