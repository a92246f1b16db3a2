"""A program that loads a library of Relay and runs it: TVM's runtime, compiled of the package's sources.

    python -m tests.tvm.arm.runtime MACHINE FOLDER [CROSS]

makes FOLDER/app for a machine of tests/tvm/boards.py; CROSS: the prefix of an SDK's tools instead of Debian's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from onnx2caffe.runtimes.setup.tvm import environment_python
from tests.ops.harness import Array
from tests.tvm.boards import MACHINES, Machine

_UNITS = """
c_runtime_api container cpu_device_api workspace_pool library_module module ndarray object registry thread_pool
threading_backend dso_library system_library file_utils logging memory/memory_manager const_loader_module builtin_fp16
graph_executor/graph_executor graph_executor/graph_executor_factory
""".split()
_UNITS_OPENCL = "profiling source_utils opencl/opencl_device_api opencl/opencl_module opencl/texture_pool".split()
_PLACES_OPENCL = ("3rdparty/OpenCL-Headers", "src/runtime")
_FLAGS_OPENCL = ["-DDEVICE=kDLOpenCL", "-DCL_TARGET_OPENCL_VERSION=220"]

_SPAN = """\
#ifndef SPAN_H
#define SPAN_H
#include <cstddef>
#include <iterator>
namespace tvm { namespace support {
// The one header that the package lacks: a range of W, seen as T.
template <typename W, typename T> class Span {
 public:
  struct iterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T;
    W* at;
    T operator*() const { return T(*at); }
    iterator& operator++() { ++at; return *this; }
    bool operator==(const iterator& other) const { return at == other.at; }
    bool operator!=(const iterator& other) const { return at != other.at; }
  };
  Span(W* begin, W* end) : begin_(begin), end_(end) {}
  iterator begin() const { return {begin_}; }
  iterator end() const { return {end_}; }
 private:
  W *begin_, *end_;
};
} }
#endif
"""

_MAIN = """\
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>
#include <cstdio>
#include <cstdlib>
using namespace tvm::runtime;

#ifndef DEVICE
#define DEVICE kDLCPU
#endif

// app LIBRARY INPUT INPUTS.BIN OUTPUTS.BIN DIM...: one float input, all outputs one after another.
int main(int argc, char** argv) {
  DLDevice here{kDLCPU, 0}, device{DEVICE, 0};
  std::vector<int64_t> dims;
  for (int i = 5; i < argc; ++i) dims.push_back(std::atoll(argv[i]));
  NDArray input = NDArray::Empty(ShapeTuple(dims), DLDataType{kDLFloat, 32, 1}, here);
  size_t size = GetDataSize(*input.operator->());
  FILE* in = std::fopen(argv[3], "rb");
  if (!in || std::fread(input->data, 1, size, in) != size) return 2;
  Module graph = Module::LoadFromFile(argv[1]).GetFunction("default")(device);
  graph.GetFunction("set_input")(std::string(argv[2]), input);
  graph.GetFunction("run")();
  int count = graph.GetFunction("get_num_outputs")();
  FILE* out = std::fopen(argv[4], "wb");
  for (int i = 0; i < count; ++i) {
    NDArray made = graph.GetFunction("get_output")(i), output = made.CopyTo(here);
    size_t bytes = GetDataSize(*output.operator->());
    if (std::fwrite(output->data, 1, bytes, out) != bytes) return 3;
  }
  return std::fclose(out);
}
"""


def main(name: str, folder: str, *cross: str) -> None:
    """Build the program, as the command line asks."""
    machine = replace(MACHINES[name], cross=cross[0]) if cross else MACHINES[name]
    Path(folder).mkdir()
    print(build(Path(folder), package(), machine))


def package() -> Path:
    """The package `tvm` that has Relay and its runtime's sources."""
    python = environment_python("relay")
    assert python is not None, "onnx2caffe setup relay"
    (found,) = python.parents[1].glob("lib/python*/site-packages/tvm")
    return found


def build(folder: Path, tvm: Path, machine: Machine, *, opencl: bool = False, level: str = "-O1") -> Path:
    """The program, built in `folder` of the sources in the package `tvm`; `opencl`: for what runs on such a device."""
    (folder / "tvm" / "support").mkdir(parents=True)
    (folder / "tvm" / "support" / "span.h").write_text(_SPAN)
    defines = ["#define TVM_LOG_CUSTOMIZE 0", "#define TVM_USE_LIBBACKTRACE 0"]
    defines.append("#define DMLC_USE_LOGGING_LIBRARY <tvm/runtime/logging.h>")
    includes = [f'#include "src/runtime/{unit}.cc"' for unit in (*_UNITS, *(_UNITS_OPENCL if opencl else ()))]
    (folder / "pack.cc").write_text("\n".join([*defines, *includes, ""]))
    (folder / "main.cc").write_text("\n".join([*defines, _MAIN]))
    places = [folder, tvm, *(tvm / p for p in ("include", "3rdparty/dlpack/include", "3rdparty/dmlc-core/include"))]
    command = [f"{machine.cross}g++", *machine.flags.split(), "-std=c++17", level, "-w", "-Wno-psabi"]
    command += ["-o", str(folder / "app")]
    places += [tvm / "3rdparty" / "compiler-rt", *((tvm / p for p in _PLACES_OPENCL) if opencl else ())]
    command += [*(_FLAGS_OPENCL if opencl else ()), *(f"-I{place}" for place in places)]
    sources = [str(folder / name) for name in ("pack.cc", "main.cc")]
    libraries = ["-ldl", "-pthread", *(["-lOpenCL"] if opencl else ())]
    subprocess.run([*command, *sources, *libraries], check=True)
    return folder / "app"


def run(
    app: Path, library: Path, inputs: Mapping[str, Array], outputs: Sequence[tuple[int, ...]], machine: Machine
) -> list[Array]:
    """The library's outputs (float32, of these shapes) of its one input, under the machine's qemu if it has one."""
    ((name, value),) = inputs.items()
    given, found = app.with_name("inputs.bin"), app.with_name("outputs.bin")
    given.write_bytes(value.astype(np.float32).tobytes())
    sysroot = ["-L", f"/usr/{machine.cross.removesuffix('-')}"]
    emulated = [*machine.qemu, *sysroot] if machine.qemu else []
    command = [*emulated, str(app), str(library), name, str(given), str(found), *map(str, value.shape)]
    subprocess.run(command, check=True, env={**os.environ, "TVM_NUM_THREADS": "1"})
    data = np.frombuffer(found.read_bytes(), np.float32)
    ends = np.cumsum([int(np.prod(shape)) for shape in outputs])
    assert ends[-1] == data.size
    return [part.reshape(shape) for part, shape in zip(np.split(data, ends[:-1]), outputs, strict=True)]


if __name__ == "__main__":
    main(*sys.argv[1:])
