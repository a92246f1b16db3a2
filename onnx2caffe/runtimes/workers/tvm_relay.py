"""Programs as Relay modules (TVM 0.19, the last that has Relay)."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx2caffe.runtimes.workers.tvm_bytecode import settled
    from onnx2caffe.runtimes.workers.tvm_memory import KEPT
    from onnx2caffe.runtimes.workers.tvm_program import (
        CallFault,
        Type,
        bare,
        last_words,
        looked_up,
        mismatch,
        resolved,
        saved,
    )
else:
    from tvm_bytecode import settled
    from tvm_memory import KEPT
    from tvm_program import CallFault, bare, last_words, looked_up, mismatch, resolved, saved

os.environ.setdefault("TOPHUB_LOCATION", "NONE")  # else every build tries to download schedules

import tvm
from tvm import relay
from tvm.contrib import cc, graph_executor, tar
from tvm.relay.backend import te_compiler
from tvm.runtime.vm import VirtualMachine

__all__ = ["Module", "context"]

te_compiler.libinfo = functools.cache(te_compiler.libinfo)  # asked for every size of every shape, and slow

_CONFIG = {
    # Common subexpressions become `let`s, for which this TVM writes debug records that newer LLVMs refuse.
    "tir.disable_cse_tir": True,
}

_QUADRATIC = ["SimplifyExpr", "SimplifyExprPostAlterOp"]
"""Passes that infer the types of the whole module anew at every match."""

_BINDING = "ToANormalForm"
"""A pass of level 1 without which the virtual machine's compiler ends the process."""

_LABELS = "LabelOps"
"""A pass that writes numbers into the library, for a profiler, which are others every time."""

_CONFIG_C = {
    **_CONFIG,
    "tir.disable_vectorize": True,  # C has no vector types
    "tir.usmp.enable": True,  # all memory is planned ahead and static: no runtime is asked for any
    "tir.add_lower_pass": [KEPT],
}
_TWICE = "EliminateCommonSubexpr"
"""A pass after which two outputs may be one tensor, of which the C would write the first alone."""

_LIBM = ("acosh", "asinh", "atanh", "cosh", "fabs", "log1p", "nearbyint", "trunc")
"""Functions that are intrinsics to LLVM, and that the C of this TVM lacks."""

_AHEAD_OF_TIME = {"interface-api": "c", "unpacked-api": True, "workspace-byte-alignment": 16}


class Module:
    """A program as a Relay module; weights are variables until it is built."""

    def __init__(self, program: dict[str, Any], constants: list[Any]) -> None:
        """Make the module.

        Raises:
            CallFault: TVM refuses a call, or infers another type for it.

        """
        self._program = program
        self._inputs = [relay.var(i["name"], shape=i["shape"], dtype=i["dtype"]) for i in program["inputs"]]
        self._weights: dict[str, Any] = {}
        self._constants = [
            self._constant(c["name"], array) for c, array in zip(program["constants"], constants, strict=True)
        ]
        self._results: list[Any] = []
        for number, call in enumerate(program["calls"]):
            self._results.append(self._called(number, call))
        self._check()
        self._built: _Graph | _Machine

    def _constant(self, name: str, array: Any) -> Any:
        if not name:
            return relay.const(array, str(array.dtype))
        self._weights[name] = tvm.nd.array(array)
        return relay.var(name, shape=array.shape, dtype=str(array.dtype))

    def _value(self, reference: dict[str, int]) -> Any:
        if "input" in reference:
            return self._inputs[reference["input"]]
        if "constant" in reference:
            return self._constants[reference["constant"]]
        result = self._results[reference["call"]]
        return result[reference["item"]] if "item" in reference else result

    def _called(self, number: int, call: dict[str, Any]) -> Any:
        args, attributes = resolved(call["args"], self._value), resolved(list(call["attrs"].values()), self._value)
        try:
            return looked_up(relay, call["fn"])(*args, **dict(zip(call["attrs"], attributes)))  # noqa: B905
        except Exception as problem:
            raise CallFault(number, last_words(problem)) from problem

    def _module(self, values: list[Any], bare: bool = False) -> Any:
        """The module whose results are these; one value is no tuple if `bare`."""
        variables = [*self._inputs, *(c for c in self._constants if isinstance(c, relay.Var))]
        body = values[0] if bare and len(values) == 1 else relay.Tuple(values)
        return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(variables, body)))

    def _types(self, count: int) -> list[list[Type]]:
        """The types of the results of the first `count` calls."""
        calls = self._program["calls"][:count]
        lists = [
            [result[i] for i in range(len(call["types"]))] if call["several"] else [result]
            for call, result in zip(calls, self._results)  # noqa: B905
        ]
        fields = iter(self._module([value for values in lists for value in values])["main"].ret_type.fields)
        return [[_type(next(fields)) for _ in values] for values in lists]

    def _check(self) -> None:
        try:
            self._compare(len(self._program["calls"]))
        except CallFault:
            raise
        except Exception as problem:
            raise self._first_fault(problem) from problem

    def _compare(self, count: int) -> None:
        """Hold the types of the first `count` calls against what the program says."""
        for number, types in enumerate(self._types(count)):
            if text := mismatch(self._program["calls"][number]["types"], types):
                raise CallFault(number, text)

    def _first_fault(self, problem: Exception) -> CallFault:
        """The first call that is wrong: inference takes the first `good` calls and not the first `bad`."""
        good, bad = 0, len(self._program["calls"])
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self._compare(middle)
                good = middle
            except CallFault as fault:
                return fault
            except Exception as earlier:
                bad, problem = middle, earlier
        return CallFault(bad - 1, last_words(problem))

    def _wanted(self, outputs: list[dict[str, int]] | None) -> list[Any]:
        return [self._value(reference) for reference in (outputs or self._program["outputs"])]

    def build(self, target: dict[str, Any], opt_level: int, outputs: list[dict[str, int]] | None) -> None:
        """Compile; `outputs`: other results than the program's own."""
        module = self._module(self._wanted(outputs), bare=True)
        executor = _Machine if relay.ty.is_dynamic(module["main"].ret_type) else _Graph
        self._built = executor(module, tvm.target.Target(target), self._weights, opt_level)

    def run(self, arrays: list[Any]) -> list[Any]:
        """Run what was built for this machine: one array per input, in order; one per output."""
        names = [information["name"] for information in self._program["inputs"]]
        return self._built.run(dict(zip(names, arrays)))  # noqa: B905

    def write(self, stem: str) -> None:
        """Write the module as text, as JSON, and its weights."""
        module = self._module(self._wanted(None), bare=True)
        Path(stem + ".txt").write_text(module.astext(show_meta_data=False), encoding="utf-8")
        Path(stem + ".json").write_text(tvm.ir.save_json(module), encoding="utf-8")
        with Path(stem + ".params").open("wb") as file:
            file.writelines(saved(self._weights, relay.save_param_dict))

    def write_library(self, path: str, linker: str | None) -> None:
        """Write what was built: objects to a .tar, else linked, by `linker` for another machine."""
        self._built.write(path, cc.cross_compiler(linker, **bare()) if linker else None)

    def write_c(self, name: str, opt_level: int, path: str) -> None:
        """Write the module as C that needs no TVM: a .tar of sources, whose entry is `tvmgen_<name>_run`."""
        with tvm.transform.PassContext(opt_level=opt_level, config=_CONFIG_C, disabled_pass=[_TWICE]):
            library = relay.build(
                self._module(self._wanted(None), bare=True),
                target="c",
                params=self._weights,
                mod_name=name,
                runtime=relay.backend.Runtime("crt"),
                executor=relay.backend.Executor("aot", _AHEAD_OF_TIME),
            )
        library.export_library(path)


