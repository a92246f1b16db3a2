"""The page on the source method cites code and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CITED = sorted({*re.findall(r"`((?:onnx2caffe|tests)/[^`]+)`", (ROOT / "docs" / "method.md").read_text())})


@pytest.mark.parametrize("place", CITED)
def test_what_is_cited_exists(place: str) -> None:
    path, _, name = place.partition("::")
    assert (ROOT / path).is_file()
    assert not name or f"def {name}(" in (ROOT / path).read_text()
