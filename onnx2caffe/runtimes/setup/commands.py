"""Running other programs."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx2caffe.errors import RuntimeMissing

__all__ = ["run"]

_TAIL = 3000
"""So many characters of a failed command's output are shown: compilers write pages."""


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None, hint: str = "") -> str:
    """Run a command to its end; what it printed.

    Raises:
        RuntimeMissing: it failed or is not there; with the end of its output.

    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise RuntimeMissing(f"there is no program {words[0]!r} here", hint) from None
    if done.returncode:
        raise RuntimeMissing(
            f"`{shlex.join(words)}` failed with exit code {done.returncode}:\n{done.stdout[-_TAIL:].strip()}", hint
        )
    return done.stdout
