"""Memory that TVM plans for C: no operator may overwrite what a loop of it still reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from onnx2caffe.runtimes import c as runtime
from onnx2caffe.tvm.cmemory import overwriting, without_last_reads
from tests.ops.harness import difference, reference
from tests.tvm.test_c_ops import ran

TILES = """\
TVM_DLL int32_t unsafe(float* p0, float* y, uint8_t* global_workspace_2_var) {
  for (int32_t i = 0; i < 6; ++i) {
    void* sum_let = (&(global_workspace_2_var[64]));
    void* parts_let = (&(global_workspace_2_var[0]));
    for (int32_t k = 0; k < 16; ++k) {
      ((float*)parts_let)[k] = p0[((i * 16) + k)];
    }
    ((float*)sum_let)[0] = ((float*)parts_let)[0];
    y[i] = ((float*)sum_let)[0];
  }
  return 0;
}
"""
SAFE = TILES.replace("  return 0;", "  p0[0];\n  return 0;").replace("unsafe", "safe")
IN_ORDER = TILES.replace("((float*)sum_let)[0] = ((float*)parts_let)[0]", "((float*)sum_let)[0] = p0[i]")


def test_scratch_behind_the_last_read_in_a_loop_is_found() -> None:
    assert list(overwriting(SAFE + TILES)) == ["unsafe"]
    assert list(overwriting(IN_ORDER)) == []


def test_last_reads_are_no_part_of_the_c() -> None:
    assert without_last_reads(SAFE) == TILES.replace("unsafe", "safe")


@pytest.mark.parametrize("sizes", [(2, 1, 4, 3), (3, 1, 5, 4), (1, 2, 16, 2), (1, 5, 4, 3), (2, 7, 33, 9)], ids=str)
def test_what_an_operator_makes_in_a_loop_leaves_its_input(sizes, tmp_path: Path, running) -> None:
    """A product of stacks and a softmax, each of an inner tensor."""
    if (cc := runtime.compiler()) is None:
        pytest.skip("apt-get install gcc")
    b, m, k, n = sizes
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[{b},{m},{k}] x, float[{b},{k},{n}] z) => '
        f"(float[{b},{m},{n}] y, float[{b},{m},{k}] s, float[{b},{m}] m) "
        "{ e = Exp(x) y = MatMul(e, z) t = Tanh(x) s = Softmax(t) u = Sigmoid(x) "
        "n = LayerNormalization(u, w) m = ReduceLogSumExp<keepdims = 0>(n, a) }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(k, np.float32), "w"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), "a"))
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((b, m, k), np.float32), "z": rng.standard_normal((b, k, n), np.float32)}
    expected = reference(model, feeds)
    for name, value in ran(model, feeds, running("relay"), tmp_path, cc).items():
        assert difference(expected[name], value) < 1e-5, name
