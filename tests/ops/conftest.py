"""The runtimes every case runs in."""

from __future__ import annotations

import pytest

from onnx2caffe.runtimes.builtin import Builtin


@pytest.fixture(scope="session")
def runtimes(pycaffe):
    return [Builtin(), pycaffe]
