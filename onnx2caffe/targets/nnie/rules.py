"""Rules as data (`rules.toml`), the functions that evaluate them, and findings.

A rule's condition is a function registered under its id, or, without one, some layer types or a field of theirs, or a
message in the mapper's log. A user's own TOML overrides any entry of a rule, or adds rules without a function.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from onnx2caffe.caffe.layers import LAYERS, Layer
from onnx2caffe.caffe.params import parameter_names
from onnx2caffe.caffe.site import Site
from onnx2caffe.errors import UnreadableFile, UsageError, near
from onnx2caffe.textfile import read_text

__all__ = ["LAYER_RULES", "SEVERITIES", "Finding", "Rule", "layer_rule", "load_rules", "see_layer"]

SEVERITIES = ("slow", "unproven", "wrong", "refused")
"""From the mildest to the worst."""

_NEW: Mapping[str, Any] = {"title": "a rule of the user's"}
_CONDITION: Mapping[str, Any] = {"types": [""], "field": "", "one_of": [], "min": 0, "max": 0, "log": ""}
"""What a new rule's `when` may hold, each of its kind."""


@dataclass(frozen=True)
class Rule:
    """One rule: see the head of rules.toml for the entries."""

    id: str
    title: str
    severity: str
    when: Mapping[str, Any] = field(default_factory=dict)
    avoid: bool = False
    exempt: Sequence[str] = ()
    words: str = ""
    remedy: str = ""
    option: str = ""
    source: str = ""
    strength: str = ""

    @property
    def forbidden(self) -> bool:
        """Whether the exporter must not write what the rule describes."""
        return self.avoid or self.severity in {"refused", "wrong"}

    def exempts(self, text: str, type: str = "") -> bool:
        """Whether the user took out what these words say (`*` stands for any), or this layer type."""
        return type in self.exempt or any(
            re.fullmatch(".*".join(map(re.escape, words.split("*"))), text, re.DOTALL) for words in self.exempt
        )


@dataclass(frozen=True)
class Finding:
    """A rule that a net breaks: where, and what was seen there. `nodes`: the user's ONNX nodes behind the layer.

    `file` and `line` (from 1; 0: none) say where it stands, `layer` is "" for what concerns the whole net or the cfg.
    """

    rule: str
    severity: str
    layer: str
    file: str
    line: int
    text: str
    words: str = ""
    remedy: str = ""
    option: str = ""
    source: str = ""
    strength: str = ""
    nodes: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: Rule, text: str, *, layer: str = "", file: str = "", line: int = 0, **more: Any) -> Finding:
        """The finding of a rule, in the rule's words."""
        said = {name: getattr(rule, name) for name in ("words", "remedy", "option", "source", "strength")}
        return cls(rule.id, rule.severity, layer, file, line, text, **{**said, **more})


LayerRule = Callable[[Rule, Site], str | None]
LAYER_RULES: dict[str, LayerRule] = {}
"""Rule id -> what is wrong with one layer, or None."""


def layer_rule(id: str) -> Callable[[LayerRule], LayerRule]:
    """Register the function of a rule that needs one layer and its shapes."""

    def put(function: LayerRule) -> LayerRule:
        LAYER_RULES[id] = function
        return function

    return put


def see_layer(rule: Rule, site: Site) -> str | None:
    """What a rule about single layers finds at a layer; None for other rules."""
    text = _condition(rule, site)
    return None if text is None or rule.exempts(text, site.type) else text


def _condition(rule: Rule, site: Site) -> str | None:
    if rule.id in LAYER_RULES:
        return LAYER_RULES[rule.id](rule, site)
    if "field" in rule.when:
        return _field(rule, site)
    return f"type {site.type}" if site.type in rule.when.get("types", ()) else None


def _field(rule: Rule, site: Site) -> str | None:
    """The condition on one field: `types`, `field`, and `one_of`, `min` or `max`."""
    if site.layer is None or site.type not in rule.when["types"]:
        return None
    name, when = rule.when["field"], rule.when
    for value in _values(rule, site.layer, name):
        if "one_of" in when and not any(_same(value, known) for known in when["one_of"]):
            return f"{name} {_shown(value)} is not {_one_of(when['one_of'])}"
        if isinstance(value, str):
            continue
        if "min" in when and value < when["min"]:
            return f"{name} {_shown(value)} is below {when['min']}"
        if "max" in when and value > when["max"]:
            return f"{name} {_shown(value)} exceeds {when['max']}"
    return None


