"""TVM's process where it dies or has no room."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading

import numpy as np
import pytest

from onnx2caffe.errors import RuntimeCrash
from onnx2caffe.runtimes.setup.tvm import _SMOKE
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.tvm.registry import DIALECTS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_who_was_killed_at_what(dialect: str, running) -> None:
    with contextlib.closing(Tvm(running(dialect).python, dialect)) as tvm:
        pid = tvm._worker._process.pid
        os.kill(pid, signal.SIGSTOP)  # so that the work certainly is under way
        threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
        with pytest.raises(RuntimeCrash) as caught:
            tvm.run([])
        assert (
            caught.value.message == f"the process of tvm with {dialect} was killed by SIGKILL while it ran the module"
        )
        assert "memory" in caught.value.hint


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_system_refuses_is_no_refusal_of_tvm(dialect: str, running, tmp_path) -> None:
    tvm = running(dialect)
    tvm.load(_SMOKE, [np.ones((1, 3), np.float32)])
    with pytest.raises(OSError, match="too long") as caught:
        tvm.write(tmp_path / ("n" * 255), None)
    assert caught.value.errno == errno.ENAMETOOLONG


@pytest.mark.parametrize(
    ("script", "words"), [("echo cannot do that; exit 1", "cannot do that"), ("exit 0", "nothing")]
)
def test_a_linker_that_fails_is_quoted(script: str, words: str, running, tmp_path) -> None:
    linker = tmp_path / "linker"
    linker.write_text(f"#!/bin/sh\n{script}\n")
    linker.chmod(0o755)
    tvm = running("relay")
    tvm.load(_SMOKE, [np.ones((1, 3), np.float32)])
    tvm.build_quickly()
    with pytest.raises(RuntimeCrash, match=words):
        tvm.write(tmp_path / "net", tmp_path / "net.so", str(linker))
