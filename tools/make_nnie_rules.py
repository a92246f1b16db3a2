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
user says so · **INF** inferred. [Sources](#sources) says what the names beside it are.
"""

SOURCES = {
    "official texts": "HiSVP API reference (issue 09, January 2021), HiSilicon's training documents for its Taurus "
    "boards, and the headers and samples of the SDK in openharmony/device_soc_hisilicon",
    "hi_nnie.h": "header of the SDK: structs and limits of the board's library; in openharmony/device_soc_hisilicon",
    "runtime library": "the messages inside the board's NNIE library, which name its limits",
    "vendor's script": "CNN_convert_bin_and_print_featuremap.py, which comes with the SDK: its lists of layer types",
    "guide A": "table 3-6 (the cfg's keys) of the HiSVP Development Guide, as nnie_mapper/README.md of "
    "rinetd/nnie_mapper and README.md of jnulzl/nnie_mapper reproduce it",
    "guide B": "the guide's chapters on tools and practice, as a company's notes on face recognition reproduce them",
    "guide C": "the guide on PassThrough, in README.md of Hiwyl/yolov5_onnx2caffe",
    "guide D": "the guide on the extension layers, in CSDN article 105676120",
    "compiled nets": "nine prototxts in public that the mapper is known to have compiled (ENet, RetinaFace, PFPLD, "
    "YOLOv3, YOLOv5n and others), scanned for what they hold",
    ".wk files": "seventeen compiled models in public, their headers read byte by byte",
    "map.json": "what the export beside the net says of itself",
    "Caffe": "BVLC Caffe 1.0, which the mapper is based on: its own checks",
    "MindSpore Lite": "its converter's adapters and documentation for NNIE and for the chips after it (SS928)",
    "MQBench": "ModelTC/MQBench, quantisation-aware training: what its exporter for NNIE writes",
    "mgeconvert": "MegEngine/mgeconvert, a converter to Caffe that warns of NNIE's limits",
    "ModelConverter": "ml-inory/ModelConverter, a converter that writes for NNIE",
    "wobuhuicode/onnx2caffe": "a converter that writes for NNIE",
    "Seven-Zhan/Pytorch2Caffe": "a converter; its Caffe/caffe.proto has the vendor's additions",
    "rinetd/nnie_mapper": "README.md: the mapper in a container, and what it needs",
    "Hiwyl/yolov5_onnx2caffe": "README.md: YOLOv5 brought to NNIE, with what went wrong",
    "Wulingtian/yolov5_onnx2caffe#8": "issue: RuyiStudio stops at a Permute, its message quoted",
    "hanson-young/nniefacelib#31": "issue: an Eltwise of unlike shapes, the message quoted",
    "hanson-young/nniefacelib#60": "issue: large and slow .wk of a net with grouped depthwise convolutions",
    "Strand2013/NNIE-lite#16": "issue: the board refuses a .wk",
    "wllkk/yolov5-nnie#1": "issue: channel order and weak scores on the board",
    "CSDN 89312854": "article: SSD on MobileNet for NNIE, depthwise convolutions either way",
    "CSDN 110038605": "article: YOLOv5s for NNIE, the Reshape message quoted",
    "CSDN 110530010": "article: nearest upsampling by Upsample with one bottom",
    "CSDN 113425275": "article: a global pooling refused, with sizes",
    "CSDN 124061990": "article: a detector at 8 bits: activations, channel order, calibration pictures",
    "CSDN 144503372": "article: pooling that rounds up, ReLU6 by other layers, a Power whose shift was lost",
    "users' logs": "the mapper's output as users quote it in issues and articles",
    "nothing public": "no text and no net in public says whether the mapper takes it",
}
"""What the names in the rules' sources are."""


def page() -> str:
    """The whole page."""
    rules = load_rules()
    return "\n".join([HEAD, *_chips(), *_messages(rules), *_rules(rules), *_sources()])


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


def _sources() -> Iterator[str]:
    yield from ["## Sources", "", "| name | what it is |", "|---|---|"]
    for name, text in SOURCES.items():
        yield f"| {_cell(name)} | {_cell(text)} |"
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
