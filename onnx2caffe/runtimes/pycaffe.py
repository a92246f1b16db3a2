"""The `pycaffe` runtime: a real Caffe in a process of its own, since a failed CHECK ends the process it happens in."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onnx2caffe.errors import RuntimeCrash, RuntimeMissing, UnreadableFile, UsageError
from onnx2caffe.runtimes import interpreter
from onnx2caffe.runtimes.base import Array, Feeds, NetFiles, Tap
from onnx2caffe.runtimes.process import Process
from onnx2caffe.runtimes.setup.pycaffe import environment_python

__all__ = ["PyCaffe", "find"]

_VARIABLE = "ONNX2CAFFE_CAFFE_PYTHON"
_SETUP = "onnx2caffe setup pycaffe"

_PROGRESS = re.compile(r"(Copying weights)|(?:Creating Layer|Running layer) (.*)")
_FATAL = re.compile(r"^F\d+ [\d:.]+ +\d+ (.*)")
_NOISE = re.compile(
    r"^[IW]\d+ [\d:.]+ |^WARNING: Logging before InitGoogle|^\*\*\* |^ +@ |^Running layer |^Copying weights"
)
_SYNTAX = "[libprotobuf ERROR"
_UNKNOWN_TYPE = re.compile(r"Unknown layer type: (\S+)")


def find(caffe_python: Path | None = None) -> PyCaffe:
    """A running pycaffe: of `caffe_python`, else $ONNX2CAFFE_CAFFE_PYTHON, else this Python, else `setup pycaffe`'s.

    Raises:
        RuntimeMissing: there is none, or the Python asked for has no working `caffe`.

    """
    asked = caffe_python or os.environ.get(_VARIABLE)
    if asked:
        return _of_python(Path(asked))
    tried = []
    if importlib.util.find_spec("caffe") is not None:
        try:
            return PyCaffe(Path(sys.executable), dict(os.environ))
        except RuntimeMissing as problem:  # a package that only bears the name, or a broken build
            tried.append(problem.message)
    made = environment_python()
    if made:
        return PyCaffe(made)
    raise RuntimeMissing("\n".join(["no pycaffe found", *tried]), f"`{_SETUP}` makes one; or --caffe-python PATH")


def _of_python(python: Path) -> PyCaffe:
    """The Caffe of a Python somebody named.

    A Caffe built in its source folder is found by PYTHONPATH alone, so that counts where it does without fail.
    """
    try:
        return PyCaffe(python)
    except RuntimeMissing:
        if "PYTHONPATH" not in os.environ:
            raise
        return PyCaffe(python, dict(os.environ))


class PyCaffe:
    """Caffe in a worker process that is started at once, and again after it died."""

    name = "pycaffe"

    def __init__(self, python: Path, variables: Mapping[str, str] | None = None) -> None:
        """Start the worker, with these environment variables instead of `interpreter.environment()`.

        Raises:
            RuntimeMissing: `python` cannot be run or has no `caffe`.

        """
        self.python = python
        self._variables = interpreter.environment() if variables is None else variables
        self._worker: _Worker | None = _Worker(python, self._variables)
        self._hello = self._worker.hello

    def version(self) -> str:
        """E.g. "caffe 1.0.0 (python 3.11.7)"."""
        return f"caffe {self._hello['caffe']} (python {self._hello['python']})"

    def missing(self, types: Sequence[str]) -> list[str]:
        """Those of the layer types that are not registered in this Caffe; runs no net, so nothing can abort."""
        return sorted(set(types) - set(self._hello["types"]))

    def run(self, files: NetFiles, feeds: Sequence[Feeds], taps: Sequence[Tap]) -> list[dict[Tap, Array]]:
        """Load the net and run it once per feed (blob name -> array of the blob's size); the tapped values, float32.

        Raises:
            RuntimeMissing: this Caffe lacks a layer type.
            RuntimeCrash: Caffe refused the net or died; the layer and Caffe's own words.
            UsageError: a feed does not fit the net's inputs, or a tap names no blob or layer.

        """
        for path in (files.prototxt, files.caffemodel):
            if not path.is_file():
                raise UnreadableFile(f"no such file: {path}")
        if self._worker is None:
            self._worker = _Worker(self.python, self._variables)
        try:
            loaded = self._worker.load(files)
            for feed in feeds:
                _check(files, loaded, feed, taps)
            return [dict(self._worker.run(feed, taps)) for feed in feeds]
        except UsageError:
            raise
        except BaseException:  # the stream may stand in the middle of a frame
            self.close()
            raise

    def close(self) -> None:
        """End the worker; the next run starts another."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None


def _check(files: NetFiles, loaded: Mapping[str, Any], feed: Feeds, taps: Sequence[Tap]) -> None:
    shapes, layers = loaded["blobs"], set(loaded["layers"])
    for tap in taps:
        if tap.blob not in shapes:
            raise UsageError(f"{files.prototxt} has no blob {tap.blob!r}")
        if tap.layer and tap.layer not in layers:
            raise UsageError(f"{files.prototxt} has no layer {tap.layer!r}")
    for blob, value in feed.items():
        if blob not in loaded["inputs"]:
            raise UsageError(f"{files.prototxt} has no input {blob!r}; it has {loaded['inputs']}")
        if np.size(value) != np.prod(shapes[blob], dtype=np.int64):
            raise UsageError(
                f"input {blob!r} of {files.prototxt} has shape {shapes[blob]}, not {list(np.shape(value))}"
            )
    unfed = [name for name in loaded["inputs"] if name not in feed]
    if unfed:
        raise UsageError(f"no value for input {unfed[0]!r} of {files.prototxt}")


class _Worker(Process):
    """One worker process (see workers/pycaffe_worker.py)."""

    def __init__(self, python: Path, variables: Mapping[str, str]) -> None:
        own = {
            "PYCAFFE_ON_CHECK": "raise",  # our own build's answer to a failed CHECK
            "GLOG_minloglevel": "0",  # INFO names the layer under construction
        }
        super().__init__(
            python, ["pycaffe_worker.py"], {**variables, **own}, "caffe", f"`{_SETUP}` makes a Python with Caffe"
        )

    def load(self, files: NetFiles) -> dict[str, Any]:
        """Load a net; its {"blobs": shapes by name, "layers": names, "inputs": names}."""
        self.send({"do": "load", "prototxt": str(files.prototxt), "caffemodel": str(files.caffemodel)})
        return self.receive()[0]

    def run(self, feed: Feeds, taps: Sequence[Tap]) -> Iterator[tuple[Tap, Array]]:
        """Run the loaded net; the taps in the order in which their values come about."""
        arrays = [np.asarray(value, np.float32) for value in feed.values()]
        self.send({"do": "run", "blobs": list(feed), "taps": [(tap.blob, tap.layer) for tap in taps]}, arrays)
        while True:
            header, values = self.receive()
            if "done" in header:
                return
            yield taps[header["tap"]], values[0]

    def died(self, code: int) -> RuntimeMissing:
        """A failed CHECK is a refusal; other ends are told as they are."""
        return self.refused(self.words()) if code == -signal.SIGABRT else super().died(code)

    def refused(self, words: str) -> RuntimeMissing:
        """What Caffe says of a net it does not take."""
        unknown = _UNKNOWN_TYPE.search(words)
        if unknown:
            return RuntimeMissing(
                f"this Caffe has no layer type {unknown[1]}", f"`{_SETUP}` makes a Caffe that has all"
            )
        syntax = [line for line in self.logged().splitlines() if line.startswith(_SYNTAX)]
        return RuntimeCrash(f"Caffe failed{self.at_work()}: {' '.join([words, *syntax])}")

    def at_work(self) -> str:
        """Where the work stood, by the last line of progress."""
        steps = _PROGRESS.findall(self.logged())
        if not steps:
            return ""
        copying, layer = steps[-1]
        return " while it copied the weights" if copying else f" at layer {layer!r}"

    def words(self) -> str:
        """What Caffe said last: its fatal line, else what is left without progress and stack traces."""
        lines = self.logged().splitlines()
        fatal = [match[1] for match in map(_FATAL.match, lines) if match]
        return " ".join(fatal or [line for line in lines if line.strip() and not _NOISE.match(line)][-1:])
