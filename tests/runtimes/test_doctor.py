"""What `doctor` says of each runtime."""

from __future__ import annotations

import importlib.util

from onnx2caffe.runtimes.doctor import examine


def test_all_there(pycaffe):
    by_name = {status.name: status for status in examine(pycaffe.python)}
    assert list(by_name) == ["ort", "builtin", "pycaffe"]
    assert all(status.found and status.version and status.where for status in by_name.values())
    assert by_name["pycaffe"].where == str(pycaffe.python)
    assert by_name["pycaffe"].missing_layers == ()


def test_no_caffe(monkeypatch, tmp_path):
    monkeypatch.delenv("ONNX2CAFFE_CAFFE_PYTHON", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status = examine()[-1]
    assert not status.found
    assert "onnx2caffe setup pycaffe" in status.hint