def _shown(value: Any) -> str:
    """A field's value as one writes it: Caffe's 0.1 is a float32."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _one_of(known: Sequence[Any]) -> str:
    return f"{'one of ' if len(known) > 1 else ''}{', '.join(map(_shown, known))}"


def _values(rule: Rule, layer: Layer, name: str) -> tuple[Any, ...]:
    value = getattr(layer, name, None)
    if value is None:
        return ()
    values = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(one, Real | str) for one in values):
        raise UsageError(f"rule {rule.id}: {name!r} of {layer.type} is neither number nor word", "name another field")
    return values


def _same(value: Any, known: Any) -> bool:
    """Equal as Caffe stores it: numbers in float32."""
    if isinstance(value, str) or isinstance(known, str):
        return bool(value == known)
    return bool(np.float32(value) == np.float32(known))


def load_rules(user: Path | None = None) -> dict[str, Rule]:
    """The rules by id; a user's TOML file overrides entries and adds rules.

    Raises:
        UnreadableFile: the user's file is no TOML.
        UsageError: an entry in it is unknown, of the wrong kind, or a new rule lacks one.

    """
    own = _own()
    merged = dict(own)
    for id, entry in (_parse(user) if user else {}).items():
        if not isinstance(entry, dict):
            raise UsageError(f"{user}: {id} is no table", f"write [{id}] and its entries below")
        merged[id] = _overridden(id, own.get(id, _NEW), entry)
    rules = {id: _rule(id, entry) for id, entry in merged.items()}
    for rule in rules.values():
        if "field" not in rule.when:
            _check_types(rule, rules)
    return rules


@cache
def _own() -> dict[str, dict[str, Any]]:
    return tomllib.loads(resources.files("onnx2caffe.targets.nnie").joinpath("rules.toml").read_text("utf-8"))


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, "TOML"))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise UnreadableFile(f"{path} is not TOML: {problem}") from problem


def _overridden(id: str, before: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """A rule's entries, the user's over ours, each of its kind.

    Raises:
        UsageError: an entry that rules do not have, or of another kind.

    """
    kinds = {f.name: "" for f in fields(Rule)} | {"avoid": False, "exempt": [""], "when": {}}
    _check_kinds(f"rule {id}", kinds, entry)
    when = before.get("when", {})
    _check_kinds(f"rule {id}, when", when or _CONDITION, entry.get("when", {}))
    return {**before, **entry, "when": {**when, **entry.get("when", {})}}


def _check_kinds(where: str, models: Mapping[str, Any], entries: Mapping[str, Any]) -> None:
    for name, value in entries.items():
        if name not in models:
            raise UsageError(f"{where} has an unknown entry {name!r}", f"known: {', '.join(models)}")
        if not _alike(value, models[name]):
            raise UsageError(f"{where}: {name} = {value!r} is of the wrong kind", f"such as {models[name]!r}")


def _alike(value: Any, model: Any) -> bool:
    """Whether a value is of the kind of another; lists and tables may hold anything of the kind of one entry there."""
    if isinstance(model, list):
        return isinstance(value, list) and all(not model or any(_alike(v, m) for m in model) for v in value)
    if isinstance(model, dict):
        values = list(model.values())
        return isinstance(value, dict) and all(not values or any(_alike(v, m) for m in values) for v in value.values())
    if isinstance(model, bool) or isinstance(value, bool):
        return type(value) is type(model)
    return isinstance(value, int | float if isinstance(model, int | float) else type(model))


def _rule(id: str, entry: Mapping[str, Any]) -> Rule:
    if entry.get("severity") not in SEVERITIES:
        raise UsageError(f"rule {id} has severity {entry.get('severity')!r}", f"one of {', '.join(SEVERITIES)}")
    rule = Rule(id=id, **entry)
    for name in {"log", "pattern"} & set(rule.when):
        try:
            re.compile(rule.when[name])
        except re.error as problem:
            raise UsageError(f"rule {id}: {name} is no regular expression: {problem}") from problem
    if id not in _own() and not _has_condition(rule.when):
        raise UsageError(
            f"rule {id} has no condition",
            f'when = {{ types = ["Slice"] }} in [{id}], or with a field and a bound: field = "kernel_size", max = 11',
        )
    if "field" in rule.when:
        _check_field(rule)
    return rule


def _check_field(rule: Rule) -> None:
    """Raise UsageError where a rule on a field could never find anything: a type or a field misspelt."""
    for type in rule.when["types"]:
        if type not in LAYERS:
            raise UsageError(f"rule {rule.id}: the fields of type {type!r} are not known", near(type, sorted(LAYERS)))
        known = parameter_names(LAYERS[type])
        if rule.when["field"] not in known:
            raise UsageError(
                f"rule {rule.id}: {type} has no field {rule.when['field']!r}",
                f"it has {', '.join(known) or 'none'}",
            )


def _check_types(rule: Rule, rules: Mapping[str, Rule]) -> None:
    """Raise UsageError where a rule is about a type that neither Caffe nor the mapper has, nor the user's E05 takes."""
    if rule.id in _own():
        return
    known = {*LAYERS, *rules["E05"].when["types"], *rules["E05"].exempt}
    for type in rule.when.get("types", ()):
        if type not in known:
            raise UsageError(f"rule {rule.id}: nobody has a layer type {type!r}", near(type, sorted(known)))


def _has_condition(when: Mapping[str, Any]) -> bool:
    """A log's words, or types; with a field, a bound for it."""
    bounds = {"field", "one_of", "min", "max"} & set(when)
    return "log" in when or ("types" in when and (not bounds or {"field"} < bounds))
