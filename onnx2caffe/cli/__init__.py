"""The command line: parse, run, turn every error into a message and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from onnx2caffe.cli.output import aside, complain, error_json, let_go, say_json
from onnx2caffe.cli.parser import make_parser
from onnx2caffe.errors import Onnx2CaffeError, Unsupported, UsageError

__all__ = ["main"]

_NOBODY_READS = 141
_STOPPED = 128
"""What a shell adds to the number of the signal that ended a process."""

_STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Stopped(KeyboardInterrupt):
    """A signal. After a plain one that went through an `exec`, `python -m` ends with 130 whatever was made of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: this process's own); the exit code."""
    _prepare_streams()
    with _stoppable():
        return _ended(list(sys.argv[1:] if arguments is None else arguments))


def _ended(words: Sequence[str]) -> int:
    """The exit code of a command line, however it ends."""
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        let_go(sys.stdout)
        return _NOBODY_READS
    except KeyboardInterrupt as stop:
        number = signal.Signals(*stop.args or (signal.SIGINT,))
        aside(f"error: interrupted ({number.name})")
        return _STOPPED + number
    except Exception as problem:
        return _failed(problem, words)
    return code


def _prepare_streams() -> None:
    """Any name can be printed; a stream that is closed takes what comes and no file of ours takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - stays open
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """A signal that ends a process becomes an exception: what was begun is cleared away, no worker is left alone."""

    def stop(number: int, _: FrameType | None) -> None:
        for other in ours:
            signal.signal(other, signal.SIG_IGN)  # `timeout` sends two; clearing away is on its way
        raise _Stopped(number)

    usual = {number: signal.getsignal(number) for number in _STOPS}
    ours = [number for number, how in usual.items() if how in (signal.SIG_DFL, signal.default_int_handler)]
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        ours = []
    try:
        for number in ours:
            signal.signal(number, stop)
        yield
    finally:
        for number in ours:
            signal.signal(number, usual[number])


def _run(words: Sequence[str]) -> int:
    try:
        parsed = make_parser().parse_args(words)
    except SystemExit as done:  # wrong usage, or --help
        return int(done.code or 0)
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
            let_go(sys.stdout)
    return problem.exit_code


def _internal(problem: Exception) -> Onnx2CaffeError:
    """A fault of ours, which must not look like the user's."""
    error = Onnx2CaffeError(
        f"internal error: {type(problem).__name__}: {problem}",
        "this is a fault of onnx2caffe, not of the model; --debug shows where",
    )
    error.__cause__ = problem
    return error
