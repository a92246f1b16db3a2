#!/usr/bin/env python3
"""Write docs/operators.md, the list of ONNX ops and recipes this package has, from the functions themselves.

python tools/make_operators.py            write it
python tools/make_operators.py --check    exit 1 if it is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from onnx2caffe import inventory
from onnx2caffe.targets import TARGETS

PAGE = Path(__file__).parent.parent / "docs" / "operators.md"

HEAD = """# Operators

Made by `make docs`; do not edit. Each ONNX op (and each recipe that several ops share, in lower case) with the variants
that can express it. A target takes the first whose layers its rules accept, in the order the last columns number;
`--recipe KEY=VARIANT` picks another. What no variant can express is refused by name, with the reason of each.

An op that is not listed has a form among these (an older or lower-level spelling that is rewritten on reading), or is
refused.
"""


def page() -> str:
    """The whole page."""
    columns = ["op or recipe", "variant", "what it does", *TARGETS]
    lines = [_row(columns), _row(["---"] * len(columns))]
    for entry in inventory.ops():
        lines += [_row(cells) for cells in _cells(entry)]
    return "\n".join([HEAD, *lines, ""])


def _cells(entry: inventory.OpEntry) -> Iterator[list[str]]:
    """One row per variant, in the order of the first target."""
    order = {target: [v.name for v in variants] for target, variants in entry.targets.items()}
    for variant in entry.targets[next(iter(TARGETS))]:
        does = variant.does + (" (approximate: only where asked for)" if variant.approximate else "")
        places = [str(order[target].index(variant.name) + 1) for target in TARGETS]
        yield [f"`{entry.key}`", f"`{variant.name}`", does, *places]


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    if parser.parse_args().check:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
