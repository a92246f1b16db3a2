"""The commands that a page shows still run, and print what it shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import onnx2caffe
from onnx2caffe.tvm.registry import DIALECTS
from tests.docs.console import fits, printed, steps

ROOT = Path(__file__).parents[2]


def nms_tail():
    """A model of one node that no Caffe can have; it is in the README."""
    ports = [("b", TensorProto.FLOAT, [1, 6, 4]), ("s", TensorProto.FLOAT, [1, 1, 6])]
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [None, 3])
    node = helper.make_node("NonMaxSuppression", ["b", "s"], ["y"], name="NonMaxSuppression_y")
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(*port) for port in ports], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


@pytest.mark.parametrize("page", ["README.md", "docs/nnie.md", "docs/tvm.md"])
def test_page(page: str, tmp_path: Path, pycaffe, running) -> None:
    for dialect in DIALECTS:
        running(dialect)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    onnx.save(nms_tail(), tmp_path / "nms_tail.onnx")
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": commands, "PYTHONUTF8": "1"}
    for step in steps(ROOT / page):
        seen = printed(step.command, tmp_path, environment)
        assert fits(step.shown, seen), "\n".join(["", f"$ {step.command}", *seen, "", "is shown as", *step.shown])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_module_is_built_anew_as_its_page_says(dialect: str, tmp_path: Path, running) -> None:
    """Also one with a resize, of which Relay's TVM makes code that its LLVM refuses, unless told otherwise."""
    tvm = running(dialect)
    nodes = '<float[4] s = {1, 1, 2, 2}> { z = Relu(x) y = Upsample<mode = "linear">(z, s) }'
    text = f'<ir_version: 8, opset_import: ["": 9]> net (float[1,2,5,6] x) => (float[1,2,10,12] y) {nodes}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    onnx2caffe.export_tvm(tmp_path / "net.onnx", tmp_path / "out", dialect=dialect, compile=False, compare=False)
    script = f"anew_{dialect}.py"
    (writing,) = [s.command for s in steps(ROOT / "docs/tvm.md") if s.command.startswith(f"cat > {script}")]
    assert not printed(f"{writing}\n{tvm.python} {script} out/net", tmp_path, os.environ)
    assert (tmp_path / "anew.so").exists()


def test_a_page_has_its_commands(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "```console\n$ cat <<'END'\n$ a\nEND\nseen\n$ echo \\\n  b\n```\n"
    page.write_text(f"text\n{block}more\n```sh\n$ no\n```\n")
    found = [(step.command, step.shown) for step in steps(page)]
    assert found == [("cat <<'END'\n$ a\nEND", ["seen"]), ("echo \\\n  b", [])]


@pytest.mark.parametrize(
    ("shown", "seen", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["…", "b"], ["a", "a", "b"], True),
        (["a", "…", "b", "…"], ["a", "b"], True),
        (["…", "b"], ["a"], False),
        (["e  1.0e-05 x"], ["e 2.3e-04   x"], True),
        (["7 layers"], ["8 layers"], False),
    ],
)
def test_lines_that_fit(shown: list[str], seen: list[str], same: bool) -> None:
    assert fits(shown, seen) is same
