"""The command line of the other tests, and what a run may leave behind."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.cli.conftest import cli, model

__all__ = ["cli", "model", "whole_or_nothing"]


def whole_or_nothing(folder: Path) -> bool:
    """Whether a folder holds an export; one whose files are not those of its map fails the test."""
    maps = list(folder.glob("*.map.json"))
    for path in maps:
        for name, digest in json.loads(path.read_text())["files"].items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, f"{name} is not the map's"
    return bool(maps)
