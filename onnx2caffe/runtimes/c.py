"""The `c` runtime: a model's C sources, compiled for this machine and run in a process of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from onnx2caffe.errors import RuntimeCrash
from onnx2caffe.runtimes import disk, interpreter
from onnx2caffe.runtimes.base import Array
from onnx2caffe.runtimes.process import Process

__all__ = ["CLibrary", "compiler"]

_FLAGS = ("-std=c99", "-fno-strict-aliasing", "-O1", "-fPIC", "-shared", "-Werror=implicit-function-declaration")


def compiler() -> str | None:
    """The C compiler of this machine, if there is one."""
    return shutil.which("gcc") or shutil.which("cc")


class CLibrary:
    """A function of C sources; `close` it."""

    def __init__(self, sources: Sequence[Path], function: str, cc: str) -> None:
        """Compile the sources with `cc` and load the function.

        Raises:
            UsageError: the disk has no room for it.
            RuntimeCrash: they do not compile or load.

        """
        self._folder = tempfile.TemporaryDirectory(prefix="onnx2caffe-")
        self._cc = cc
        library = Path(self._folder.name) / "library.so"
        command = [cc, *_FLAGS, "-o", str(library), *(str(source.absolute()) for source in sources), "-lm"]
        environment = {**os.environ, **disk.PLAIN_WORDS}
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if ran.returncode:
            self._folder.cleanup()
            disk.check(ran.stderr)
            errors = [line for line in ran.stderr.splitlines() if "error" in line] or ran.stderr.splitlines()
            raise RuntimeCrash(f"{cc} does not compile the C: {errors[0] if errors else ran.returncode}")
        python = Path(sys.executable)
        script = ["c_library.py", str(library), function]
        self._process = Process(python, script, interpreter.environment(), "model in C", "")

    def version(self) -> str:
        """E.g. "gcc 12.2.0"."""
        said = subprocess.run(
            [self._cc, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=False
        )
        return f"{Path(self._cc).name} {said.stdout.strip()}".strip()

    def run(self, arrays: Sequence[Array], outputs: Sequence[tuple[str, Sequence[int]]]) -> list[Array]:
        """The outputs, of these dtypes and shapes, of the inputs.

        Raises:
            RuntimeCrash: it crashed, or gave another code than 0.

        """
        self._process.send({"outputs": [(dtype, list(shape)) for dtype, shape in outputs]}, arrays)
        answer, results = self._process.receive()
        if answer["code"]:
            raise RuntimeCrash(f"the model's C gave code {answer['code']}")
        return results

    def close(self) -> None:
        """End the process and remove the library."""
        self._process.end()
        self._folder.cleanup()
