#!/usr/bin/env python3
"""Write docs/nnie-rules.md, what the mapper says and what to do, from the rules themselves.

python tools/make_nnie_rules.py            write it
python tools/make_nnie_rules.py --check    exit 1 if it is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from onnx2caffe.targets.nnie.rules import SEVERITIES, Rule, load_rules
from onnx2caffe.targets.nnie.socs import SOCS

PAGE = Path(__file__).parent.parent / "docs" / "nnie-rules.md"

HEAD = """# What the mapper says and what to do

Made by `make docs` from `onnx2caffe/targets/nnie/rules.toml`; do not edit.

These are the rules of `onnx2caffe check` for HiSilicon's NNIE 1.1 and 1.2. Chips of the SS928 class (SS928, SD3403 …)
have another engine: their tool, ATC, takes ONNX files directly, and nothing here is about them.

The mapper is closed, and no rule here was tried against it: each says where it is known from. Whoever has the mapper
can ask it: `[is_check_prototxt] 1` in the cfg makes it check the prototxt and stop. `onnx2caffe check NET.prototxt
--mapper-log FILE` reads what it says and names the ONNX nodes. Whoever owns the vendor's guide can correct a rule or
add one in a file of his own, `--rules my.toml`:

```toml
[W20]                      # changes a rule
severity = "refused"

[W22]                      # takes constructs out of one: layer types, or words of findings (* stands for any)
exempt = ["Slice", "Eltwise MAX", "Deconvolution of kernel 4x4*"]

[E05]                      # a layer type that your mapper has
exempt = ["Interp"]

[X1]                       # adds a rule about layer types
title = "what our mapper does not take"
severity = "refused"
when = { types = ["Power", "Exp"] }
remedy = "Scale"

[X2]                       # adds one about a field of theirs: one_of, min or max
title = "kernels of our chip"
severity = "wrong"
when = { types = ["Convolution"], field = "kernel_size", max = 7 }
remedy = "split the kernel"

[X3]                       # adds one about the mapper's log, a regular expression
title = "licence"
severity = "refused"
when = { log = "no licence" }
remedy = "ask the vendor"
```

`--fail-on SEVERITY` makes findings of this severity and worse ones fail the check (default: `wrong`).

| severity | means |
|---|---|
| refused | the mapper stops |
| wrong | it accepts, and the numbers differ |
| unproven | no compiled example is public |
| slow | it costs time, memory or 8-bit precision |

What each is known from: **ERR** the mapper's error text · **OFF** official text · **GUIDE** the vendor's guide as
users quote it · **WK** a shipped model shows it · **MEAS** measured · **TOOL** coded into a tool for NNIE · **USER** a
user says so · **INF** inferred. “nnie §n” is a section of this project's notes on the mapper.
"""


def page() -> str:
    """The whole page."""
    rules = load_rules()
    return "\n".join([HEAD, *_chips(), *_messages(rules), *_rules(rules)])


def _chips() -> Iterator[str]:
    yield from ["## Chips", "", "| `--soc` | |", "|---|---|"]
    for name, soc in SOCS.items():
        yield f"| {name} | {soc} |"
    yield ""


def _messages(rules: dict[str, Rule]) -> Iterator[str]:
    yield from ["## By message", "", "| the mapper or the board says | rule | what to do |", "|---|---|---|"]
    for rule in rules.values():
        for words in rule.words.split("; "):
            if words:
                yield f"| `{_cell(words)}` | {rule.id} | {_cell(rule.remedy)} |"
    yield ""


def _rules(rules: dict[str, Rule]) -> Iterator[str]:
    for severity in reversed(SEVERITIES):
        yield from [f"## {severity.capitalize()}", ""]
        yield from ["| rule | what | what to do | option | known from |", "|---|---|---|---|---|"]
        for rule in rules.values():
            if rule.severity == severity:
                option = f"`{_cell(rule.option)}`" if rule.option else ""
                known = f"{rule.strength} ({rule.source})"
                cells = [rule.id, rule.title, rule.remedy]
                yield f"| {' | '.join(map(_cell, cells))} | {option} | {_cell(known)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    if parser.parse_args().check:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
