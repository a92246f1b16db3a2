"""What a proof says, as a table and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onnx2caffe.verify.measure import Verdict
from onnx2caffe.verify.scores import Proof, Row

__all__ = ["COLUMNS", "cells", "merged", "rows_to_first_difference", "side_by_side", "summary", "to_json"]

COLUMNS = ("ONNX tensor", "layer", "shape", "cosine", "max|Δ|", "relative", "allowed", "runtime", "verdict")


def cells(row: Row) -> tuple[str, ...]:
    """One row of the table, as text."""
    j = row.judgement
    verdict = f"{j.verdict}: {j.why}" if j.why else str(j.verdict)
    figures = (f"{j.cosine:.6f}", f"{j.max_abs:.1e}", f"{j.error:.1e}", f"{j.allowed:.1e}")
    return (row.tensor, row.layer, _shape(row), *figures, row.runtime, verdict)


def merged(rows: Sequence[Row]) -> list[Row]:
    """One row for each tensor that is equal in every runtime: the worst of its rows, naming them all."""
    by_tensor: dict[str, list[Row]] = {}
    for row in rows:
        by_tensor.setdefault(row.tensor, []).append(row)
    result: list[Row] = []
    for same in by_tensor.values():
        if any(row.judgement.verdict is not Verdict.EQUAL for row in same):
            result += same
            continue
        worst = max(same, key=lambda row: row.judgement.error / (row.judgement.allowed or 1.0))  # integers: 0 of 0
        result.append(replace(worst, runtime=", ".join(row.runtime for row in same)))
    return result


def side_by_side(rows: Sequence[Row], runtimes: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and lines of a table with one line for each tensor and its relative error in every runtime.

    The column of onnxruntime, the reference, holds what its own noise allows the others to be off.
    """
    by_tensor: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_tensor.setdefault(row.tensor, {})[row.runtime] = row
    lines = []
    for tensor, found in by_tensor.items():
        allowed = max(row.judgement.allowed for row in found.values())
        errors = (f"{found[name].judgement.error:.1e}" if name in found else "–" for name in runtimes)
        shape = _shape(next(iter(found.values())))
        lines.append((tensor, shape, f"±{allowed:.1e}", *errors, _overall(list(found.values()))))
    return ("ONNX tensor", "shape", "onnxruntime", *runtimes, "verdict"), lines


def _overall(rows: Sequence[Row]) -> str:
    """What is said of one tensor, and in which runtimes where it is not equal."""
    for verdict in (Verdict.DIFFERS, Verdict.UNJUDGED):
        if where := [row.runtime for row in rows if row.judgement.verdict is verdict]:
            return f"{verdict} in {', '.join(where)}"
    return str(Verdict.EQUAL)


def _shape(row: Row) -> str:
    return "×".join(map(str, row.shape)) or "scalar"


def rows_to_first_difference(proof: Proof) -> Sequence[Row]:
    """The rows up to and with the first that differs; all of them where none does."""
    first = proof.first_difference
    return proof.rows if first is None else proof.rows[: proof.rows.index(first) + 1]


def summary(proof: Proof) -> str:
    """One sentence: what was proved, or what differs, in which runtimes, on how many inputs."""
    where = " and ".join(_versions(proof))
    inputs = f"{proof.runs} input{'s' * (proof.runs != 1)}"
    equal, unjudged = proof.tensors(Verdict.EQUAL), proof.tensors(Verdict.UNJUDGED)
    aside = f", {len(unjudged)} cannot be judged" if unjudged else ""
    if proof.first_difference:
        different = proof.tensors(Verdict.DIFFERS)
        counts = f"{len(different)} of {len(different) + len(equal) + len(unjudged)} tensors differ"
        return f"{counts} in {where} ({inputs}{aside})"
    yardstick = f" to the model without {proof.without}" if proof.without else ""
    return f"proved: {len(equal)} tensor{'s' * (len(equal) != 1)} equal{yardstick} in {where} ({inputs}{aside})"


def _versions(proof: Proof) -> list[str]:
    return [name if version.startswith(name) else f"{name} ({version})" for name, version in proof.runtimes.items()]


def to_json(proof: Proof) -> dict[str, Any]:
    """A proof as plain data; infinite figures become null, which JSON has no other word for."""
    first = proof.first_difference
    return {
        "ok": proof.ok,
        "without": proof.without,
        "runs": proof.runs,
        "runtimes": dict(proof.runtimes),
        "first_difference": first.tensor if first else None,
        "unjudged_outputs": {name: list(before) for name, before in proof.unjudged.items()},
        "rows": [_row_json(row) for row in proof.rows],
    }


def _row_json(row: Row) -> dict[str, Any]:
    j = row.judgement
    return {
        "tensor": row.tensor,
        "layer": row.layer,
        "blob": row.blob,
        "shape": list(row.shape),
        "runtime": row.runtime,
        "run": row.run,
        "verdict": str(j.verdict),
        "cosine": _finite(j.cosine),
        "max_abs": _finite(j.max_abs),
        "relative": _finite(j.error),
        "allowed": _finite(j.allowed),
        "why": j.why,
    }


def _finite(figure: float) -> float | None:
    return figure if abs(figure) < float("inf") else None
