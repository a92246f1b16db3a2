"""Every error a user can meet, in one place.

    Onnx2CaffeError            exit code, message, hint
    ├── UsageError        (2)  wrong arguments, a folder that may not be written, no room to write
    ├── UnreadableFile    (2)  not readable as ONNX / prototxt / caffemodel
    ├── Unsupported       (3)  read, but something in it stops the conversion
    │   ├── FreeDimension      a dimension nobody fixed
    │   └── NotConvertible     nodes without a lowering: all of them, with reasons
    ├── NoReference       (3)  onnxruntime cannot run the user's file
    ├── NumbersDiffer     (1)  the proof failed
    ├── RulesViolated     (1)  a check or a required figure failed
    └── RuntimeMissing    (4)  a needed runtime, layer type or tool is not there
        └── RuntimeCrash       a runtime died; carries its own words

A message says what, where (node name, op, tensor shapes) and why; the hint says what to do.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "Blocked",
    "FreeDimension",
    "NoReference",
    "NotConvertible",
    "NumbersDiffer",
    "Onnx2CaffeError",
    "RulesViolated",
    "RuntimeCrash",
    "RuntimeMissing",
    "UnreadableFile",
    "Unsupported",
    "UsageError",
    "advised",
    "near",
    "said_once",
]

_NEAREST, _LIKENESS = 5, 0.3


class Onnx2CaffeError(Exception):
    """Base of all errors of this package: a message, an optional hint and the process's exit code."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(Onnx2CaffeError):
    """The call itself is wrong (exit 2)."""

    exit_code = 2


class UnreadableFile(Onnx2CaffeError):
    """A file that is not what it should be (exit 2)."""

    exit_code = 2


class Unsupported(Onnx2CaffeError):
    """The file was read, but an op, version, domain or dimension in it stops the conversion (exit 3)."""

    exit_code = 3


class FreeDimension(Unsupported):
    """An input dimension that nobody fixed."""


@dataclass(frozen=True)
class Blocked:
    """One node that has no lowering: its name, op type, one reason per alternative tried, and the `gist` of them."""

    node: str
    op: str
    reasons: tuple[str, ...]
    gist: str = ""

    @property
    def why(self) -> str:
        """What to say of the reasons."""
        return self.gist or "; or ".join(self.reasons)

    def __str__(self) -> str:
        return f"{self.op} {self.node!r}: {self.why}"


def said_once(blocked: Sequence[Blocked]) -> list[str]:
    """A line per reason: the nodes of one op and one reason share it."""
    alike: dict[tuple[str, str], list[str]] = {}
    for b in blocked:
        alike.setdefault((b.op, b.why), []).append(b.node)
    return [f"{op} {', '.join(map(repr, nodes))}: {why}" for (op, why), nodes in alike.items()]


_WAYS_ROUND = (
    "--partition leaves such nodes in small ONNX files for the CPU and converts the rest; "
    "--output TENSOR ends the net in front of them"
)


class NotConvertible(Unsupported):
    """All nodes that stop a conversion, gathered (`blocked`); those of one op and one reason share a line."""

    def __init__(self, blocked: Sequence[Blocked], hint: str = "") -> None:
        self.blocked = tuple(blocked)
        head = f"{len(blocked)} node{'s' * (len(blocked) > 1)} cannot be converted:"
        super().__init__("\n".join([head, *(f"  {line}" for line in said_once(blocked))]), hint or _WAYS_ROUND)


class NoReference(Onnx2CaffeError):
    """onnxruntime cannot run the user's file, so nothing can be proved (exit 3)."""

    exit_code = 3


class NumbersDiffer(Onnx2CaffeError):
    """The written files do not compute what the user's file computes (exit 1)."""

    exit_code = 1


class RulesViolated(Onnx2CaffeError):
    """A checked file or a required figure breaks a rule (exit 1)."""

    exit_code = 1


class RuntimeMissing(Onnx2CaffeError):
    """A runtime, one of its layer types or a tool is missing (exit 4)."""

    exit_code = 4


class RuntimeCrash(RuntimeMissing):
    """A runtime's process died; the message holds its own last words."""


@contextlib.contextmanager
def advised(kind: type[Onnx2CaffeError], hint: str) -> Iterator[None]:
    """Errors of a kind get the hint that fits the command they stop."""
    try:
        yield
    except kind as problem:
        problem.hint = hint
        raise


def near(name: str, known: Iterable[str], first: Iterable[str] = ()) -> str:
    """The hint for a name that nothing has: `first`, then the likeliest of the `known` ones, else the first of them."""
    names = list(dict.fromkeys(known))
    likely = difflib.get_close_matches(name, names, n=_NEAREST, cutoff=_LIKENESS) or names[:_NEAREST]
    found = list(dict.fromkeys([*first, *likely]))[:_NEAREST]
    return f"near: {', '.join(found)}" if found else ""
