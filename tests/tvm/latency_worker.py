"""Time our library and the importer's module in turns, for `tests.tvm.latency`. Run by path with a Python that has TVM.

Arguments: dialect, model, our library, an .npz of its inputs (by our names, then by the model's), rounds, opt level.
Prints JSON: the milliseconds of each round, ours and theirs.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from importer_worker import IMPORTERS


def relay(path, feeds):
    import tvm
    from tvm.contrib import graph_executor

    runner = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))
    for name, array in feeds.items():
        runner.set_input(name, array)
    return runner.run


def relax(path, feeds):
    import tvm
    from tvm import relax as dialect

    machine = dialect.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
    given = [tvm.runtime.tensor(array) for array in feeds.values()]
    return lambda: machine["main"](*given)


def milliseconds(run):
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    dialect, model, library, inputs, rounds, opt_level = sys.argv[1:]
    import onnx

    arrays = np.load(inputs)
    own = {name.removeprefix("own/"): arrays[name] for name in arrays.files if name.startswith("own/")}
    given = {name.removeprefix("model/"): arrays[name] for name in arrays.files if name.startswith("model/")}
    ours = {"relay": relay, "relax": relax}[dialect](library, own)
    theirs, _ = IMPORTERS[dialect](onnx.load(model), given, {"kind": "llvm"}, int(opt_level))
    times = {"ours": [], "theirs": []}
    ours(), theirs()
    for number in range(int(rounds)):
        pair = [("ours", ours), ("theirs", theirs)]
        for who, run in reversed(pair) if number % 2 else pair:
            times[who].append(milliseconds(run))
    print(json.dumps(times))


if __name__ == "__main__":
    main()
