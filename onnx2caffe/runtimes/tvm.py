"""The `relay` and `relax` runtimes: TVM in a process of its own Python, which makes, builds and runs programs."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx2caffe.errors import RuntimeCrash, RuntimeMissing, Unsupported, UsageError
from onnx2caffe.runtimes import disk, interpreter
from onnx2caffe.runtimes.base import Array
from onnx2caffe.runtimes.process import Process
from onnx2caffe.runtimes.setup.tvm import environment_python

__all__ = ["CallFault", "Tvm", "find", "quick_target"]

_LLVM_LEVELS = {"relay": 0, "relax": 1}
"""How hard LLVM tries for what is run a few times only.

Relay's loops are vectors before LLVM sees them; Relax' are plain, and five times slower where LLVM leaves them so.
"""

_LEAST = {
    "inputs": [{"name": "x", "shape": [1], "dtype": "float32"}],
    "constants": [],
    "calls": [{"fn": "negative", "args": [{"input": 0}], "attrs": {}, "types": [["float32", [1]]], "several": False}],
    "outputs": [{"call": 0}],
}
"""A program to try a target with."""

_FAILED = "TVM failed: "
_TARGETS = "docs/tvm.md has a table of targets"


class CallFault(Exception):
    """TVM does not take call `number` of a program, or infers another type for it; the text is TVM's."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


def variable(dialect: str) -> str:
    """The environment variable that names the Python of a dialect."""
    return f"ONNX2CAFFE_{dialect.upper()}_PYTHON"


def find(dialect: str) -> Tvm:
    """A running TVM with a dialect: of $ONNX2CAFFE_…_PYTHON, else this Python, else `setup`'s.

    Raises:
        RuntimeMissing: there is none, or the Python asked for has no TVM with this dialect.

    """
    asked = os.environ.get(variable(dialect))
    if asked:
        return Tvm(Path(asked), dialect)
    tried = []
    if importlib.util.find_spec("tvm") is not None:
        try:
            return Tvm(Path(sys.executable), dialect, dict(os.environ))
        except RuntimeMissing as problem:  # the other dialect's
            tried.append(problem.message)
    made = environment_python(dialect)
    if made:
        return Tvm(made, dialect)
    raise RuntimeMissing("\n".join([f"no TVM with {dialect} found", *tried]), _hint(dialect))


def quick_target(dialect: str) -> dict[str, Any]:
    """This machine, as the target of what is built to be run a few times only."""
    return {"kind": "llvm", "opt-level": _LLVM_LEVELS[dialect]}


def _hint(dialect: str) -> str:
    return f"`onnx2caffe setup {dialect}` makes one; or {variable(dialect)}=PATH of a Python that has it"


