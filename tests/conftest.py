"""What tests of every room share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes.pycaffe import PyCaffe, find

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
"""Other processes of the machine make no test fail."""


@pytest.fixture(scope="session")
def pycaffe() -> Iterator[PyCaffe]:
    """A real Caffe. Where `make test` promised one its absence is a failure, elsewhere a skip."""
    try:
        runtime = find()
    except RuntimeMissing as missing:
        reason = f"{missing.message}; {missing.hint}"
        if os.environ.get("ONNX2CAFFE_REQUIRE_CAFFE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    yield runtime
    runtime.close()
