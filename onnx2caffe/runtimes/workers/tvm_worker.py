"""The process that holds TVM: makes, builds, runs and writes programs for `onnx2caffe.runtimes.tvm`.

Run by path, with the dialect as its argument, with a Python that has a `tvm` with that dialect. Requests:

- target: raises where nothing can be built for `target` (as a dictionary)
- load: a program (JSON of onnx2caffe/tvm/program.py), its constants as arrays
- build: `target` (as a dictionary), `opt_level`, `outputs` (references; null: the program's own)
- run: arrays for the inputs → arrays of the outputs
- write: `stem` of the path; `library`: the file to write what was built to, or null; `linker`: a compiler, or null
- c: `name`, `opt_level`, `path`: the archive to write C sources to (Relay alone)

The answer is {"done": true}; {"refused": text}; {"fault": number of a call, "text": what TVM says of it}; or, where the
system refuses a file, {"system": [errno, text, path]}.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx2caffe.runtimes.workers.frames import Channel
    from onnx2caffe.runtimes.workers.tvm_program import CallFault, last_words
else:
    from frames import Channel
    from tvm_program import CallFault, last_words


class _Session:
    """The program that was loaded last."""

    def __init__(self, dialect: Any, check_target: Callable[[dict[str, Any]], None]) -> None:
        self._dialect, self._check_target = dialect, check_target
        self._module: Any = None

    def answer(self, header: dict[str, Any], arrays: list[Any]) -> list[Any]:
        """Do what a request asks; the arrays of the answer."""
        if header["do"] == "target":
            self._check_target(header["target"])
        elif header["do"] == "load":
            self._module = None  # the old one's memory goes first
            self._module = self._dialect.Module(header["program"], arrays)
        elif header["do"] == "build":
            self._module.build(header["target"], header["opt_level"], header["outputs"])
        elif header["do"] == "run":
            return list(self._module.run(arrays))
        elif header["do"] == "c":
            self._module.write_c(header["name"], header["opt_level"], header["path"])
        else:
            self._module.write(header["stem"])
            if header["library"]:
                self._module.write_library(header["library"], header["linker"])
        return []


def main() -> None:
    """Answer requests until the stream ends."""
    channel = Channel()
    dialect = importlib.import_module(f"tvm_{sys.argv[1]}")
    check_target = importlib.import_module("tvm_target").check
    sys.path.pop(0)  # this folder: nothing in it may shadow the modules of the interpreter
    import tvm

    channel.send({"tvm": tvm.__version__, "python": sys.version.split()[0], "compiler": dialect.compiler()})
    session = _Session(dialect, check_target)
    while True:
        request = channel.receive()
        if request is None:
            return
        header, arrays = request
        try:
            channel.send({"done": True}, session.answer(header, arrays))
        except CallFault as fault:
            channel.send({"fault": fault.number, "text": str(fault)})
        except OSError as problem:
            channel.send({"system": [problem.errno, problem.strerror or str(problem), problem.filename]})
        except Exception as problem:
            channel.send({"refused": last_words(problem)})


if __name__ == "__main__":
    main()
