"""TVM's process where it dies or has no room."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from onnx2caffe.errors import RuntimeCrash
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
