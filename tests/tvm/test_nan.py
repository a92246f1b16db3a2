"""NaN and infinities of elementwise ops, infinities of reductions come out where onnxruntime has them; also in C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from onnx2caffe.runtimes import c as runtime
from onnx2caffe.runtimes.tvm import quick_target
from onnx2caffe.tvm.registry import DIALECTS
from tests.ops.harness import Array, Case, In, build, constant, difference, ints, reference, sample
from tests.tvm.harness import emitted, run
from tests.tvm.test_c_ops import ran

X = (2, 3, 4)
NO_SLOPE = "LeakyRelu-without-slope"
CASES = [
    Case("Relu", 14, (X,)),
    Case("Clip", 13, (X, np.array(0, np.float32), np.array(6, np.float32)), id="Clip"),
    Case("Clip", 13, (X, None, np.array(0.5, np.float32)), id="Clip-above"),
    Case("Clip", 13, (X, In(()), In(())), id="Clip-computed"),
    Case("Max", 13, (X, X)),
    Case("Max", 13, (X, constant(3, 1))),
    Case("Max", 13, (constant(3, 1), X, X)),
    Case("Min", 13, (X, (3, 1))),
    Case("Min", 13, (constant(3, 1), X)),
    Case("Abs", 13, (X,)),
    Case("Sign", 13, (X,)),
    Case("LeakyRelu", 16, (X,), {"alpha": 0.0}, id=NO_SLOPE),
    Case("LeakyRelu", 16, (X,), {"alpha": 0.1}),
    Case("PRelu", 16, (X, constant(3, 1))),
    Case("Elu", 6, (X,)),
    Case("Selu", 6, (X,)),
    Case("Celu", 12, (X,)),
    Case("HardSigmoid", 6, (X,)),
    Case("HardSwish", 14, (X,)),
    Case("Softplus", 1, (X,)),
    Case("ThresholdedRelu", 10, (X,)),
    Case("Shrink", 9, (X,)),
    Case("Cast", 13, (X,), {"to": TensorProto.BOOL}),
    Case("Neg", 13, (X,)),
    Case("Reciprocal", 13, (X,)),
    Case("Softsign", 1, (X,)),
    Case("Sigmoid", 13, (X,)),
    Case("Tanh", 13, (X,)),
    Case("Erf", 13, (X,)),
    Case("Exp", 13, (X,)),
    Case("Floor", 13, (X,)),
    Case("Round", 11, (X,)),
    Case("Add", 14, (X, (3, 1))),
    Case("Mul", 14, (X, (3, 1))),
    Case("Div", 14, (X, (3, 1))),
    Case("Less", 13, (X, (3, 1))),
    Case("IsInf", 10, (X,)),
    *(Case("Reduce" + what, 13, (X,), {"axes": [2]}) for what in ("L1", "L2", "Max", "Mean", "Min", "Prod")),
    *(Case("Reduce" + what, 13, (X,), {"axes": [1, 2]}) for what in ("LogSumExp", "SumSquare", "Max", "Min")),
    Case("ReduceLogSumExp", 13, (X,), {"axes": [2]}),
    Case("ReduceSum", 13, (X, ints(2))),
]
INFINITE = ([np.inf], [-np.inf], [np.inf, -np.inf], [-np.inf] * 4, [np.inf] * 3)
"""What becomes of the first elements along the last axis, row by row."""


def poisoned(case: Case) -> Iterator[dict[str, Array]]:
    """Feeds with a NaN in each input in turn, and with infinities; none as a bound, which onnxruntime reads as none.

    No NaN is reduced, no infinity multiplied by a slope of 0 (docs/tvm.md).
    """
    feeds = sample(case, build(case), 0)
    for name, value in feeds.items():
        if not value.ndim:
            continue
        if not case.op.startswith("Reduce"):
            bad = value.copy()
            bad.flat[bad.size // 3] = np.nan
            yield {**feeds, name: bad}
        if case.id == NO_SLOPE:
            continue
        bad = value.copy()
        for row, numbers in zip(bad.reshape(-1, bad.shape[-1]), INFINITE, strict=False):
            row[:] = [*numbers, *row[len(numbers) :]][: row.size]
        yield {**feeds, name: bad}


def check(case: Case, feeds: dict[str, Array], result: Array) -> None:
    expected = reference(build(case), feeds)["y0"]
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(result[~finite], expected[~finite])
    assert difference(expected[finite], result[finite]) <= case.tolerance


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name()) for case in CASES])
def test_like_onnxruntime(case: Case, dialect: str, running) -> None:
    feeds, tvm = list(poisoned(case)), running(dialect)
    loaded, program = emitted(build(case), dialect)
    for feed, (result,) in zip(feeds, run(tvm, loaded, program, feeds), strict=True):
        check(case, feed, result)
    tvm.build(quick_target(dialect), 3)
    for feed in feeds:
        check(case, feed, tvm.run(list(feed.values()))[0])


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name()) for case in CASES])
def test_like_onnxruntime_in_c(case: Case, tmp_path: Path, running) -> None:
    if (cc := runtime.compiler()) is None:
        pytest.skip("apt-get install gcc")
    for number, feed in enumerate(poisoned(case)):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(case, feed, ran(build(case), feed, running("relay"), folder, cc)["y0"])