class _Graph:
    """A module built for the graph executor, which has all memory before it runs: every size is known."""

    def __init__(self, module: Any, target: Any, weights: dict[str, Any], opt_level: int) -> None:
        with context(opt_level):
            self._library = relay.build(module, target=target, params=weights)

    def write(self, path: str, linker: Any) -> None:
        self._library.export_library(path, fcompile=linker)

    def run(self, arrays: dict[str, Any]) -> list[Any]:
        runner = graph_executor.GraphModule(self._library["default"](tvm.cpu()))
        for name, array in arrays.items():
            runner.set_input(name, array)
        runner.run()
        return [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]


class _Machine:
    """A module built for the virtual machine, which asks for memory while it runs: sizes may depend on data."""

    def __init__(self, module: Any, target: Any, weights: dict[str, Any], opt_level: int) -> None:
        with context(opt_level, skipped=[_LABELS], required=[_BINDING]):
            self._library = relay.vm.compile(module, target=target, params=weights).mod

    def write(self, path: str, linker: Any) -> None:
        link = linker or (tar.tar if path.endswith(".tar") else cc.create_shared)
        code = bytes(self._library["save"]())
        clean = settled(code)

        @functools.wraps(link)
        def settling(output: str, objects: list[str], **options: Any) -> None:
            for file in map(Path, objects):
                file.write_bytes(file.read_bytes().replace(code, clean))
            link(output, objects, **options)

        self._library.export_library(path, fcompile=settling)

    def run(self, arrays: dict[str, Any]) -> list[Any]:
        machine = VirtualMachine(self._library, tvm.cpu())
        machine.set_input("main", **arrays)
        result = machine.run()
        return [result.numpy()] if hasattr(result, "numpy") else [item.numpy() for item in result]


def context(opt_level: int, skipped: Sequence[str] = (), required: Sequence[str] = ()) -> Any:
    """How to compile; at level 0 in a time that grows with the module, not with its square."""
    slow = [] if opt_level else _QUADRATIC
    passes = {"disabled_pass": [*slow, *skipped], "required_pass": [*required]}
    return tvm.transform.PassContext(opt_level=opt_level, config=_CONFIG, **passes)


def _from_libm(name: str) -> None:
    def call(operation: Any) -> Any:
        suffix = "f" if operation.dtype == "float32" else ""
        return tvm.tir.call_pure_extern(operation.dtype, name + suffix, *operation.args)

    tvm.ir.register_intrin_lowering(f"tir.{name}", "c", f=call, level=99)


for _name in _LIBM:
    _from_libm(_name)


def compiler() -> str | None:
    """The C++ compiler that links libraries, if there is one."""
    found = cc.get_cc()
    return str(found) if found else None


def _type(inferred: Any) -> Type:
    return str(inferred.dtype), tuple(-1 if isinstance(d, tvm.tir.Any) else int(d) for d in inferred.shape)
