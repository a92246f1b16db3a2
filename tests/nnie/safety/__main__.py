#!/usr/bin/env python3
"""How well nets keep their answers in 8 bits: the form for the mapper beside the plain layers of the same model.

    python -m tests.nnie.safety            print and rewrite table.tsv
    python -m tests.nnie.safety --check    only fail where the mapper's form loses more

Both forms have one cut, at which `--tail auto` ends the nets; the CPU parts compute in float32. Each is run on all
pictures at several brightnesses and held against the model itself in onnxruntime.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.nnie.safety.compare import HEADER, MODELS, PICTURES, TABLE, measured, model_file, pictures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="the table is left alone")
    parser.add_argument("models", nargs="*", help="these alone; the table is left alone")
    options = parser.parse_args()
    if not PICTURES.is_dir():
        print("no ../shared/pictures here: nothing to do", file=sys.stderr)
        return 0
    lines, worse = [HEADER], []
    print(HEADER)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.models or MODELS:
            found = measured(model_file(name, Path(scratch)), MODELS[name], pictures(), Path(scratch))
            lines += found.lines(name)
            worse += [f"{name} loses more: {what}" for what in found.worse()]
            print(*found.lines(name), sep="\n", flush=True)
    if not (options.check or options.models):
        TABLE.write_text("\n".join(lines) + "\n")
    print(*worse, sep="\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
