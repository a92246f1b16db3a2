"""A command line in this process, in an empty folder."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from onnx2caffe.cli import main
from tests.verify.models import save


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Runs a command line in `tmp_path`; nothing of the machine's Caffe is used unless the test asks."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Ran:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def model(tmp_path):
    return save("classifier", tmp_path)
