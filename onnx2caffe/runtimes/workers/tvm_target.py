"""What TVM and its LLVM can build for."""

from __future__ import annotations

import difflib
from typing import Any

import tvm
from tvm.target.codegen import llvm_get_cpu_archlist

__all__ = ["check"]


def check(target: dict[str, Any]) -> None:
    """Raise ValueError where a target has an option or a CPU that there is not.

    LLVM ends the process at a triple that it does not know. A CPU that it does not know would become a generic one.
    """
    made = tvm.target.Target(target)
    machine = target.get("host", target)
    if machine["kind"] != "llvm":
        return
    known = [str(cpu) for cpu in llvm_get_cpu_archlist(made.host or made)]
    cpu = machine.get("mcpu")
    if cpu is not None and cpu not in known:
        near = difflib.get_close_matches(str(cpu), known, n=5, cutoff=0.3) or known[:5]
        raise ValueError(f"LLVM knows no CPU {cpu!r} for this triple; near: {', '.join(near)}")
