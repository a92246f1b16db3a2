"""The page of rules says what rules.toml says."""

from __future__ import annotations

from onnx2caffe.targets.nnie.rules import load_rules
from tools.make_nnie_rules import PAGE, SOURCES, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_source_is_explained():
    """What a finding prints can be looked up on the page, and nothing else stands there."""
    cited = {name for rule in load_rules().values() for name in rule.source.split("; ")}
    assert cited == {*SOURCES}
