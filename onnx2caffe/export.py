"""Files that appear whole or not at all: staged beside their place, renamed in at the end, the map last.

An export is a set of files named by a map.json. It is staged in a hidden folder inside the target folder, so that every
rename stays on one file system. The commit removes the old map, renames the files in, and the new map last: no map, no
export. A run that was killed leaves its hidden folder behind; the next run knows it by its name and by nobody holding
its lock, and removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from onnx2caffe import mapfile
from onnx2caffe.errors import UnreadableFile, UsageError
from onnx2caffe.tvm import csource

try:
    import fcntl
except ImportError:  # Windows: no folder locks; a folder in use cannot be removed there anyway
    fcntl = None  # type: ignore[assignment]

__all__ = ["MAP_SUFFIX", "Staging", "check_folder"]

MAP_SUFFIX = ".map.json"
HEADER = "# onnx2caffe "
"""How the first line of every prototxt of ours begins."""
_PREFIX, _SUFFIX = ".onnx2caffe-", ".tmp"


def check_folder(folder: Path, force: bool) -> None:
    """Refuse a target folder that holds files which no export of ours put there.

    Raises:
        UsageError: it does and `force` is off, or the folder is a file.

    """
    if "\0" in str(folder):
        raise UsageError(f"{str(folder)!r} is no path")
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "choose another with -o DIR")
    if force or not os.path.lexists(folder):
        return
    foreign = sorted(set(_listing(folder)) - _ours(folder))
    if foreign:
        named = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
        raise UsageError(
            f"{folder} holds files that no export of onnx2caffe put there: {named}",
            "choose another folder with -o DIR, or write beside them with --force",
        )


def _listing(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError as problem:
        raise UsageError(f"cannot read folder {folder}: {problem.strerror}") from problem


def _ours(folder: Path) -> set[str]:
    """Names in the folder that exports of ours and their Makefiles account for, also those of a run killed half-way."""
    ours = {p.name for p in folder.glob(f"{_PREFIX}*{_SUFFIX}")}
    for path in folder.glob(f"*{MAP_SUFFIX}"):
        try:
            files = mapfile.read(path).files
        except UnreadableFile:
            continue
        ours |= {path.name, *files, *([csource.BUILD] if csource.MAKEFILE in files else [])}
    for path in folder.glob("*.prototxt"):
        if _has_header(path):
            ours |= {path.name, f"{path.stem}.caffemodel"}
    return ours


def _files(map_file: Path) -> set[str]:
    """The names of an export's files, its map not among them; none where there is no export."""
    try:
        return {name for name in mapfile.read(map_file).files if Path(name).name == name}
    except UnreadableFile:
        return set()


def _has_header(path: Path) -> bool:
    if not path.is_file():  # a pipe would never answer
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER.encode()
    except OSError:
        return False


class Staging:
    """A hidden folder inside the target folder, gone when the `with` block ends, whatever happens.

    Raises:
        UsageError: the folder cannot be made or written.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Path] = []
        self._lock = -1
        self.path = folder

    def __enter__(self) -> Staging:
        try:
            self.path = self._prepare()
        except OSError as problem:
            self._remove_made()
            raise UsageError(
                f"cannot write into {self._folder}: {problem.strerror}", "choose another folder with -o DIR"
            ) from problem
        return self

    def _prepare(self) -> Path:
        for _ in range(3):  # another run that fails may take the empty folder away in between
            self._make_folder()
            with contextlib.suppress(FileNotFoundError), _locked(self._folder):
                _remove_left_over(self._folder)
                path = Path(tempfile.mkdtemp(_SUFFIX, f"{_PREFIX}{os.getpid()}-", self._folder))
                self._lock = _lock(path, wait=False)
                return path
        raise FileNotFoundError(2, "the folder keeps vanishing", str(self._folder))

    def _make_folder(self) -> None:
        missing = [p for p in (self._folder, *self._folder.parents) if not p.exists()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            self._made.append(path)

    def commit(self, files: Sequence[str], map_name: str) -> None:
        """Move the staged files into the target folder, the map last; what only the export before had is removed.

        Raises:
            UsageError: a rename failed; then there is no map, hence no export. Or a file of that name belongs to an
                export of another name; then nothing is moved.

        """
        try:
            with _locked(self._folder):
                self._check_unowned({*files}, map_name)
                for name in (map_name, *(_files(self._folder / map_name) - {*files})):
                    (self._folder / name).unlink(missing_ok=True)
                for name in (*files, map_name):
                    (self.path / name).replace(self._folder / name)
        except OSError as problem:
            raise UsageError(f"cannot write into {self._folder}: {problem.strerror}") from problem
        self._made.clear()

    def _check_unowned(self, files: set[str], map_name: str) -> None:
        """Raise UsageError where a file belongs to the export of another map, which would be no export any more."""
        for path in sorted(self._folder.glob(f"*{MAP_SUFFIX}")):
            if path.name != map_name and (shared := sorted(files & _files(path))):
                named = all(name.startswith(map_name.removesuffix(MAP_SUFFIX)) for name in shared)
                other_name = "another name with --name, or " if named else ""
                raise UsageError(
                    f"{self._folder / shared[0]} belongs to the export of {path.name}",
                    f"choose {other_name}another folder with -o DIR",
                )

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
        self._remove_made()

    def _remove_made(self) -> None:
        for path in reversed(self._made):
            with contextlib.suppress(OSError):  # somebody else put something there meanwhile
                path.rmdir()


def _lock(folder: Path, wait: bool) -> int:
    """Lock a folder against other runs; the handle, or -1 where it is held or cannot be locked."""
    if fcntl is None:
        return -1
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return -1
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held, or a file system without locks
        os.close(handle)
        return -1
    return handle


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = _lock(folder, wait=True)
    try:
        yield
    finally:
        if handle >= 0:
            os.close(handle)


def _remove_left_over(folder: Path) -> None:
    """Remove the hidden folders of runs that are gone: those whose lock nobody holds."""
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        handle = _lock(path, wait=False)
        if handle >= 0:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)
