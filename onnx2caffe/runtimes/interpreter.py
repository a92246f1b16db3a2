"""Other Pythons than the running one."""

from __future__ import annotations

import os

__all__ = ["environment"]

_OF_THIS_PYTHON = ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP")


def environment() -> dict[str, str]:
    """The variables to run another Python with: without those that would lend it this one's packages."""
    return {name: value for name, value in os.environ.items() if name not in _OF_THIS_PYTHON}
