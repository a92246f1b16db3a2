"""What every ONNX op becomes: a table measured on the test rows by `make docs`, part of the package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from onnx2caffe.errors import UsageError, near

__all__ = ["CUT", "FILE", "NOTHING", "Operator", "Operators", "Recipe", "Variant", "is_words", "load"]

FILE = "operators.json"

NOTHING = ("nothing", "a constant")
"""What an op becomes that leaves no layer."""
CUT = "…"
"""Stands for the rest of a long sequence."""

_SHOWN = 4
_ABSENT = "what `onnx2caffe ops` does not list is refused"
_REFUSED, _LEFT, _AS = "refused", "on the CPU", "as "


def _without_form(target: str) -> str:
    return _LEFT if target == "nnie" else _REFUSED


def is_words(text: str) -> bool:
    """Whether a text of `Operator.columns` says something, and names no layers or calls."""
    return text in (*NOTHING, _REFUSED, _LEFT) or text.startswith((_AS, CUT))


@dataclass(frozen=True)
class Operator:
    """One ONNX op.

    `domain`: "" is ai.onnx. `versions`: the since-versions that are read; none where every node is refused. `until`:
    the last opset of an op that ONNX has withdrawn. `read_as`: the ops that reading puts in its place, if it does.
    `becomes`: target -> the layer sequences of its test rows, the shortest first; none where all are refused; likewise
    dialect of TVM -> the sequences of calls.
    `limits`: the reasons of refused rows. `tests`: rows run in a Caffe. `readings`: rows that check how it is read.
    """

    op: str
    domain: str
    versions: tuple[int, ...]
    until: int | None
    read_as: str
    becomes: Mapping[str, tuple[str, ...]]
    limits: tuple[str, ...]
    tests: int
    readings: int

    @property
    def name(self) -> str:
        """The op with its domain, unless that is ai.onnx."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def opsets(self) -> str:
        """The versions as text."""
        versions = ", ".join(map(str, self.versions)) or "–"
        return f"{versions} (to {self.until})" if self.until else versions

    @property
    def rows(self) -> str:
        """`tests` and `readings` as text."""
        return f"{self.tests} + {self.readings}" if self.readings else str(self.tests)

    def columns(self, targets: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """What to show of `becomes` for each target; "as …" where it is what one before shows."""
        seen: dict[tuple[str, ...], str] = {}
        for target in targets:
            shown = self._shown(target)
            yield (f"{_AS}{seen[shown]}",) if shown in seen and self.becomes[target] else shown
            seen.setdefault(shown, target)

    def state(self, target: str) -> str:
        """In a word: "yes", or what becomes of every row instead."""
        return "yes" if self.becomes[target] else _without_form(target)

    def _shown(self, target: str) -> tuple[str, ...]:
        """The first few; of the long ones, one."""
        found = self.becomes[target]
        short = [text for text in found if CUT not in text][:_SHOWN]
        shown = short if len(short) == _SHOWN else found[: len(short) + 1]
        more = len(found) - len(shown)
        return (*shown, f"{CUT} +{more}") if more else tuple(shown) or (_without_form(target),)


@dataclass(frozen=True)
class Variant:
    """One way to express an op or recipe: its name for `--recipe`, what it does, and whether it is only approximate."""

    name: str
    does: str
    approximate: bool


@dataclass(frozen=True)
class Recipe:
    """An ONNX op with a lowering, or a recipe that several share (lower case).

    `order`: target -> the names of the variants, in the order in which they are tried.
    """

    key: str
    variants: tuple[Variant, ...]
    order: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Operators:
    """The whole table. `opset`: the newest of ai.onnx that is read; `targets` of Caffe, `dialects` of TVM."""

    opset: int
    targets: tuple[str, ...]
    dialects: tuple[str, ...]
    operators: tuple[Operator, ...]
    recipes: tuple[Recipe, ...]

    def about(self, names: Sequence[str]) -> Operators:
        """The lines about some ops or recipes; upper and lower case are the same.

        Raises:
            UsageError: there is nothing of that name.

        """
        wanted = {name.lower() for name in names}
        operators = tuple(o for o in self.operators if {o.op.lower(), o.name.lower()} & wanted)
        recipes = tuple(r for r in self.recipes if r.key.lower() in wanted)
        known = {text.lower() for o in operators for text in (o.op, o.name)} | {r.key.lower() for r in recipes}
        if unknown := [name for name in names if name.lower() not in known]:
            raise UsageError(f"no op or recipe {unknown[0]!r}: {_ABSENT}", self._near(unknown[0]))
        return Operators(self.opset, self.targets, self.dialects, operators, recipes)

    def _near(self, name: str) -> str:
        """Names like `name`, those first whose recipes speak of it: ReLU6 is a Clip."""
        speaking = (r.key for r in self.recipes if any(name.lower() in v.does.lower() for v in r.variants))
        return near(name, (*(o.name for o in self.operators), *(r.key for r in self.recipes)), speaking)


def load() -> Operators:
    """The table of this package."""
    document = json.loads(resources.files("onnx2caffe").joinpath(FILE).read_text(encoding="utf-8"))
    return Operators(
        document["opset"],
        tuple(document["targets"]),
        tuple(document["dialects"]),
        tuple(Operator(**_frozen(entry)) for entry in document["operators"]),
        tuple(
            Recipe(entry["key"], tuple(Variant(**v) for v in entry["variants"]), _frozen(entry["order"]))
            for entry in document["recipes"]
        ),
    )


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return {key: _frozen(item) for key, item in value.items()} if isinstance(value, dict) else value
