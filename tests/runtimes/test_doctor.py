"""What `doctor` says of each runtime."""

from __future__ import annotations

import importlib.util

from onnx2caffe.runtimes.doctor import examine
from onnx2caffe.runtimes.setup.tvm import PINS


def test_all_there(pycaffe, running):
    pythons = {"pycaffe": pycaffe.python, **{dialect: running(dialect).python for dialect in PINS}}
    by_name = {status.name: status for status in examine(pycaffe.python)}
    assert list(by_name) == ["ort", "builtin", *pythons]
    assert all(status.found and status.version and status.where for status in by_name.values())
    assert {name: by_name[name].where for name in pythons} == {name: str(python) for name, python in pythons.items()}
    assert by_name["pycaffe"].missing_layers == ()


def test_nothing_set_up(monkeypatch, tmp_path):
    for name in ("CAFFE", "RELAY", "RELAX"):
        monkeypatch.delenv(f"ONNX2CAFFE_{name}_PYTHON", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    missing = examine()[2:]
    assert [status.name for status in missing] == ["pycaffe", "relay", "relax"]
    for status in missing:
        assert not status.found
        assert f"onnx2caffe setup {status.name}" in status.hint
