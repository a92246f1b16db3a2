"""Folders that cannot be written, disks that fill up, processes that are killed or meet each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnx2caffe.tvm.registry import DIALECTS
from tests.hostile.conftest import whole_or_nothing
from tests.verify.models import save

UNPROVED = ("--no-proof",)

KILLED = """
import os, pathlib, signal, sys
from onnx2caffe.cli import main
honest, left = pathlib.Path.replace, [int(sys.argv[1])]
def replace(self, target):
    if left[0] == 0:
        os.kill(os.getpid(), int(sys.argv[2]))
    left[0] -= 1
    return honest(self, target)
pathlib.Path.replace = replace
sys.exit(main(sys.argv[3:]))
"""
"""Converts, and gets a signal where it would move one more file into place than its first argument says."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".onnx2caffe-"))


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("classifier.onnx", "is not a folder"),
        ("classifier.onnx/below", "cannot write into"),
        ("/proc/nothing/here", "cannot write into"),
        ("/dev/null", "is not a folder"),
        ("n" * 300, "cannot write into"),
        ("link", "is not a folder"),
        ("nul\0", "is no path"),
    ],
    ids=["a_file", "below_a_file", "proc", "a_device", "300_characters", "a_link_to_itself", "nul"],
)
def test_where_nothing_can_be_written(cli, model, tmp_path, folder, says):
    (tmp_path / "link").symlink_to("link")
    ran = cli("convert", model, "-o", folder, *UNPROVED)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert says in ran.err
    assert names(tmp_path) == ["classifier.onnx", "link"]


@pytest.mark.parametrize("name", ["a/b", "..", "", "nul\0", "n" * 300])
def test_names_of_files_that_cannot_be(cli, model, tmp_path, name):
    ran = cli("convert", model, "-o", "out", f"--name={name}", *UNPROVED)
    assert (ran.code, "error: internal" in ran.err) == (2, False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["-o.onnx", 'a"b\n# layer {}.onnx', "🦙.onnx", " .onnx", "$(id).onnx", "n" * 240 + ".onnx"]
)
def test_names_of_models(cli, model, tmp_path, name):
    """The default folder and files are named after the model, and the prototxt's header quotes it."""
    path = model.rename(tmp_path / name)
    assert cli("convert", path, "--no-caffe-run").code == 0
    assert whole_or_nothing(tmp_path / path.stem)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(cli, model, tmp_path):
    (tmp_path / "out").mkdir(mode=0o500)
    assert cli("convert", model, "-o", "out", *UNPROVED).code == 2


def test_intermediates_where_a_file_is(cli, model, tmp_path):
    ran = cli("convert", model, "-o", "out", "--save-intermediate", model, *UNPROVED)
    assert ran.code == 2
    assert not (tmp_path / "out").exists()


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(cli, tmp_path, small_disk):
    arithmetic = save("arithmetic", tmp_path)
    assert cli("convert", arithmetic, "-o", small_disk / "out", "--name", "net", *UNPROVED).code == 0
    before = {path.name: path.read_bytes() for path in (small_disk / "out").iterdir()}
    (small_disk / "filler").write_bytes(bytes(64))
    with (small_disk / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(512)):
                pass
        except OSError:
            pass
    ran = cli("convert", arithmetic, "-o", small_disk / "out", "--name", "net", *UNPROVED)
    assert ran.code == 2
    assert "No space left" in ran.err
    assert {path.name: path.read_bytes() for path in (small_disk / "out").iterdir()} == before
    assert cli("convert", arithmetic, "-o", small_disk / "new", *UNPROVED).code == 2
    assert not (small_disk / "new").exists()


