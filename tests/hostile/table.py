"""Write README.md, the table of what was tried: python -m tests.hostile.table"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.hostile.cases import ATTACKS
from tests.hostile.nets import NETS

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).with_name("README.md")

HEAD = """# Hostile input

What was tried, and how it ends: made of the rows that the tests beside it run (`python -m tests.hostile.table`). Every
row also demands: no traceback, no internal error, no Python warning, at most 1 GiB more memory, seconds, not minutes,
and either a whole export or none.

Exit codes: 0 fine, 1 numbers differ, 2 wrong usage or unreadable file, 3 the model cannot be converted.
"""

OTHERS = {
    "Disks and processes": [
        ("an output folder that is a file, a device, a link to itself, below a file, in `/proc`, 300 characters", 2,
         "is not a folder; cannot write into"),
        ("`--name` with a path separator, dots only, NUL, 300 characters", 2, "is no file name; cannot write into"),
        ("models named with quotes, newlines, `#`, emoji, `$(…)`, a leading dash, 240 characters", 0, ""),
        ("a folder without permission (where the tests do not run as root)", 2, "cannot write into"),
        ("a disk of 64 KiB that is full, with and without an older export on it", 2, "No space left; the old stays"),
        ("a disk that only a compiler, a linker, tar or LLVM finds full, also that of temporary files", 2,
         "cannot write; No space left"),
        ("SIGINT, SIGTERM, SIGHUP, twice, while a file is written or a compiler runs for `tvm`", "130, 143, 129",
         "interrupted; nothing is left, no process either"),
        ("standard output or error that is closed; standard error that is full", "as ever",
         "what was done stays done"),
        ("kill -9 before the first, between the first and the second, before the last file moves into place", -9,
         "no map.json, hence no export; the next run cleans up"),
        ("two models converted into one folder under one name at once, twice", 0, "one whole export"),
        ("an export whose files another export in the folder has", 2, "belongs to the export"),
        ("`check` and its options on a pipe, device, folder, path with NUL, rules nested deep", 2, "no regular file"),
    ],
    "Random damage": [
        ("200 seeded mutations of a model, converted and proved", "0, 2, 3", "a whole export or none"),
        ("200 of its prototxt, 200 of its caffemodel, 200 of its map.json, compared", "0, 1, 2, 3", ""),
        ("26 maps that lie (paths elsewhere, blobs, layers, shapes and segments that are not there)", "0, 1, 2", ""),
    ],
}  # fmt: skip
"""What test_disk.py, test_flips.py, test_compare.py and the tests of the command line do besides the rows."""


def page() -> str:
    """The whole page."""
    rows = {title: [(a.what, a.code, a.says) for a in attacks] for title, attacks in (*ATTACKS.items(), *NETS.items())}
    return "\n".join([HEAD, *(line for title, found in {**rows, **OTHERS}.items() for line in _section(title, found))])


def _section(title: str, rows: Sequence[tuple[str, int | str, str]]) -> Iterator[str]:
    yield from (f"## {title}", "", "| tried | exit code | says |", "|---|---|---|")
    for what, code, says in rows:
        yield f"| {_cell(what)} | {code} | {_cell(says)} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
