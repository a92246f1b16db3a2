"""The generated page says what the code does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "make_operators.py"


def test_the_page_is_up_to_date():
    done = subprocess.run([sys.executable, TOOL, "--check"], check=False)
    assert done.returncode == 0, "docs/operators.md is stale: run `make docs`"
