"""An environment that `onnx2caffe setup` makes: its folder below the user's cache, its Python, the mark "ready"."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onnx2caffe.runtimes import interpreter
from onnx2caffe.runtimes.setup.commands import run
from onnx2caffe.runtimes.setup.report import Report

__all__ = ["Environment"]


@dataclass(frozen=True)
class Environment:
    """A virtual environment in `folder`/env. `instead`: what serves in its place, a hint."""

    folder: Path
    instead: str

    @property
    def python(self) -> Path:
        """Its Python, there or not."""
        return self.folder / "env" / "bin" / "python"

    @property
    def mark(self) -> Path:
        """A file that lies in the folder once everything there works."""
        return self.folder / "ready"

    @property
    def ready(self) -> Path | None:
        """Its Python once everything works, or None."""
        return self.python if self.mark.exists() else None

    def make(self, *packages: str) -> None:
        """Make it anew, with these packages.

        Raises:
            RuntimeMissing: it cannot be made.

        """
        self.mark.unlink(missing_ok=True)
        run(
            [sys.executable, "-m", "venv", "--clear", self.python.parent.parent],
            interpreter.environment(),
            self.instead,
        )
        self.pip(*packages)

    def pip(self, *arguments: str) -> None:
        """Install into it."""
        run(
            [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments],
            interpreter.environment(),
            self.instead,
        )

    @contextmanager
    def alone(self, name: str, report: Report) -> Iterator[None]:
        """Hold the folder's lock: two set-ups at a time would overwrite each other."""
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                report.say(f"waiting for another `onnx2caffe setup {name}`")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
