"""A disk without room, which nobody but a tool may have met: a compiler, a linker, tar."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping

from onnx2caffe.errors import UsageError

__all__ = ["PLAIN_WORDS", "check"]

PLAIN_WORDS: Mapping[str, str] = {"LANGUAGE": "C"}
"""Environment variables with which tools say so in the words that `check` looks for, whatever the user's language."""

_FULL = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT)]


def check(words: str) -> None:
    """Look through what a tool said that failed.

    Raises:
        UsageError: it had no room to write.

    """
    lines = [line.strip() for line in words.splitlines() if any(reason in line for reason in _FULL)]
    if lines:
        raise UsageError(
            f"cannot write: {lines[0]}",
            f"make room in the output folder and in {tempfile.gettempdir()} (TMPDIR=… names another)",
        )
