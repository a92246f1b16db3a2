"""The command line: parse, run, turn every error into a message and an exit code."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence

from onnx2caffe.cli.output import aside, complain, error_json, say_json
from onnx2caffe.cli.parser import make_parser
from onnx2caffe.errors import Onnx2CaffeError, Unsupported, UsageError

__all__ = ["main"]

_INTERRUPTED = 130
_NOBODY_READS = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: this process's own); the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return _NOBODY_READS
    except KeyboardInterrupt:
        aside("error: interrupted")
        return _INTERRUPTED
    except Exception as problem:
        return _failed(problem, words)
    return code


def _run(words: Sequence[str]) -> int:
    parsed = make_parser().parse_args(words)
    from onnx2caffe.cli.commands import COMMANDS

    return COMMANDS[parsed.command](parsed)


def _failed(problem: Exception, words: Sequence[str]) -> int:
    """Report an error as text and, where JSON was asked for, as JSON too; its exit code."""
    if isinstance(problem, OSError):  # a disk, a pipe or a permission, whichever file it was
        problem = UsageError(f"{problem.filename or 'output'}: {problem.strerror or problem}")
    elif isinstance(problem, MemoryError):
        problem = Unsupported(f"this takes more memory than there is: {problem}")
    elif not isinstance(problem, Onnx2CaffeError):
        problem = _internal(problem)
    if "--debug" in words:
        aside("".join(traceback.format_exception(problem)))
    complain(problem)
    if "--json" in words:
        try:
            say_json(error_json(problem))
            sys.stdout.flush()
        except OSError:  # nobody reads it, or it has no room
            _drop_output()
    return problem.exit_code


def _drop_output() -> None:
    """Let what standard output does not take go nowhere, else Python complains at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _internal(problem: Exception) -> Onnx2CaffeError:
    """A fault of ours, which must not look like the user's."""
    error = Onnx2CaffeError(
        f"internal error: {type(problem).__name__}: {problem}",
        "this is a fault of onnx2caffe, not of the model; --debug shows where",
    )
    error.__cause__ = problem
    return error
