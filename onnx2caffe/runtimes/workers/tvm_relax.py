"""Programs as Relax modules (TVM as it is today)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from tvm_program import CallFault, bare, last_words, looked_up, mismatch, resolved, saved

import tvm
from tvm import relax, tirx
from tvm.support import cc

__all__ = ["Module"]


class Module:
    """A program as a Relax module; weights are parameters until it is built."""

    def __init__(self, program: dict[str, Any], constants: list[Any]) -> None:
        """Make the module.

        Raises:
            CallFault: TVM refuses a call, or infers another type for it.

        """
        self._program = program
        self._arrays = constants
        self._weights = {
            constant["name"]: tvm.runtime.tensor(array)
            for constant, array in zip(program["constants"], constants, strict=True)
            if constant["name"]
        }
        self._module = self._made(program["outputs"])
        self._executable: Any = None

    def _made(self, outputs: list[dict[str, int]]) -> Any:
        """The module that gives these results."""
        inputs = [relax.Var(i["name"], relax.TensorType(i["shape"], i["dtype"])) for i in self._program["inputs"]]
        constants = [
            relax.Var(c["name"], relax.TensorType(array.shape, str(array.dtype)))
            if c["name"]
            else relax.const(array, str(array.dtype))
            for c, array in zip(self._program["constants"], self._arrays, strict=True)
        ]
        results: list[Any] = []

        def value(reference: dict[str, int]) -> Any:
            if "input" in reference:
                return inputs[reference["input"]]
            if "constant" in reference:
                return constants[reference["constant"]]
            result = results[reference["call"]]
            return result[reference["item"]] if "item" in reference else result

        builder = relax.BlockBuilder()
        weights = [c for c in constants if isinstance(c, relax.Var)]
        with builder.function("main", [*inputs, *weights], attrs={"num_input": len(inputs)}):
            with builder.dataflow():
                for number, call in enumerate(self._program["calls"]):
                    results.append(_called(builder, number, call, value))
                wanted = [value(reference) for reference in outputs]
                body = builder.emit_output(wanted[0] if len(wanted) == 1 else relax.Tuple(wanted))
            builder.emit_func_output(body)
        return builder.get()

    def build(self, target: dict[str, Any], opt_level: int, outputs: list[dict[str, int]] | None) -> None:
        """Compile; `outputs`: other results than the program's own."""
        module = self._module if outputs is None else self._made(outputs)
        module = relax.transform.BindParams("main", self._weights)(module)
        module = relax.transform.DecomposeOpsForInference()(module)
        with tvm.transform.PassContext(opt_level=opt_level):
            self._executable = tvm.compile(module, target=tvm.target.Target(target))

    def run(self, arrays: list[Any]) -> list[Any]:
        """Run what was built for this machine: one array per input, in order; one per output."""
        machine = relax.VirtualMachine(self._executable, tvm.cpu())
        result = machine["main"](*(tvm.runtime.tensor(array) for array in arrays))
        return [result.numpy()] if hasattr(result, "numpy") else [item.numpy() for item in result]

    def write(self, stem: str) -> None:
        """Write the module as text, as JSON, and its weights."""
        Path(stem + ".txt").write_text(self._module.script(show_meta=True), encoding="utf-8")
        Path(stem + ".json").write_text(tvm.ir.save_json(self._module), encoding="utf-8")
        with Path(stem + ".params").open("wb") as file:
            file.writelines(saved(self._weights, tvm.runtime.save_param_dict))

    def write_library(self, path: str, linker: str | None) -> None:
        """Write what was built: objects to a .tar, else linked, by `linker` for another machine."""
        self._executable.export_library(path, fcompile=cc.cross_compiler(linker, **bare()) if linker else None)


def compiler() -> str | None:
    """The C++ compiler that links libraries, if there is one."""
    found = cc.get_cc()
    return str(found) if found else None


def _called(builder: Any, number: int, call: dict[str, Any], value: Any) -> Any:
    """The result of a call: a variable, or a list of them."""
    args, attributes = resolved(call["args"], value), resolved(list(call["attrs"].values()), value)
    try:
        result = builder.emit(looked_up(relax.op, call["fn"])(*args, **dict(zip(call["attrs"], attributes))))  # noqa: B905
        results = (
            [builder.emit(relax.TupleGetItem(result, i)) for i in range(len(call["types"]))]
            if call["several"]
            else [result]
        )
        results = [_sized(builder, one, *wanted) for one, wanted in zip(results, call["types"])]  # noqa: B905
        types = [_type(one) for one in results]
    except Exception as problem:
        raise CallFault(number, last_words(problem)) from problem
    if text := mismatch(call["types"], types):
        raise CallFault(number, text)
    return results if call["several"] else results[0]


def _sized(builder: Any, variable: Any, dtype: str, shape: list[int]) -> Any:
    """A result, with a name for each size that depends on data; running it checks the sizes that are known."""
    if -1 not in shape:
        return variable
    dims = [tirx.Var(f"n{axis}", "int64") if size < 0 else size for axis, size in enumerate(shape)]
    return builder.match_cast(variable, relax.TensorType(dims, dtype))


def _type(variable: Any) -> Type:
    inferred = variable.ty
    return str(inferred.dtype), tuple(int(d) if isinstance(d, tirx.IntImm) else -1 for d in inferred.shape.values)
