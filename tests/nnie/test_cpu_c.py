"""`convert --target nnie --cpu-c`: the NNIE's part in Caffe and the CPU's part as C on the board are the model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.mapfile import CaffeSegment, OnnxSegment
from onnx2caffe.runtimes.base import NetFiles, Tap
from onnx2caffe.runtimes.pycaffe import PyCaffe
from onnx2caffe.verify.inputs import structured
from tests.ops.harness import Array, difference, reference
from tests.tvm.boards import MACHINES, Machine, interface, run

ROOT = Path(__file__).parents[2]


def on_the_board(folder: Path, feeds: dict[str, Array], caffe: PyCaffe, machine: Machine) -> dict[str, Array]:
    """Every tensor that crosses a segment's border: nets in Caffe, the rest as C on a machine."""
    (file,) = folder.glob("*.map.json")
    tensors = dict(feeds)
    for segment in mapfile.read(file).segments:
        if isinstance(segment, CaffeSegment):
            files = NetFiles(folder / segment.prototxt, folder / segment.caffemodel)
            given = {place.blob: tensors[name].reshape(place.shape) for name, place in segment.inputs.items()}
            (blobs,) = caffe.run(files, [given], [Tap(place.blob) for place in segment.outputs.values()])
            tensors |= {name: blobs[Tap(place.blob)].reshape(place.shape) for name, place in segment.outputs.items()}
        else:
            assert isinstance(segment, OnnxSegment)
            tensors |= _part(folder, segment, tensors, machine)
    return tensors


def _part(folder: Path, segment: OnnxSegment, tensors: dict[str, Array], machine: Machine) -> dict[str, Array]:
    graph = onnx.load(folder / segment.file).graph
    types = {
        value.name: (
            helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).name,
            [dim.dim_value for dim in value.type.tensor_type.shape.dim],
        )
        for value in (*graph.input, *graph.output)
    }
    face = interface(segment.c, types, len(graph.output))
    given = {inner: tensors[name] for name, inner in segment.inputs.items()}
    results = dict(zip([a.tensor for a in face.outputs], run(folder, face, given, machine), strict=True))
    return {name: results[inner] for name, inner in segment.outputs.items()}


@pytest.fixture(scope="module")
def nanodet(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cpu_c") / "nanodet.onnx"
    command = [sys.executable, ROOT / "examples" / "nanodet_m.py", "--decode", "-o", path]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.mark.parametrize("name", ["softfp", "aarch64"])
def test_nanodet(name: str, nanodet: Path, tmp_path: Path, pycaffe, running) -> None:
    running("relay")
    if missing := MACHINES[name].missing:
        pytest.skip(missing)
    conversion = onnx2caffe.convert(nanodet, tmp_path / "out", target="nnie", cpu_c=True, caffe_run=False, proof=False)
    (port,) = conversion.inputs
    feeds = {port.name: structured(port.shape, 0)}
    found = on_the_board(tmp_path / "out", feeds, pycaffe, MACHINES[name])
    expected = reference(onnx.load(nanodet), feeds)
    for output in conversion.outputs:
        assert difference(expected[output.name], found[output.name]) <= 1e-4


@pytest.fixture
def three_parts(tmp_path: Path) -> Path:
    """A mean for the head, an operator no NNIE has between two nets, a decode at the tail."""
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((8, 3, 3, 3)) / 6, "v": random.standard_normal((4, 8, 3, 3)) / 9}
    constants = {**weights, "mean": np.array([0.4, 0.5, 0.6]).reshape(1, 3, 1, 1), "stride": np.array(8.0)}
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("Conv", ["centred", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Sin", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Exp", ["c"], ["d"]),
        helper.make_node("Mul", ["d", "stride"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 16, 12))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 16, 12))
    initializers = [numpy_helper.from_array(a.astype(np.float32), name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "three", [x], [y], initializers)
    path = tmp_path / "three.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def test_head_middle_and_tail(three_parts: Path, tmp_path: Path, pycaffe, running) -> None:
    running("relay")
    if missing := MACHINES["host"].missing:
        pytest.skip(missing)
    folder = tmp_path / "out"
    conversion = onnx2caffe.convert(three_parts, folder, target="nnie", cpu_c=True, caffe_run=False)
    segments = mapfile.read(conversion.map_file).segments
    parts = [segment for segment in segments if isinstance(segment, OnnxSegment)]
    assert [part.c["function"] for part in parts] == ["three_head_run", "three_cpu1_run", "three_tail_run"]
    assert sum("as C" in note.text or "_run of " in note.text for note in conversion.notes) == len(parts)
    feeds = {"x": structured((1, 3, 16, 12), 0)}
    found = on_the_board(folder, feeds, pycaffe, MACHINES["host"])
    assert difference(reference(onnx.load(three_parts), feeds)["y"], found["y"]) <= 1e-4


def test_where_nothing_stays_onnx_it_is_said(three_parts: Path, tmp_path: Path, running) -> None:
    conversion = onnx2caffe.convert(
        three_parts, tmp_path / "out", target="caffe", outputs=["a"], cpu_c=True, proof=False
    )
    assert any("--cpu-c has no effect" in note.text for note in conversion.notes)
    assert not list((tmp_path / "out").glob("*.c"))
