"""The contract of a pass: a name, a one-line claim, and `call(model)`."""

from __future__ import annotations

import abc
from typing import ClassVar

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

__all__ = ["Pass", "PassResult"]


class Pass(InPlacePass):
    """A canonical-model-to-canonical-model rewrite, exact in real arithmetic (float reordering allowed).

    `claim` states in one line what is replaced by what and why that is equal; `approximate = True` marks a rewrite that
    is not exact (off unless the user asks, and then reported with its measured error). A pass takes what it knows (a
    target's limits, the user's options) in its constructor.
    """

    claim: ClassVar[str] = ""
    approximate: ClassVar[bool] = False

    @abc.abstractmethod
    def call(self, model: ir.Model) -> PassResult:
        """Rewrite `model` in place; `PassResult(model, modified)`."""