@pytest.fixture
def script(tmp_path):
    """Writes a program of shell commands."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return write


NO_ROOM = "echo '/usr/bin/ld: final link failed: No space left on device' >&2; exit 1"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_disk_that_is_full_where_a_compiler_writes(cli, model, tmp_path, dialect, script, running):
    running(dialect)
    cc = script("cc", NO_ROOM)
    ran = cli("tvm", model, "-o", "out", "--dialect", dialect, "--no-compare", "--cc", cc)
    assert ran.code == 2
    assert "error: cannot write: " in ran.err
    assert "No space left on device" in ran.err
    assert tempfile.gettempdir() in ran.err
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_full_where_c_is_compiled(cli, model, tmp_path, script, running, monkeypatch):
    running("relay")
    monkeypatch.setenv("PATH", f"{script('gcc', NO_ROOM).parent}:{os.environ['PATH']}")
    ran = cli("tvm", model, "-o", "out", "--target", "c")
    assert (ran.code, "cannot write: " in ran.err) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["host", "aarch64"])
def test_a_disk_that_fills_up_under_a_worker(cli, model, small_disk, running, target, monkeypatch):
    """LLVM ends its process then, after words that the disk must not be needed for."""
    running("relay")
    (small_disk / "filler").write_bytes(bytes(60 << 10))
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    ran = cli("tvm", model, "-o", "out", "--no-compare", "--target", target)
    assert ran.code == 2
    assert "No space left on device" in ran.err
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def _listening() -> None:
    """Jobs in the background of a shell are started deaf to SIGINT, those of nohup to SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_while_a_compiler_runs(model, tmp_path, script, running, number):
    """Neither the worker nor the compiler that it started goes on; both signals of two are one."""
    running("relay")
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    cc = script("cc", f'[ "$1" = -dumpmachine ] && exit 1; exec 3> "{alive}"; echo $PPID >&3; sleep 600')
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = ["tvm", str(model), "-o", str(tmp_path / "out"), "--no-compare", "--cc", str(cc)]
    command = [sys.executable, "-m", "onnx2caffe", *words]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    exporting = subprocess.Popen(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listening,  # noqa: PLW1509 - it has one thread
    )
    with alive.open() as compiler:
        worker = int(compiler.readline())
        exporting.send_signal(number)
        exporting.send_signal(number)
        assert exporting.communicate()[1] == f"error: interrupted ({number.name})\n"
        assert exporting.returncode == 128 + number
        assert compiler.read() == ""  # its end, also that of what it started
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert not (tmp_path / "out").exists()
    assert not [*temporary.iterdir()]


def run_killed(model: Path, folder: Path, moves: int, number: int = signal.SIGKILL) -> int:
    words = [
        sys.executable,
        "-c",
        KILLED,
        str(moves),
        str(int(number)),
        "convert",
        str(model),
        "-o",
        str(folder),
        "--name",
        "net",
        *UNPROVED,
    ]
    return subprocess.run(words, capture_output=True, check=False).returncode


@pytest.mark.parametrize("moves", [0, 1, 2])
@pytest.mark.parametrize("over", [False, True], ids=["new", "over_an_export"])
def test_killed_between_two_files(cli, model, tmp_path, moves, over):
    out = tmp_path / "out"
    other = save("decoder", tmp_path)
    if over:
        assert cli("convert", other, "-o", out, "--name", "net", *UNPROVED).code == 0
    assert run_killed(model, out, moves) == -9
    assert not whole_or_nothing(out)
    assert cli("convert", model, "-o", out, "--name", "net", *UNPROVED).code == 0
    assert whole_or_nothing(out)
    assert (
        names(out) == sorted(path.name for path in out.iterdir()) == ["net.caffemodel", "net.map.json", "net.prototxt"]
    )


def test_stopped_before_the_first_file(model, tmp_path):
    assert run_killed(model, tmp_path / "out", 0, signal.SIGTERM) == 128 + signal.SIGTERM
    assert not (tmp_path / "out").exists()


def test_two_models_into_one_folder_at_once(tmp_path):
    models = [save(name, tmp_path) for name in ("classifier", "decoder")]
    out = tmp_path / "out"
    for _ in range(2):
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "onnx2caffe", "convert", str(path), "-o", str(out), "--name", "net", *UNPROVED],
                stdout=subprocess.DEVNULL,
            )
            for path in models
        ]
        assert [process.wait() for process in running] == [0, 0]
        assert whole_or_nothing(out)
        assert len(list(out.iterdir())) == 3
