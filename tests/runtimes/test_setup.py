"""Setting up pycaffe, short of compiling: what is there already, what is missing, what does not fit."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile

import pytest

from onnx2caffe.errors import RuntimeMissing, UsageError
from onnx2caffe.runtimes import setup
from onnx2caffe.runtimes.setup.commands import run
from onnx2caffe.runtimes.setup.pycaffe import debian, recipe, sources
from onnx2caffe.runtimes.setup.pycaffe.wheel import write_wheel
from onnx2caffe.runtimes.setup.report import Report


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_an_unknown_runtime():
    with pytest.raises(UsageError, match="'matlab'") as caught:
        setup.install("matlab")
    assert "pycaffe" in caught.value.hint


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_than_on_linux_it_says_what_serves(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(RuntimeMissing, match=platform) as caught:
        setup.install("pycaffe")
    assert "builtin" in caught.value.hint
    assert "environment-caffe.yml" in caught.value.hint


def test_what_is_there_is_not_made_again(empty_cache, pycaffe, monkeypatch):
    python = recipe.environment().folder / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{pycaffe.python}" "$@"\n')
    python.chmod(0o755)
    assert recipe.environment_python() is None
    recipe.environment().mark.touch()
    monkeypatch.setenv("PATH", "")
    assert setup.install("pycaffe") == python


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(debian, "_is_installed", lambda package: package != "libopenblas-dev")
    monkeypatch.setattr(debian.shutil, "which", lambda program: program)
    with pytest.raises(RuntimeMissing, match=r"apt-get install .*libopenblas-dev"):
        debian.require_packages("no", Report())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RuntimeMissing, match="as root"):
        debian.require_packages("auto", Report())


def test_apt_updates_its_lists_only_where_it_must(monkeypatch):
    calls = []

    def fake(command, environment=None, hint=""):
        calls.append(command[1])
        if calls == ["install"]:
            raise RuntimeMissing("no such package")

    monkeypatch.setattr(debian, "_is_installed", lambda package: False)
    monkeypatch.setattr(debian.shutil, "which", lambda program: program)
    monkeypatch.setattr(debian, "run", fake)
    debian.require_packages("yes", Report())
    assert calls == ["install", "update", "install"]


def test_without_dpkg_it_says_what_must_be_there(monkeypatch, capsys):
    monkeypatch.setattr(debian.shutil, "which", lambda program: None)
    debian.require_packages("auto", Report())
    assert "libprotobuf-dev" in capsys.readouterr().err


def test_a_program_that_is_not_there_or_fails():
    with pytest.raises(RuntimeMissing, match="no program 'no-such-compiler'") as caught:
        run(["no-such-compiler"], hint="another one")
    assert caught.value.hint == "another one"
    with pytest.raises(RuntimeMissing, match=r"exit code 3:\nwhy"):
        run([sys.executable, "-c", "print('why'); raise SystemExit(3)"])


def test_another_archive_than_the_pinned_one(monkeypatch, tmp_path):
    def download(command, environment=None, hint=""):
        (tmp_path / f"x-{recipe.SDIST[1]}.tar.gz").write_bytes(b"something else")

    monkeypatch.setattr(sources, "run", download)
    with pytest.raises(RuntimeMissing, match="sha256"):
        sources.fetch(sys.executable, tmp_path)


def test_sources_that_the_patches_do_not_fit(tmp_path):
    (tmp_path / "io.cpp").write_text("")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "io.cpp", "x-1/src/caffe/util/io.cpp")
    with pytest.raises(RuntimeMissing, match="cannot patch"):
        sources.unpack(tmp_path / "a.tar.gz", tmp_path / "source")


def test_the_wheel_is_one_that_pip_can_read(tmp_path):
    package = tmp_path / "package"
    (package / ".libs").mkdir(parents=True)
    (package / "__init__.py").write_text("value = 7\n")
    (package / ".libs" / "libx.so.1").write_text("")
    (tmp_path / "LICENSE").write_text("free")
    wheel = write_wheel(package, tmp_path / "LICENSE", tmp_path)
    again = wheel.read_bytes()
    assert write_wheel(package, tmp_path / "LICENSE", tmp_path).read_bytes() == again
    assert "caffe/.libs/libx.so.1" in zipfile.ZipFile(wheel).namelist()
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "there", wheel]
    subprocess.run(pip, check=True)
    done = subprocess.run(
        [sys.executable, "-c", "import caffe; print(caffe.value)"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "there")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "7\n"


def test_no_host_names_in_the_builder():
    texts = [p.read_text() for p in recipe.SOURCES.parent.rglob("*") if p.suffix in {".py", ".cpp", ".h", ".txt"}]
    assert texts
    assert not any("://" in text for text in texts)
