"""What `onnx2caffe doctor` reports: every runtime, whether it is here, and the command that gets it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes.setup.tvm import PINS
from onnx2caffe.targets.caffe import CAFFE

__all__ = ["RuntimeStatus", "examine"]


@dataclass(frozen=True)
class RuntimeStatus:
    """One runtime: where it was found, the layer types of target `caffe` it lacks, and how to get it."""

    name: str
    found: bool
    version: str = ""
    where: str = ""
    missing_layers: tuple[str, ...] = ()
    hint: str = ""


def examine(caffe_python: Path | None = None) -> list[RuntimeStatus]:
    """The runtimes of the proof, in the order in which it uses them; `caffe_python` as for `pycaffe.find`."""
    return [_ort(), _builtin(), _pycaffe(caffe_python), *map(_tvm, PINS)]


def _ort() -> RuntimeStatus:
    import onnxruntime

    from onnx2caffe.runtimes import ort

    return RuntimeStatus("ort", True, ort.version(), str(Path(onnxruntime.__file__).parent))


def _builtin() -> RuntimeStatus:
    from onnx2caffe.runtimes.builtin import Builtin

    runtime = Builtin()
    lacks = tuple(runtime.missing(sorted(CAFFE.types)))
    return RuntimeStatus("builtin", True, runtime.version(), str(Path(__file__).parent), lacks)


def _pycaffe(caffe_python: Path | None) -> RuntimeStatus:
    from onnx2caffe.runtimes import pycaffe

    try:
        runtime = pycaffe.find(caffe_python)
    except RuntimeMissing as missing:
        return RuntimeStatus("pycaffe", False, hint=f"{missing.message}; {missing.hint}")
    lacks = tuple(runtime.missing(sorted(CAFFE.types)))
    runtime.close()
    hint = "`onnx2caffe setup pycaffe` makes a Caffe that has all layers" if lacks else ""
    return RuntimeStatus("pycaffe", True, runtime.version(), str(runtime.python), lacks, hint)


def _tvm(dialect: str) -> RuntimeStatus:
    from onnx2caffe.runtimes import tvm

    try:
        runtime = tvm.find(dialect)
    except RuntimeMissing as missing:
        return RuntimeStatus(dialect, False, hint=f"{missing.message}; {missing.hint}")
    runtime.close()
    return RuntimeStatus(dialect, True, runtime.version(), str(runtime.python))
