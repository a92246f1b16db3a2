"""What the mapper said: its log, line by line, to findings with remedies.

Forms seen: `ERROR: file: parsePermutePara  line: 6149`, then `layer name: [Transpose_174]. error:Permute can only …`;
`WARNING: file: Inference::convBnParamProcess  line: 816`, then its text; a text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx2caffe.targets.nnie.rules import Finding, Rule

__all__ = ["read_log"]

_HEAD = re.compile(r"\b(?P<kind>ERROR|WARNING)\s*:\s*file\s*:\s*(?P<function>\S+)\s+line\s*:\s*\d+")
_LAYER = re.compile(r"layer name\s*:\s*\[(?P<layer>[^\]]*)\]\s*\.?\s*error\s*:\s*(?P<text>.*)", re.IGNORECASE)
_PARSER = re.compile(r"parse(\w+)Para")
_UNKNOWN = "compare the layer with docs/nnie-rules.md; a rule of your own (--rules, when = { log = '…' }) can name it"
_PLACEHOLDERS = {"%d": r"-?\d+", "%u": r"\d+", "%s": ".*?", "...": ".*?"}


@dataclass(frozen=True)
class _Said:
    line: int
    text: str
    layer: str = ""
    kind: str = ""
    function: str = ""


def read_log(
    text: str, rules: Mapping[str, Rule], file: str = "", nodes: Mapping[str, Sequence[str]] | None = None
) -> list[Finding]:
    """The findings of a log; `nodes`: Caffe layer -> the user's ONNX nodes."""
    patterns = {rule.id: _patterns(rule) for rule in rules.values()}
    found = []
    for said in _said(text):
        rule = next((rules[id] for id, known in patterns.items() if any(p.search(said.text) for p in known)), None)
        if rule is None and not said.kind and not said.layer:
            continue
        found.append(_finding(said, rule, file, tuple((nodes or {}).get(said.layer, ()))))
    return found


def _finding(said: _Said, rule: Rule | None, file: str, nodes: tuple[str, ...]) -> Finding:
    if rule is not None:
        return Finding.of(rule, rule.title, layer=said.layer, file=file, line=said.line, words=said.text, nodes=nodes)
    parser = _PARSER.search(said.function)
    where = f" (type {parser[1]})" if parser else ""
    severity = "slow" if said.kind == "WARNING" else "refused"
    remedy = "" if severity == "slow" else _UNKNOWN
    text = f"a message of the mapper's that no rule knows{where}"
    return Finding("", severity, said.layer, file, said.line, text, said.text, remedy, nodes=nodes)


def _said(text: str) -> Iterator[_Said]:
    """Messages: those behind a head, those that name a layer, and every other line by itself."""
    head: re.Match[str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line:
            continue
        if match := _HEAD.search(line):
            head, line = match, line[match.end() :].strip()
            if not line:
                continue
        kind, function = (head["kind"], head["function"]) if head else ("", "")
        if match := _LAYER.search(line):
            yield _Said(number, match["text"].strip(), match["layer"], kind or "ERROR", function)
        else:
            yield _Said(number, line, "", kind, function)
        head = None


def _patterns(rule: Rule) -> list[re.Pattern[str]]:
    """What the mapper's message of this rule looks like."""
    if "log" in rule.when:
        return [re.compile(rule.when["log"])]
    return [re.compile(_pattern(words)) for words in rule.words.split("; ") if words]


def _pattern(words: str) -> str:
    parts = re.split(r"(%d|%u|%s|\.\.\.)", words)
    return "".join(_PLACEHOLDERS.get(part) or re.escape(part) for part in parts)
