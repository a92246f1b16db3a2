"""What TVM and its LLVM can build for."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

import tvm
from tvm.target.codegen import llvm_get_cpu_archlist, llvm_get_cpu_features

__all__ = ["check"]


def check(target: dict[str, Any]) -> None:
    """Raise ValueError where a target has an option, a CPU or a feature that there is not.

    LLVM ends the process at a triple that it does not know. A CPU that it does not know would become a generic one, a
    feature would be left out.
    """
    tvm.target.Target(target)
    machine = target.get("host", target)
    if machine["kind"] != "llvm":
        return
    cpus = [str(cpu) for cpu in llvm_get_cpu_archlist(tvm.target.Target(machine))]
    cpu = machine.get("mcpu")
    if cpu is not None and cpu not in cpus:
        raise ValueError(f"LLVM knows no CPU {cpu!r} for this triple{_near(str(cpu), cpus)}")
    asked = [feature[1:] for feature in machine.get("mattr", [])]
    known = _features({**machine, "mattr": [f"+{name}" for name in asked]})
    for name in asked:
        if name not in known:
            every = set().union(*(_features({**machine, "mcpu": cpu, "mattr": []}) for cpu in cpus))
            raise ValueError(f"LLVM knows no feature {name!r} (-mattr) for this triple{_near(name, sorted(every))}")


def _features(machine: Mapping[str, Any]) -> set[str]:
    """What a machine has, of what LLVM knows."""
    return {str(name) for name in llvm_get_cpu_features(tvm.target.Target(dict(machine)))}


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.3) or [*known][:5]
    return f"; near: {', '.join(near)}"
