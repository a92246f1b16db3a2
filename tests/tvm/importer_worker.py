"""TVM's own ONNX importer, for `tests.tvm.importer`. Run by path with a Python that has TVM and onnx, and the dialect.

A request is {"path": of a model, "names": of its feeds, "target": TVM's} with the feeds; the answer {"done": true} with
the outputs, or {"refused": text}.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ["TOPHUB_LOCATION"] = "NONE"
sys.path.insert(0, str(Path(__file__).parents[2] / "onnx2caffe" / "runtimes" / "workers"))

from frames import Channel
from tvm_program import last_words


def relay(model, feeds, target, opt_level):
    """The importer's module, built for this machine: what runs it, and what runs it and gives the outputs."""
    import tvm
    from tvm import relay as dialect
    from tvm_relay import context

    shapes = {name: array.shape for name, array in feeds.items()}
    dtypes = {name: str(array.dtype) for name, array in feeds.items()}
    module, weights = dialect.frontend.from_onnx(model, shape=shapes, dtype=dtypes, freeze_params=True)
    module = dialect.qnn.transform.CanonicalizeOps()(dialect.transform.InferType()(module))  # as every level but 0 does
    named = {parameter.name_hint for parameter in module["main"].params}
    given = {n: array for name, array in feeds.items() for n in {name, re.sub(r"\W", "_", name)} & named}
    try:
        with context(opt_level):
            return _graph(module, weights, given, tvm.target.Target(target))
    except Exception:  # shapes that depend on data, control flow: the virtual machine alone has them, with all passes
        with context(3):
            return _machine(module, weights, given, tvm.target.Target(target))


def _graph(module, weights, given, target):
    import tvm
    from tvm import relay as dialect
    from tvm.contrib import graph_executor

    runner = graph_executor.GraphModule(dialect.build(module, target=target, params=weights)["default"](tvm.cpu()))
    for name, array in given.items():
        runner.set_input(name, array)

    def outputs():
        runner.run()
        return [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]

    return runner.run, outputs


def _machine(module, weights, given, target):
    import tvm
    from tvm import relay as dialect

    machine = tvm.runtime.vm.VirtualMachine(dialect.vm.compile(module, target=target, params=weights), tvm.cpu())
    machine.set_input("main", **given)
    return machine.run, lambda: _arrays(machine.run())


def _arrays(result):
    """The arrays of a result: one, a shape, or several of these."""
    import numpy as np

    if hasattr(result, "numpy"):
        return [result.numpy()]
    items = list(result)
    if items and all(isinstance(item, int) for item in items):
        return [np.array(items)]
    return [array for item in items for array in _arrays(item)]


def relax(model, feeds, target, opt_level):
    """The importer's module, built for this machine: what runs it, and what runs it and gives the outputs."""
    import tvm
    from tvm import relax as dialect
    from tvm.relax.frontend.onnx import from_onnx

    shapes = {name: list(array.shape) for name, array in feeds.items()}
    module = from_onnx(model, shape_dict=shapes, dtype_dict={name: str(array.dtype) for name, array in feeds.items()})
    module = dialect.transform.DecomposeOpsForInference()(module)
    with tvm.transform.PassContext(opt_level=opt_level):
        executable = tvm.compile(module, target=tvm.target.Target(target))
    machine = dialect.VirtualMachine(executable, tvm.cpu())
    arrays = {re.sub(r"\W", "_", name): tvm.runtime.tensor(array) for name, array in feeds.items()}
    by_name = arrays | {f"input_{name}": array for name, array in arrays.items()}  # it names thus what begins otherwise
    given = [by_name[re.sub(r"\W", "_", parameter.name)] for parameter in module["main"].params]

    def run():
        return machine["main"](*given)

    return run, lambda: _arrays(run())


IMPORTERS = {"relay": relay, "relax": relax}


def main() -> None:
    channel = Channel()
    import onnx

    dialect = sys.argv[1]
    channel.send({"onnx": onnx.__version__})
    while (request := channel.receive()) is not None:
        header, arrays = request
        try:
            feeds = dict(zip(header["names"], arrays, strict=True))
            _, outputs = IMPORTERS[dialect](onnx.load(header["path"]), feeds, header["target"], 0)
            channel.send({"done": True}, outputs())
        except Exception as problem:
            channel.send({"refused": last_words(problem)})


if __name__ == "__main__":
    main()
