"""The worker process: values, errors, deaths, and what happens without a Caffe."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from onnx2caffe.errors import RuntimeCrash, RuntimeMissing, UnreadableFile, UsageError
from onnx2caffe.runtimes.base import NetFiles, Tap
from onnx2caffe.runtimes.pycaffe import PyCaffe, find
from tests.runtimes.nets import input_layer, layer, written

X = np.array([[-1, 2, -3, 4]], np.float32)
RELU = layer("ReLU", "relu", ["x"], ["x"])


@pytest.fixture
def own(pycaffe):
    """A worker of the test's own, to be maltreated."""
    runtime = PyCaffe(pycaffe.python)
    yield runtime
    runtime.close()


@pytest.fixture
def no_caffe(monkeypatch, tmp_path):
    """A machine that has none: no option, no variable, nothing set up, nothing importable."""
    monkeypatch.delenv("ONNX2CAFFE_CAFFE_PYTHON", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_value_is_read_right_after_its_layer(pycaffe, tmp_path):
    files = written(
        tmp_path, input_layer("x", 1, 4), RELU, layer("Power", "p", ["x"], ["y"], "power_param { scale: 2 }")
    )
    taps = [Tap("x"), Tap("y", "p"), Tap("x", "relu"), Tap("x", "x")]
    first, second = pycaffe.run(files, [{"x": X}, {"x": -X}], taps)
    for results, x in ((first, X), (second, -X)):
        np.testing.assert_array_equal(results[Tap("x", "x")], x)
        np.testing.assert_array_equal(results[Tap("x", "relu")], np.maximum(x, 0))
        np.testing.assert_array_equal(results[Tap("x")], np.maximum(x, 0))
        np.testing.assert_array_equal(results[Tap("y", "p")], 2 * np.maximum(x, 0))


def test_a_value_survives_a_layer_that_shares_its_memory(pycaffe, tmp_path):
    files = written(
        tmp_path,
        input_layer("x", 1, 4),
        layer("Reshape", "r", ["x"], ["y"], "reshape_param { shape { dim: 2 dim: 2 } }"),
        layer("ReLU", "relu", ["y"], ["y"]),
    )
    (results,) = pycaffe.run(files, [{"x": X}], [Tap("y", "r"), Tap("x")])
    np.testing.assert_array_equal(results[Tap("y", "r")], X.reshape(2, 2))
    np.testing.assert_array_equal(results[Tap("x")], np.maximum(X, 0))


def test_feeds_of_another_shape_and_type_of_the_blob_s_size(pycaffe, tmp_path):
    files = written(tmp_path, input_layer("x", 1, 4), RELU)
    (results,) = pycaffe.run(files, [{"x": X.reshape(2, 2).astype(np.int64)}], [Tap("x")])
    np.testing.assert_array_equal(results[Tap("x")], np.maximum(X, 0))


def test_no_axes(pycaffe, tmp_path):
    files = written(tmp_path, input_layer("x"), layer("AbsVal", "a", ["x"], ["y"]))
    (results,) = pycaffe.run(files, [{"x": np.float32(-2)}], [Tap("y", "a")])
    assert results[Tap("y", "a")].shape == ()
    assert results[Tap("y", "a")] == 2


def test_odd_names(pycaffe, tmp_path):
    folder = tmp_path / "a 'folder' with ünïcode"
    folder.mkdir()
    blob, name = 'a/b:c "d"\n\\é中', "../l'ayer\n中"
    files = written(folder, input_layer(blob, 1, 4), layer("ReLU", name, [blob], ["y"]))
    (results,) = pycaffe.run(files, [{blob: X}], [Tap("y", name), Tap(blob)])
    np.testing.assert_array_equal(results[Tap("y", name)], np.maximum(X, 0))


def test_huge_outputs(pycaffe, tmp_path):
    files = written(tmp_path, input_layer("x", 1, 4), layer("Tile", "t", ["x"], ["y"], "tile_param { tiles: 4000000 }"))
    (results,) = pycaffe.run(files, [{"x": X}], [Tap("y", "t")])
    np.testing.assert_array_equal(results[Tap("y", "t")].reshape(-1, 4)[[0, -1]], np.concatenate([X, X]))


def test_version_and_missing_types(pycaffe):
    assert pycaffe.version().startswith("caffe 1.")
    assert pycaffe.missing(["ReLU", "Convolution", "Nonsense", "Foo"]) == ["Foo", "Nonsense"]


def test_a_missing_layer_type_is_named(pycaffe, tmp_path):
    files = written(tmp_path, input_layer("x", 1, 4), layer("Nonsense", "n", ["x"], ["y"]))
    with pytest.raises(RuntimeMissing, match="no layer type Nonsense") as caught:
        pycaffe.run(files, [{"x": X}], [Tap("y")])
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("aborts", [False, True])
def test_a_failed_check_names_the_layer_and_caffe_s_words(pycaffe, tmp_path, aborts):
    """Our own build can throw; a Caffe with glog ends its process."""
    python = aborting(pycaffe.python, tmp_path) if aborts else pycaffe.python
    runtime = PyCaffe(python)
    bad = written(tmp_path, input_layer("x", 1, 4), RELU, layer("Permute", "bad one", ["x"], ["x"]))
    with pytest.raises(RuntimeCrash, match=r"at layer 'bad one': .*Permute does not work in place"):
        runtime.run(bad, [{"x": X}], [Tap("x")])
    good = written(tmp_path, input_layer("x", 1, 4), RELU)
    (results,) = runtime.run(good, [{"x": X}], [Tap("x")])
    np.testing.assert_array_equal(results[Tap("x")], np.maximum(X, 0))
    runtime.close()


def aborting(python: Path, folder: Path) -> Path:
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nunset PYCAFFE_ON_CHECK\nexec "{python}" "$@"\n')
    script.chmod(0o755)
    return script


def test_a_check_that_fails_while_running(pycaffe, tmp_path):
    files = written(
        tmp_path,
        input_layer("x", 1, 4),
        input_layer("i", 2),
        RELU,
        layer("BatchReindex", "pick", ["x", "i"], ["y"]),
    )
    with pytest.raises(RuntimeCrash, match=r"at layer 'pick': .*Check failed"):
        pycaffe.run(files, [{"x": X, "i": np.array([0, 7])}], [Tap("y")])


def test_a_prototxt_that_does_not_parse(pycaffe, tmp_path):
    files = written(tmp_path, "layer { nonsense: 1 }")
    with pytest.raises(RuntimeCrash, match=r'Failed to parse NetParameter file: .*no field named "nonsense"'):
        pycaffe.run(files, [{"x": X}], [Tap("x")])


def test_weights_of_another_shape(pycaffe, tmp_path):
    files = written(
        tmp_path,
        input_layer("x", 1, 4),
        layer("InnerProduct", "fc", ["x"], ["y"], "inner_product_param { num_output: 2 }"),
    )
    # NetParameter { layer(100) { name(1): "fc" blobs(7) { shape(7) { dim(1): 1 } data(5): 0 } } }
    blob = b"\x3a\x03\x0a\x01\x01\x2a\x04\x00\x00\x00\x00"
    body = b"\x0a\x02fc" + b"\x3a" + bytes([len(blob)]) + blob
    files.caffemodel.write_bytes(b"\xa2\x06" + bytes([len(body)]) + body)
    with pytest.raises(RuntimeCrash, match=r"while it copied the weights: .*fc"):
        pycaffe.run(files, [{"x": X}], [Tap("y")])


def test_wrong_calls(pycaffe, tmp_path):
    files = written(tmp_path, input_layer("x", 1, 4), RELU)
    with pytest.raises(UsageError, match="has no blob 'q'"):
        pycaffe.run(files, [{"x": X}], [Tap("q")])
    with pytest.raises(UsageError, match="has no layer 'q'"):
        pycaffe.run(files, [{"x": X}], [Tap("x", "q")])
    with pytest.raises(UsageError, match="has no input 'q'"):
        pycaffe.run(files, [{"x": X, "q": X}], [Tap("x")])
    with pytest.raises(UsageError, match=r"has shape \[1, 4\], not \[3\]"):
        pycaffe.run(files, [{"x": np.ones(3)}], [Tap("x")])
    with pytest.raises(UsageError, match="no value for input 'x'"):
        pycaffe.run(files, [{}], [Tap("x")])
    with pytest.raises(UnreadableFile, match=r"nowhere\.caffemodel"):
        pycaffe.run(NetFiles(files.prototxt, tmp_path / "nowhere.caffemodel"), [{"x": X}], [Tap("x")])


def test_killed_while_it_runs(own, tmp_path):
    files = written(tmp_path, input_layer("x", 1, 4), RELU)
    pid = own._worker._process.pid
    os.kill(pid, signal.SIGSTOP)  # so that the run certainly is under way
    killer = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(RuntimeCrash, match="killed by SIGKILL") as caught:
        own.run(files, [{"x": X}], [Tap("x")])
    assert caught.value.exit_code == 4
    assert not alive(pid)
    (results,) = own.run(files, [{"x": X}], [Tap("x")])
    np.testing.assert_array_equal(results[Tap("x")], np.maximum(X, 0))


def test_killed_between_two_runs(own, tmp_path):
    files = written(tmp_path, input_layer("x", 1, 4), RELU)
    os.kill(own._worker._process.pid, signal.SIGKILL)
    own._worker._process.wait()
    with pytest.raises(RuntimeCrash, match="killed by SIGKILL"):
        own.run(files, [{"x": X}], [Tap("x")])
    own.run(files, [{"x": X}], [Tap("x")])


@pytest.fixture
def heard():
    """SIGINT as a terminal has it: a shell's background jobs are started deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_ends_the_worker(own, tmp_path):
    files = written(tmp_path, input_layer("x", 1, 4), RELU)
    pid = own._worker._process.pid
    os.kill(pid, signal.SIGSTOP)
    interrupted, main = threading.Event(), threading.main_thread().ident

    def press() -> None:
        """Like a user: again, if nothing happens (a busy machine may take the first one too early)."""
        while not interrupted.wait(0.5):
            signal.pthread_kill(main, signal.SIGINT)

    def run() -> None:
        threading.Thread(target=press, daemon=True).start()
        try:
            own.run(files, [{"x": X}], [Tap("x")])
        finally:
            interrupted.set()

    with pytest.raises(KeyboardInterrupt):
        run()
    assert not alive(pid)
    own.run(files, [{"x": X}], [Tap("x")])


def test_a_worker_ends_with_its_runtime(pycaffe):
    runtime = PyCaffe(pycaffe.python)
    pid = runtime._worker._process.pid
    assert alive(pid)
    runtime.close()
    assert not alive(pid)
    runtime = PyCaffe(pycaffe.python)
    pid = runtime._worker._process.pid
    del runtime
    assert not alive(pid)


def test_a_worker_ends_with_a_parent_that_was_killed(pycaffe, tmp_path):
    script = "import sys, os; from pathlib import Path; from onnx2caffe.runtimes.pycaffe import PyCaffe; "
    script += "r = PyCaffe(Path(sys.argv[1])); print(r._worker._process.pid, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(pycaffe.python)], capture_output=True, text=True, check=False
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    """Alive and no zombie: an orphan's remains are for init, which a container may lack."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_python_path_does_not_reach_another_python(pycaffe, tmp_path, monkeypatch):
    (tmp_path / "caffe.py").write_text("raise SystemExit('the wrong caffe')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    find(pycaffe.python).close()


def test_what_a_wrapper_prints_is_no_answer(pycaffe, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho welcome\nexec {pycaffe.python} "$@"\n')
    python.chmod(0o755)
    wrapped = find(python)
    assert wrapped.version() == pycaffe.version()
    wrapped.close()


def test_no_caffe_anywhere(no_caffe):
    with pytest.raises(RuntimeMissing, match="no pycaffe found") as caught:
        find()
    assert "onnx2caffe setup pycaffe" in caught.value.hint
    assert caught.value.exit_code == 4


def test_the_variable_names_a_python(no_caffe, monkeypatch, pycaffe):
    monkeypatch.setenv("ONNX2CAFFE_CAFFE_PYTHON", str(pycaffe.python))
    find().close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot run"),
        ("#!/bin/sh\nexit 3\n", "no working caffe: it ended with exit code 3"),
        ("#!/bin/sh\nkill -9 $$\n", "no working caffe: it was killed by SIGKILL"),
        ("#!/bin/sh\necho a line that could be read as a length\n", "no working caffe: it ended with exit code 0"),
        ("#!/bin/sh\nexec yes\n", "no working caffe: it prints without end"),
    ],
)
def test_a_python_without_caffe_is_named(no_caffe, tmp_path, content, words):
    python = tmp_path / "some python"
    if content is not None:
        python.write_text(content)
        python.chmod(0o755)
    with pytest.raises(RuntimeMissing, match=f"{words}.*some python|some python.*{words}"):
        find(python)
