"""TVM's own ONNX importers, to stand beside ours: in the Python of `onnx2caffe setup`, lent an onnx."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from onnx2caffe.errors import RuntimeCrash, RuntimeMissing
from onnx2caffe.runtimes import interpreter, tvm
from onnx2caffe.runtimes.process import Process
from onnx2caffe.runtimes.setup.places import cache
from tests.ops.harness import Array

_ONNX = ("onnx==1.18.0", "protobuf==6.33.0")  # the last onnx that Relay's importer reads
_SECONDS = 600


class Importer:
    """The importer of a dialect, in a process that is started anew after it died."""

    def __init__(self, dialect: str) -> None:
        found = tvm.find(dialect)
        found.close()
        self.python, self.dialect = found.python, dialect
        self._packages = cache() / "importer" / "-".join(_ONNX)
        if not (self._packages / "onnx").is_dir():
            pip = [str(self.python), "-m", "pip", "install", "-q", "--no-deps", "--target", str(self._packages)]
            subprocess.run([*pip, *_ONNX], check=True, env=interpreter.environment())
        self._worker: Process | None = None

    def run(self, model: onnx.ModelProto | Path, feeds: Mapping[str, Array]) -> list[Array]:
        """The outputs in order.

        Raises:
            RuntimeMissing: the importer, the build or the run fails, takes ten minutes, or the process dies.

        """
        with tempfile.TemporaryDirectory() as folder:
            path = model if isinstance(model, Path) else Path(folder) / "model.onnx"
            if not isinstance(model, Path):
                onnx.save(model, path)
            return self._asked(path, {name: np.asarray(value) for name, value in feeds.items()})

    def close(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _asked(self, path: Path, feeds: Mapping[str, Array]) -> list[Array]:
        worker = self._started()
        alarm = threading.Timer(_SECONDS, worker._process.kill)
        alarm.start()
        try:
            worker.send(
                {"path": str(path), "names": list(feeds), "target": tvm.quick_target(self.dialect)},
                list(feeds.values()),
            )
            return worker.receive()[1]
        except _Refusal:
            raise
        except BaseException:  # the stream may stand in the middle of a frame
            self.close()
            raise
        finally:
            alarm.cancel()

    def _started(self) -> Process:
        if self._worker is None:
            script = [str(Path(__file__).with_name("importer_worker.py")), self.dialect]
            self._worker = _Worker(self.python, script, self.variables, "TVM with an importer of ONNX", "")
        return self._worker

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which `python` imports onnx too."""
        return {**interpreter.environment(), "PYTHONPATH": str(self._packages)}


class _Refusal(RuntimeCrash):
    """The importer, TVM's build or its run raised; the process lives on."""


class _Worker(Process):
    def refused(self, words: str) -> RuntimeMissing:
        return _Refusal(words)
