"""`onnx2caffe check`: the worst findings first, those alike in one line; then what the mapper says and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from onnx2caffe.cli.output import aside, say, say_json
from onnx2caffe.errors import said_once

if TYPE_CHECKING:
    from onnx2caffe.api import Finding, Report

__all__ = ["run"]

_SHOWN = 3
"""Of layers that have the same finding."""


def run(arguments: argparse.Namespace) -> int:
    """Check; 1 where a finding is as severe as `--fail-on` says."""
    from onnx2caffe import api

    report = api.check(
        arguments.net,
        target=arguments.target,
        soc=arguments.soc or "",
        cfg=arguments.cfg,
        rules=arguments.rules,
        mapper_log=arguments.mapper_log,
        partition=arguments.partition,
        input_shapes=arguments.input_shape,
        recipes=arguments.recipe,
    )
    failing = report.at_least(arguments.fail_on)
    if arguments.json:
        say_json({**asdict(report), "counts": report.counts, "failing": len(failing)})
    else:
        _say(report, None if arguments.verbose else _SHOWN)
    return 1 if failing else 0


def _say(report: Report, most: int | None) -> None:
    """Print a report; `most`: how many layers of one finding are named."""
    worst_first = [f for severity in report.counts for f in report.findings if f.severity == severity]
    for alike in _alike(worst_first):
        say(_line(alike, most))
    for rule in dict.fromkeys(f.rule for f in worst_first if f.remedy):
        say("")
        for line in _explained([f for f in worst_first if f.rule == rule and f.remedy]):
            say(line)
    if report.findings:
        say("")
    for text in filter(None, [report.summary, *(f"on the CPU  {line}" for line in said_once(report.on_cpu))]):
        say(text)
    counted = ", ".join(f"{count} {severity}" for severity, count in report.counts.items() if count)
    say(f"target {report.target}: {counted or 'nothing found'}")
    for note in report.notes:
        aside(f"note: {note}")


def _options(findings: Sequence[Finding]) -> str:
    """Options of `convert`; a net that it did not write has no use for them."""
    options = ", ".join(dict.fromkeys(f.option for f in findings if f.option))
    ours = any(f.nodes for f in findings)
    return options if ours or not options else f"when converting with onnx2caffe: {options}"


def _alike(findings: Sequence[Finding]) -> Iterable[Sequence[Finding]]:
    """Findings of one rule that say the same, in the place of the first."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        words = "" if finding.rule else finding.words
        groups.setdefault((finding.file, finding.severity, finding.rule, finding.text, words), []).append(finding)
    return groups.values()


def _line(alike: Sequence[Finding], most: int | None) -> str:
    finding, *others = alike
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    text = f"{finding.text}: {finding.words}" if not finding.rule else finding.text
    head = f"{place}: {finding.severity} {finding.rule or '?'}: "
    if not others:
        layer = f"layer {finding.layer!r}: " if finding.layer else ""
        return f"{head}{layer}{text}{_remark([_nodes(finding)])}"
    what = "layers" if all(f.layer for f in alike) else "times"
    places = ", ".join(map(_place, alike[:most])) + (" …" if len(alike[:most]) < len(alike) else "")
    return f"{head}{len(alike)} {what}: {text}: {places}"


def _place(finding: Finding) -> str:
    """One of several: its layer, or else its line."""
    line = f"line {finding.line}" if finding.line else ""
    if not finding.layer:
        return line
    return f"{finding.layer!r}{_remark([line, _nodes(finding)])}"


def _nodes(finding: Finding) -> str:
    return f"ONNX: {', '.join(finding.nodes)}" if finding.nodes else ""


def _remark(parts: Iterable[str]) -> str:
    said = "; ".join(filter(None, parts))
    return f" ({said})" if said else ""


def _explained(findings: Sequence[Finding]) -> list[str]:
    """What a rule says; the options are those of all that it found."""
    finding = findings[0]
    said = {
        "mapper": finding.rule and finding.words and f'"{finding.words}"',
        "do": finding.remedy,
        "option": _options(findings),
        "source": finding.source and f"{finding.source} ({finding.strength})",
    }
    lines = [f"  {what:6} {text}" for what, text in said.items() if text]
    return [f"{finding.rule or '?'} ({finding.severity})", *lines]
