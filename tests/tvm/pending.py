"""Ops that nobody has written an emitter for yet: their rows may be refused. Empty in the end, and then gone."""

from __future__ import annotations

_BOTH = set("Det NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss".split())
_RELAY: set[str] = set()
_RELAX: set[str] = set()
PENDING = {"relay": _BOTH | _RELAY, "relax": _BOTH | _RELAX}
PARTIAL: set[str] = set()
"""Ops of which something is still missing."""
