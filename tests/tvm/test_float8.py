"""Bytes that are numbers of five bits of exponent and two of mantissa: onnxruntime takes none, numpy is the oracle."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnx2caffe.errors import NotConvertible
from tests.ops.harness import FLOAT, Case, In, build
from tests.tvm.harness import emitted, run

CAST = build(Case("Cast", 19, (In((256,), "float8_e5m2"),), {"to": FLOAT}))


def test_every_one_is_read_in_relax(running) -> None:
    x = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2)
    ((y,),) = run(running("relax"), *emitted(CAST, "relax"), [{"x0": x}])
    assert np.array_equal(y, x.astype(np.float32), equal_nan=True)


def test_relay_has_none() -> None:
    with pytest.raises(NotConvertible, match="no arrays of float8_e5m2"):
        emitted(CAST, "relay")
