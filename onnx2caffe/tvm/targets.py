"""What a module is built for: TVM's target as a dictionary, which both dialects read, and the compiler that fits it."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from typing import Any

from onnx2caffe.errors import UsageError

__all__ = ["HOST", "PRESETS", "compiler_package", "fits", "is_c", "is_foreign", "is_gpu", "parse"]

Target = Mapping[str, Any]

HOST: Target = {"kind": "llvm"}
"""Any machine like this one."""


def _arm(cpu: str, *features: str) -> Target:
    """A 32-bit board of HiSilicon's SDKs: NEON computes, calls hand floats over in integer registers (softfp)."""
    return {
        "kind": "llvm",
        "mtriple": "armv7a-linux-gnueabi",
        "mcpu": cpu,
        "mattr": ["+neon", *features],
        "mfloat-abi": "soft",  # of calls only: `mattr` has the registers
    }


_A7 = _arm("cortex-a7", "+vfp4")
_AARCH64: Target = {"kind": "llvm", "mtriple": "aarch64-linux-gnu"}

PRESETS: Mapping[str, Target] = {
    "host": HOST,
    "hi3516cv500": _A7,
    "hi3516dv300": _A7,
    "hi3516av300": _A7,
    "hi3519av100": _arm("cortex-a53"),
    "hi3559v200": _A7,
    "hi3559av100": {**_AARCH64, "mcpu": "cortex-a73"},
    "armhf": {
        "kind": "llvm",
        "mtriple": "armv7a-linux-gnueabihf",
        "mattr": ["+neon", "+vfp4"],
        "mfloat-abi": "hard",
    },
    "aarch64": _AARCH64,
    "opencl": {"kind": "opencl", "host": HOST},
    "mali": {"kind": "opencl", "device": "mali", "host": _AARCH64},
    "c": {"kind": "c"},
}
"""Names for `--target`; boards as the SDKs' toolchains have them (arm-himix100, arm-himix200, aarch64-himix100)."""

_PACKAGES = {
    "aarch64": "gcc-aarch64-linux-gnu",
    "gnueabihf": "gcc-arm-linux-gnueabihf",
    "gnueabi": "gcc-arm-linux-gnueabi",
}
"""How a triple begins or ends -> Debian's compiler for it."""

_FAMILIES = {"arm64": "aarch64", "arm": "arm", r"i\d86": "x86", "amd64": "x86_64"}
_SOFT, _HARD = "eabi", "eabihf"
"""How the triple of a 32-bit ARM ends whose calls hand floats over in integer registers, and of one in the others."""

_LISTS = ("cl-opt", "keys", "libs", "mattr")
_NUMBERS = {"opt-level": range(4), "num-cores": range(1, 1025)}
"""What makes sense of options that TVM takes any number for."""


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
        if name == "kind":
            raise UsageError(f"--target {text!r}: {option!r} is no option", "the kind stands first, by itself")
        if name in _NUMBERS and value not in map(str, numbers := _NUMBERS[name]):
            raise UsageError(f"--target {text!r}: {option!r} is none of {numbers[0]} … {numbers[-1]}")
        target[name] = value.split(",") if name in _LISTS else _plain(value)
    for feature in target.get("mattr", ()):
        if feature[:1] not in ("+", "-"):
            raise UsageError(f"--target {text!r}: -mattr={feature}", "-mattr=+FEATURE,-FEATURE")
    return target


def _plain(value: str) -> bool | int | str:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdecimal() else value


def is_c(target: Target) -> bool:
    """Whether the module becomes C sources."""
    return bool(target["kind"] == "c")


def is_gpu(target: Target) -> bool:
    """Whether the operators become kernels of a device beside the machine that calls them."""
    return "host" in target


def is_foreign(target: Target) -> bool:
    """Whether another machine than this one runs its code, so that this one's compiler does not link it."""
    return bool(_triple(target))


def compiler_package(target: Target) -> str:
    """The Debian package of a compiler that links for a target."""
    triple = _triple(target)
    fitting = (p for part, p in _PACKAGES.items() if triple.startswith(part) or triple.endswith(part))
    return next(fitting, "gcc")


def fits(target: Target, machine: str) -> bool:
    """Whether a compiler for a machine (a triple, as `-dumpmachine` says it) links what is built for a target."""
    triple = _triple(target) or platform.machine()
    if _family(triple) != _family(machine):
        return False
    registers = triple.endswith(_HARD) or target.get("mfloat-abi") == "hard"
    return not machine.endswith(_SOFT if registers else _HARD)


def _family(triple: str) -> str:
    """The first part of a triple, under one name for all that run the same objects."""
    first = triple.lower().partition("-")[0]
    return next((family for pattern, family in _FAMILIES.items() if re.match(pattern, first)), first)


def _triple(target: Target) -> str:
    return str({**target, **target.get("host", {})}.get("mtriple", ""))
