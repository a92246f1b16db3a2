"""What tests of every room share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes import tvm
from onnx2caffe.runtimes.pycaffe import PyCaffe, find
from onnx2caffe.runtimes.tvm import Tvm

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


@pytest.fixture(scope="session")
def running() -> Iterator[Callable[[str], Tvm]]:
    """Dialect -> its TVM. Where `make test` promised one its absence is a failure, elsewhere a skip."""
    found: dict[str, Tvm] = {}

    def get(dialect: str) -> Tvm:
        if dialect not in found:
            try:
                found[dialect] = tvm.find(dialect)
            except RuntimeMissing as missing:
                reason = f"{missing.message}; {missing.hint}"
                if os.environ.get("ONNX2CAFFE_REQUIRE_TVM") == "1":
                    pytest.fail(reason)
                pytest.skip(reason)
        return found[dialect]

    yield get
    for one in found.values():
        one.close()
