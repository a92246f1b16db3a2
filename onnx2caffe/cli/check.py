"""`onnx2caffe check`: findings one a line, then for each rule what the mapper says and what to do."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from onnx2caffe.cli.output import aside, say, say_json

if TYPE_CHECKING:
    from onnx2caffe.api import Finding, Report

__all__ = ["run"]


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
        input_shapes=arguments.input_shape,
        recipes=arguments.recipe,
    )
    failing = report.at_least(arguments.fail_on)
    if arguments.json:
        say_json({**asdict(report), "counts": report.counts, "failing": len(failing)})
    else:
        _say(report)
    return 1 if failing else 0


def _say(report: Report) -> None:
    for finding in report.findings:
        say(_line(finding))
    for finding in {f.rule: f for f in report.findings if f.rule}.values():
        say("")
        for line in _explained(finding):
            say(line)
    if report.findings:
        say("")
    counted = ", ".join(f"{count} {severity}" for severity, count in report.counts.items() if count)
    say(f"target {report.target}: {counted or 'nothing found'}")
    for note in report.notes:
        aside(f"note: {note}")


def _line(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    layer = f"layer {finding.layer!r}: " if finding.layer else ""
    nodes = f" (ONNX: {', '.join(finding.nodes)})" if finding.nodes else ""
    words = f": {finding.words}" if not finding.rule else ""
    return f"{place}: {finding.severity} {finding.rule or '?'}: {layer}{finding.text}{words}{nodes}"


def _explained(finding: Finding) -> list[str]:
    said = {
        "mapper": finding.words and f'"{finding.words}"',
        "do": finding.remedy,
        "option": finding.option,
        "source": f"{finding.source} ({finding.strength})",
    }
    lines = [f"  {what:6} {text}" for what, text in said.items() if text]
    return [f"{finding.rule} ({finding.severity})", *lines]
