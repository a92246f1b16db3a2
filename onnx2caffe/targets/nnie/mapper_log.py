"""What the mapper said: its log, line by line, to findings with remedies.

Forms seen: `ERROR: file: parsePermutePara  line: 6149`, then `layer name: [Transpose_174]. error:Permute can only …`;
`WARNING: file: Inference::convBnParamProcess  line: 816`, then its text; a text alone; glog's
`F1130 12:00:00.000000 7 net.cpp:29] …`, since a Caffe reads the prototxt. Every line that looks like an error is told,
whether a rule knows it or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from onnx2caffe.targets.nnie.rules import Finding, Rule

__all__ = ["Names", "read_log"]

_HEAD = re.compile(r"\b(?P<kind>ERROR|WARNING)\s*:\s*file\s*:\s*(?P<function>\S+)\s+line\s*:\s*\d+")
_LAYER = re.compile(r"layer name\s*:\s*\[(?P<layer>[^\]]*)\]\s*\.?\s*error\s*:\s*(?P<text>.*)", re.IGNORECASE)
_NAMING = [
    _LAYER,
    re.compile(r"\blayer (?P<layer>.+?) with type \S+ is\b", re.IGNORECASE),
    re.compile(r"\blayer\s?\[(?P<layer>[^\]]*)\]", re.IGNORECASE),
]
"""How the mapper names a layer."""

_GLOG = re.compile(r"\b(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\b")
_ERROR = re.compile(
    r"\b(?:ERROR|Error)\b|\berror\s*:|\berror while\b|\bTraceback\b|\bundefined symbol\b|(?i:\b(?:failed|fatal"
    r"|unsupported|not supported|segmentation fault|aborted|core dumped|terminate called)\b)"
)
_WARNING = re.compile(r"\bWARNING\b|\b[Ww]arning\s*:")
_LONGEST = 2000
"""Characters of a line that are looked at: messages are shorter, and the time of a search grows by the square."""
_LEVELS = {"I": "", "W": "WARNING", "E": "ERROR", "F": "ERROR"}

_PARSER = re.compile(r"parse(\w+)Para")
_UNKNOWN = "compare the layer with docs/nnie-rules.md; a rule of your own (--rules, when = { log = '…' }) can name it"
_PLACEHOLDERS = {"%d": r"-?\d+", "%u": r"\d+", "%s": ".*?", "...": ".*?"}


@dataclass(frozen=True)
class Names:
    """What a log's names stand for. `nodes`: Caffe layer -> the user's ONNX nodes; `makers`: blob -> its layer."""

    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    makers: Mapping[str, str] = field(default_factory=dict)

    def layer(self, name: str) -> str:
        """The layer of that name, or else the one that makes the blob of that name."""
        return name if name in self.nodes else self.makers.get(name, name)

    def layer_in(self, text: str) -> str:
        """The layer that a message is about: its own name stands there, or that of a blob it makes; "" if none."""
        for pattern in self._patterns:
            if match := pattern.search(text):
                return self.layer(match["name"])
        return ""

    @cached_property
    def _patterns(self) -> Sequence[re.Pattern[str]]:
        """Names behind `layer`, then layers, then blobs; plain words and numbers only where they stand as names."""
        layers, blobs = list(self.nodes), list(self.makers)
        telling = re.compile(r".*[^\W\d].*[\W\d_]|.*[\W\d_].*[^\W\d]", re.DOTALL)
        lists: list[tuple[str, Iterable[str]]] = [
            (r"\blayer\b\W{1,3}", layers),
            ("", filter(telling.match, layers)),
            (r"['\"\[(]", layers),
            ("", filter(telling.match, blobs)),
            (r"['\"\[(]", blobs),
        ]
        return [_any_of(before, names) for before, names in lists]


def _any_of(before: str, names: Iterable[str]) -> re.Pattern[str]:
    """One of the names, whole: not as a part of a longer one."""
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    either = "|".join(map(re.escape, longest_first)) or r"(?!)"
    start = before or r"(?<![\w/])(?<!\w[.:-])"
    return re.compile(rf"{start}(?P<name>{either})(?![\w/]|[.:-]\w)")


@dataclass(frozen=True)
class _Said:
    line: int
    text: str
    layer: str = ""
    kind: str = ""
    function: str = ""


def read_log(text: str, rules: Mapping[str, Rule], file: str = "", names: Names | None = None) -> list[Finding]:
    """The findings of a log; `names`: those of the net it is about, as far as it is known."""
    known = names or Names()
    patterns = {rule.id: _patterns(rule) for rule in rules.values()}
    found = []
    for said in _said(text):
        rule = next((rules[id] for id, forms in patterns.items() if any(p.search(said.text) for p in forms)), None)
        if rule is not None or said.kind:
            found.append(_finding(said, rule, file, known))
    return found


def _finding(said: _Said, rule: Rule | None, file: str, names: Names) -> Finding:
    layer = names.layer(said.layer) or names.layer_in(said.text)
    nodes = tuple(names.nodes.get(layer, ()))
    if rule is not None:
        return Finding.of(rule, rule.title, layer=layer, file=file, line=said.line, words=said.text, nodes=nodes)
    parser = _PARSER.search(said.function)
    where = f" (type {parser[1]})" if parser else ""
    severity = "slow" if said.kind == "WARNING" else "refused"
    remedy = "" if severity == "slow" else _UNKNOWN
    text = f"a message of the mapper's that no rule knows{where}"
    return Finding("", severity, layer, file, said.line, text, said.text, remedy, nodes=nodes)


def _said(text: str) -> Iterator[_Said]:
    """Messages: those behind a head, heads without one, and every other line by itself."""
    head: tuple[int, str, re.Match[str]] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw[:_LONGEST].strip()
        match = _HEAD.search(line)
        if head and match:
            yield _alone(*head)
        if match:
            head, line = (number, line, match), line[match.end() :].strip()
        if not line:
            continue
        yield _message(number, line, head[2] if head else None)
        head = None
    if head:
        yield _alone(*head)


def _alone(line: int, text: str, head: re.Match[str]) -> _Said:
    return _Said(line, text, "", head["kind"], head["function"])


def _message(number: int, line: str, head: re.Match[str] | None) -> _Said:
    kind, function = (head["kind"], head["function"]) if head else ("", "")
    kind = _kind(line) or kind
    naming = next((match for form in _NAMING if (match := form.search(line))), None)
    if naming is None:
        return _Said(number, line, "", kind, function)
    text = naming.groupdict().get("text", line).strip()
    return _Said(number, text or line, naming["layer"], kind, function)


def _kind(line: str) -> str:
    """ERROR or WARNING, as a line says of itself; else ""."""
    if match := _GLOG.search(line):
        return _LEVELS[match["level"]]
    if _ERROR.search(line):
        return "ERROR"
    return "WARNING" if _WARNING.search(line) else ""


def _patterns(rule: Rule) -> list[re.Pattern[str]]:
    """What the mapper's message of this rule looks like."""
    if "log" in rule.when:
        return [re.compile(rule.when["log"])]
    return [re.compile(_pattern(words)) for words in rule.words.split("; ") if words]


def _pattern(words: str) -> str:
    parts = re.split(r"(%d|%u|%s|\.\.\.)", words)
    return "".join(_PLACEHOLDERS.get(part) or re.escape(part) for part in parts)
