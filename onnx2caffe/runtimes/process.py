"""Worker processes: a script of `workers/` in another Python, and the frames to and from it (workers/frames.py)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from onnx2caffe.errors import RuntimeCrash, RuntimeMissing
from onnx2caffe.runtimes.base import Array
from onnx2caffe.runtimes.workers.frames import GREETING

__all__ = ["Process"]

_SCRIPTS = Path(__file__).with_name("workers")

_PREAMBLE = 1 << 20
"""How many bytes a wrapper of a Python may print before the worker's greeting."""


class Process:
    """One worker process; its first frame is kept as `hello`.

    A frame that holds "refused" is the worker's refusal of the request before it; a subclass says in `refused` and
    `died` what becomes of it and of the process's death.
    """

    def __init__(
        self, python: Path, script: Sequence[str], variables: Mapping[str, str], package: str, hint: str
    ) -> None:
        """Start a script (its name and arguments) with a Python that has `package`, with these environment variables.

        Raises:
            RuntimeMissing: `python` cannot be run or has no working `package`.

        """
        self._package = package
        self._log = _log()
        scratch = tempfile.TemporaryDirectory(prefix="onnx2caffe-", ignore_cleanup_errors=True)
        try:
            self._process = subprocess.Popen(
                [str(python), str(_SCRIPTS / script[0]), *script[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,  # a pipe that nobody reads would fill up
                env={**variables, "TMPDIR": scratch.name},
                start_new_session=True,  # Ctrl-C is for the parent, which then ends this process
            )
        except OSError as problem:
            self._log.close()
            scratch.cleanup()
            raise RuntimeMissing(f"cannot run {python}: {problem.strerror}", hint) from None
        streams = (self._process.stdin, self._process.stdout, self._log)
        self.end = weakref.finalize(self, _ended, self._process, scratch, *streams)
        try:
            self._skip_to_greeting()
            self.hello = self.receive()[0]
        except RuntimeCrash:
            code = self._process.poll()
            reason = "prints without end" if code is None else self._end(code)
            self.end()
            raise RuntimeMissing(f"{python} has no working {package}: it {reason}", hint) from None

    def send(self, header: Mapping[str, Any], arrays: Sequence[Array] = ()) -> None:
        """Send a request."""
        self._log.truncate(0)
        self._log.seek(0)
        arrays = [np.asarray(array, order="C") for array in arrays]
        text = json.dumps({**header, "arrays": [(str(array.dtype), array.shape) for array in arrays]}).encode()
        stream: Any = self._process.stdin
        try:
            stream.write(struct.pack("<Q", len(text)) + text)
            for array in arrays:
                stream.write(array.reshape(-1).view(np.uint8))
            stream.flush()
        except BrokenPipeError:
            raise self.died(self._process.wait()) from None

    def receive(self) -> tuple[dict[str, Any], list[Array]]:
        """The next frame of the answer.

        Raises:
            RuntimeMissing: a refusal, or the process died (`RuntimeCrash`).

        """
        header = json.loads(self._read(struct.unpack("<Q", self._read(8))[0]))
        arrays = []
        for dtype, shape in header.pop("arrays"):
            array = np.empty(shape, dtype)
            self._fill(array.reshape(-1).view(np.uint8))
            arrays.append(array)
        if "refused" in header:
            raise self.refused(header["refused"])
        return header, arrays

    def refused(self, words: str) -> RuntimeMissing:
        """The error that a refusal stands for."""
        return RuntimeCrash(words)

    def died(self, code: int) -> RuntimeMissing:
        """The error that the process's end with an exit code (negative: a signal) stands for."""
        hint = "where nobody killed it, memory ran out" if code == -signal.SIGKILL else ""
        return RuntimeCrash(f"the process of {self._package} {self._end(code)}", hint)

    def _end(self, code: int) -> str:
        """How the process ended, at what, and what it said last."""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{how}{self.at_work()}: {self.words()}".removesuffix(": ")

    def at_work(self) -> str:
        """What the process was doing, to stand behind how it ended; "" where that is not known."""
        return ""

    def words(self) -> str:
        """What the process said last."""
        return " ".join([line for line in self.logged().splitlines() if line.strip()][-1:])

    def logged(self) -> str:
        """All that the process said since the last request."""
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def _skip_to_greeting(self) -> None:
        """Read what stands before the first frame; whatever runs the Python may have printed something."""
        stream: Any = self._process.stdout
        said = bytearray()
        while not said.endswith(GREETING):
            byte = stream.read(1)
            if not byte:
                raise self.died(self._process.wait())
            said += byte
            if len(said) > _PREAMBLE:
                raise RuntimeCrash("no greeting")

    def _read(self, size: int) -> bytes:
        buffer = np.empty(size, np.uint8)
        self._fill(buffer)
        return buffer.tobytes()

    def _fill(self, buffer: Array) -> None:
        stream: Any = self._process.stdout
        if stream.readinto(buffer) < buffer.size:
            raise self.died(self._process.wait())


def _log() -> IO[bytes]:
    """A file for what a process says: in memory where there is such a thing, as a full disk must be told too."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("log"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _ended(
    process: subprocess.Popen[bytes], scratch: tempfile.TemporaryDirectory[str], *streams: IO[bytes] | None
) -> None:
    if process.poll() is None:
        with contextlib.suppress(AttributeError, OSError):  # Windows has no groups
            os.killpg(process.pid, signal.SIGKILL)  # the compilers that it started too
        process.kill()
    process.wait()
    scratch.cleanup()
    for stream in filter(None, streams):
        with contextlib.suppress(BrokenPipeError):  # what was left in the buffer has no reader any more
            stream.close()
