"""Each branch of the source method: which operators MatMul and Upsample become in Relay, and that the numbers hold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.harness import Case, constant
from tests.tvm.harness import check


def _matmul(a, b) -> Case:
    return Case("MatMul", 13, (a, b))


MATMUL = {
    "2d-2d": (_matmul((4, 6), (6, 5)), ["transpose", "nn.dense"]),
    "2d-2d-constant": (_matmul((4, 6), constant(6, 5)), ["nn.dense"]),
    "nd-2d": (_matmul((2, 3, 4, 6), (6, 5)), ["reshape", "transpose", "nn.dense", "reshape"]),
    "nd-nd": (_matmul((2, 3, 4, 6), (2, 3, 6, 5)), ["reshape", "reshape", "nn.batch_matmul", "reshape"]),
    "3d-3d": (_matmul((3, 4, 6), (3, 6, 5)), ["nn.batch_matmul"]),
    "batch-one": (_matmul((2, 3, 4, 6), (1, 1, 6, 5)), ["reshape", "reshape", "nn.batch_matmul", "reshape"]),
    "one-sided-broadcast": (
        _matmul((2, 3, 4, 6), (3, 6, 5)),
        ["reshape", "reshape", "broadcast_to", "reshape", "nn.batch_matmul", "reshape"],
    ),
    "both-broadcast": (
        _matmul((2, 1, 4, 6), (1, 3, 6, 5)),
        ["broadcast_to", "reshape", "broadcast_to", "reshape", "nn.batch_matmul", "reshape"],
    ),
    "2d-nd": (_matmul((4, 6), (2, 3, 6, 5)), ["reshape", "reshape", "nn.batch_matmul", "reshape"]),
    "rank-5-4": (
        _matmul((1, 1, 3, 4, 6), (3, 3, 6, 5)),
        ["broadcast_to", "reshape", "reshape", "nn.batch_matmul", "reshape"],
    ),
    "1d-1d": (_matmul((6,), (6,)), ["reshape", "reshape", "transpose", "nn.dense", "reshape"]),
    "1d-2d": (_matmul((6,), (6, 5)), ["reshape", "transpose", "nn.dense", "reshape"]),
    "2d-1d": (_matmul((4, 6), (6,)), ["reshape", "transpose", "nn.dense", "reshape"]),
    "1d-nd": (_matmul((6,), (2, 6, 5)), ["reshape", "nn.batch_matmul", "reshape"]),
    "nd-1d": (_matmul((2, 4, 6), (6,)), ["reshape", "reshape", "transpose", "nn.dense", "reshape"]),
    "inner-0": (_matmul((4, 0), constant(0, 5)), None),
    "rows-0": (_matmul((0, 6), (6, 5)), None),
}

UPSAMPLE = {
    "nearest": ({"mode": "nearest"}, [1, 1, 2, 3], "nearest_neighbor"),
    "linear": ({"mode": "linear"}, [1, 1, 3, 2], "linear"),
}


@pytest.mark.parametrize("dialect", ["relay", "relax"])
@pytest.mark.parametrize("name", MATMUL)
def test_matmul(name: str, dialect: str, running) -> None:
    case, fns = MATMUL[name]
    program = check(case, running(dialect)).program
    if fns is not None:
        assert [call.fn for call in program.calls] == (fns if dialect == "relay" else ["matmul"])


@pytest.mark.parametrize("dialect", ["relay", "relax"])
@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("mode", UPSAMPLE)
def test_upsample(mode: str, opset: int, dialect: str, running) -> None:
    attributes, scales, method = UPSAMPLE[mode]
    if opset == 7:
        case = Case("Upsample", 7, ((2, 3, 5, 4),), {**attributes, "scales": [float(s) for s in scales]})
    else:
        case = Case("Upsample", 9, ((2, 3, 5, 4), np.array(scales, np.float32)), attributes)
    (call,) = check(case, running(dialect)).program.calls
    assert call.fn == "image.resize2d"
    assert call.attrs["method"] == method
    assert call.attrs["coordinate_transformation_mode"] == "asymmetric"
    assert call.attrs["layout"] == "NCHW"
    assert call.args[1] == [5 * scales[2], 4 * scales[3]]