class Tvm:
    """TVM in a worker process that is started at once, and again after it died. It holds one program at a time."""

    def __init__(self, python: Path, dialect: str, variables: Mapping[str, str] | None = None) -> None:
        """Start the worker, with these environment variables instead of `interpreter.environment()`.

        Raises:
            RuntimeMissing: `python` cannot be run or has no TVM with this dialect.

        """
        self.name = dialect
        self.python = python
        own = {"TOPHUB_LOCATION": "NONE", **disk.PLAIN_WORDS}  # else every build tries to download schedules
        self._variables = {**(interpreter.environment() if variables is None else variables), **own}
        self._worker: _Worker | None = None
        self._hello = self._started().hello

    def version(self) -> str:
        """E.g. "tvm 0.19.0 (python 3.11.7)"."""
        return f"tvm {self._hello['tvm']} (python {self._hello['python']})"

    @property
    def links(self) -> bool:
        """Whether there is a C++ compiler that links shared libraries for this machine."""
        return bool(self._hello["compiler"])

    def check_target(self, target: Mapping[str, Any]) -> None:
        """Ask TVM and its LLVM for what a target names, and build the least there is for it.

        Raises:
            UsageError: there is no such thing; with their own words.

        """
        try:
            self._ask({"do": "target", "target": dict(target)})
        except _Refusal as problem:
            words = problem.message.removeprefix(_FAILED)
            raise UsageError(f"there is no such target: {words}", _TARGETS) from problem
        except RuntimeCrash as problem:  # LLVM's way to refuse a triple
            raise UsageError(f"LLVM has nothing for the triple {target.get('mtriple')!r}", _TARGETS) from problem
        if target["kind"] == "llvm":
            self._try(target)

    def _try(self, target: Mapping[str, Any]) -> None:
        try:
            self.load(_LEAST, [])
            self.build(target, 0)
        except RuntimeCrash as problem:
            raise UsageError(f"nothing can be built for this target: {problem.message}", _TARGETS) from problem

    def load(self, program: Mapping[str, Any], constants: Sequence[Array]) -> None:
        """Make a module of a program (JSON of `tvm.program.Program`).

        Raises:
            CallFault: TVM refuses a call, or infers another type for it.
            RuntimeCrash: TVM died.

        """
        self._ask({"do": "load", "program": program}, constants)

    def build(
        self, target: Mapping[str, Any], opt_level: int, outputs: Sequence[Mapping[str, int]] | None = None
    ) -> None:
        """Compile the loaded program for a target; `outputs`: other results than its own.

        Raises:
            RuntimeCrash: TVM cannot; with its own words.

        """
        given = None if outputs is None else [dict(reference) for reference in outputs]
        self._ask({"do": "build", "target": dict(target), "opt_level": opt_level, "outputs": given})

    def build_quickly(self, outputs: Sequence[Mapping[str, int]] | None = None) -> None:
        """Compile the loaded program for this machine without optimisation; as `build`."""
        self.build(quick_target(self.name), 0, outputs)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Run what was built last, on one array per input.

        Raises:
            RuntimeCrash: TVM failed.

        """
        return self._ask({"do": "run"}, arrays)

    def write(self, stem: Path, library: Path | None, linker: str | None = None) -> None:
        """Write the loaded program: `stem` + `.txt`, `.json` and `.params`.

        Args:
            stem: path and beginning of the files' names.
            library: the file for what was built: a .tar gets objects, a .so is linked.
            linker: a compiler for another machine than this one.

        Raises:
            RuntimeCrash: it does not link.
            UsageError: a compiler or tar has no room on a disk.
            OSError: the system refuses a file.

        """
        file = None if library is None else str(library)
        if library is not None and library.suffix == ".tar":
            _need_packers()
        self._ask({"do": "write", "stem": str(stem), "library": file, "linker": linker})
        if library is not None and not library.exists():
            raise RuntimeCrash(f"{linker or 'the compiler'} reports success and links nothing")
        if library is not None and library.suffix == ".tar":
            _repack(library)

    def write_c(self, name: str, opt_level: int, archive: Path) -> None:
        """Write the loaded program as C sources, whose entry is `tvmgen_<name>_run`; Relay alone can.

        Raises:
            Unsupported: TVM has no C for an operator, with its own words.
            RuntimeCrash: TVM died.

        """
        _need_packers()
        try:
            self._ask({"do": "c", "name": name, "opt_level": opt_level, "path": str(archive)})
        except _Refusal as problem:
            raise Unsupported(f"TVM writes no C: {problem.message.removeprefix(_FAILED)}") from problem

    def close(self) -> None:
        """End the worker; the next request starts another, without a program."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def _started(self) -> _Worker:
        if self._worker is None:
            self._worker = _Worker(self.python, self.name, self._variables)
        return self._worker

    def _ask(self, header: Mapping[str, Any], arrays: Sequence[Array] = ()) -> list[Array]:
        worker = self._started()
        try:
            answer, results = worker.ask(header, arrays)
        except _Refusal as problem:
            disk.check(problem.message)
            raise
        except RuntimeCrash as problem:
            self.close()
            disk.check(problem.message)
            raise
        except BaseException:  # the stream may stand in the middle of a frame
            self.close()
            raise
        if "system" in answer:
            raise OSError(*answer["system"])
        if "fault" in answer:
            raise CallFault(answer["fault"], answer["text"])
        return results


def _need_packers() -> None:
    for tool in ("tar", "gzip"):
        if shutil.which(tool) is None:
            raise RuntimeMissing(f"there is no {tool}, with which TVM packs what it writes", f"apt-get install {tool}")


def _repack(archive: Path) -> None:
    """Write an archive anew, without what differs from run to run: times, and the users' names."""
    with tarfile.open(archive) as old:
        members = [(member.name, _bytes(old, member)) for member in sorted(old, key=lambda member: member.name)]
    with tarfile.open(archive, "w") as new:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None, f"{member.name} is no file"
    return file.read()


class _Refusal(RuntimeCrash):
    """TVM raised an error; the worker lives on."""


_WORK = {
    "target": "looked at the target",
    "load": "made the module",
    "build": "compiled the module",
    "run": "ran the module",
    "write": "wrote the module",
    "c": "wrote C",
}
"""What each request asks for."""


class _Worker(Process):
    def __init__(self, python: Path, dialect: str, variables: Mapping[str, str]) -> None:
        self._work = ""
        super().__init__(python, ["tvm_worker.py", dialect], variables, f"tvm with {dialect}", _hint(dialect))

    def ask(self, header: Mapping[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Send a request; the answer."""
        self._work = f" while it {_WORK[header['do']]}"
        self.send(header, arrays)
        return self.receive()

    def at_work(self) -> str:
        return self._work

    def refused(self, words: str) -> RuntimeMissing:
        return _Refusal(f"{_FAILED}{words}")
