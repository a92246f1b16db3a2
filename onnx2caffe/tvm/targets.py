"""What a module is built for: TVM's target as a dictionary, which both dialects read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx2caffe.errors import UsageError

__all__ = ["HOST", "PRESETS", "parse"]

HOST: Mapping[str, Any] = {"kind": "llvm"}
"""Any machine like this one."""

PRESETS: Mapping[str, Mapping[str, Any]] = {"host": HOST}
"""Names for `--target`."""

_LISTS = ("keys", "mattr")


def parse(text: str) -> dict[str, Any]:
    """A preset's name, or a target as TVM writes it: `llvm -mtriple=… -mcpu=… -mattr=+neon,+vfp4`.

    Raises:
        UsageError: neither.

    """
    if text in PRESETS:
        return dict(PRESETS[text])
    kind, *options = text.split() or [""]
    if kind != "llvm":
        raise UsageError(f"--target {text!r} is unknown", f"give 'llvm …' or one of: {', '.join(PRESETS)}")
    target: dict[str, Any] = {"kind": kind}
    for option in options:
        name, sign, value = option.removeprefix("-").partition("=")
        if not sign or not option.startswith("-"):
            raise UsageError(f"--target {text!r}: {option!r} is not -NAME=VALUE")
        target[name] = value.split(",") if name in _LISTS else int(value) if value.isdecimal() else value
    return target
