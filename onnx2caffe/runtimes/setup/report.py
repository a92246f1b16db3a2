"""Progress of an installation, on standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

__all__ = ["Report"]


class Report:
    """Says which step runs and how long each took; a terminal also sees that something moves."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Print one line."""
        self._console.print(text, markup=False)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Name a step while it runs, and its seconds after it."""
        start = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(f"{text} …"):
                yield
        else:
            self.say(f"{text} …")
            yield
        self.say(f"{text}: {time.monotonic() - start:.0f} s")
