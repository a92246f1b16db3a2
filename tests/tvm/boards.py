"""C for a board: cross-compiled by the Makefile of an export, run under qemu with whatever arrays."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onnx2caffe.tvm.csource import Argument, Interface, c_type, file_names
from onnx2caffe.tvm.program import Type
from tests.ops.harness import Array

_MAIN = """\
#include <stdio.h>
#include "{header}"

static {inputs};
static {outputs};

int main(void)
{{
    FILE *in = fopen("inputs.bin", "rb"), *out = fopen("outputs.bin", "wb");
    int bad = !in || !out;
{read}
    bad |= {function}({arguments});
{write}
    return bad | fclose(out);
}}
"""


@dataclass(frozen=True)
class Machine:
    """A kind of board: the prefix of its tools, further flags, its qemu, and what Debian calls them."""

    cross: str
    flags: str
    qemu: tuple[str, ...]
    packages: str

    @property
    def missing(self) -> str:
        """What to install; "" where all is there."""
        tools = [f"{self.cross}gcc", "make", *self.qemu[:1]]
        return "" if all(map(shutil.which, tools)) else f"apt-get install make {self.packages}"


MACHINES = {
    "host": Machine("", "", (), "gcc"),
    "softfp": Machine(
        "arm-linux-gnueabi-",
        "-march=armv7-a -mfpu=neon-vfpv4 -mfloat-abi=softfp",
        ("qemu-arm-static", "-cpu", "cortex-a7"),
        "gcc-arm-linux-gnueabi libc6-dev-armel-cross qemu-user-static",
    ),
    "armhf": Machine(
        "arm-linux-gnueabihf-",
        "",
        ("qemu-arm-static", "-cpu", "cortex-a7"),
        "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static",
    ),
    "aarch64": Machine(
        "aarch64-linux-gnu-",
        "",
        ("qemu-aarch64-static",),
        "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static",
    ),
}


def interface(
    described: Mapping[str, object], types: Mapping[str, tuple[str, Sequence[int]]], outputs: int
) -> Interface:
    """The interface of a function as map.json describes it; `types`: tensor -> dtype and shape."""
    arguments = [
        Argument(name, tensor, Type(types[tensor][0], tuple(types[tensor][1])))
        for name, tensor in described["arguments"].items()  # type: ignore[attr-defined]
    ]
    split = len(arguments) - outputs
    name = str(described["function"]).removesuffix("_run")
    return Interface(name, tuple(arguments[:split]), tuple(arguments[split:]), tuple(range(outputs)))


def run(folder: Path, face: Interface, feeds: Mapping[str, Array], machine: Machine, flags: str = "-O2") -> list[Array]:
    """The outputs of the C in `folder`, built with its Makefile for a machine and run there."""
    library = next(
        word
        for word in (folder / "Makefile").read_text().split()
        if word.startswith("build/lib") and word.endswith(".a")
    )
    make = ["make", "-s", f"CROSS={machine.cross}", f"CFLAGS={flags} -Wall -Werror {machine.flags}", library]
    _ran(make, folder)
    (folder / "main.c").write_text(_main(face))
    compiled = [f"{machine.cross}gcc", *machine.flags.split(), "-std=c99", "-Wall", "-Werror", "-static", "-o", "app"]
    _ran([*compiled, "main.c", library, "-lm"], folder)
    data = [np.ascontiguousarray(feeds[a.tensor], a.type.dtype).tobytes() for a in face.inputs]
    (folder / "inputs.bin").write_bytes(b"".join(data))
    _ran([*machine.qemu, "./app"], folder)
    found = (folder / "outputs.bin").read_bytes()
    results, start = [], 0
    for a in face.outputs:
        size = int(np.prod(a.type.shape, dtype=np.int64)) * np.dtype(a.type.dtype).itemsize
        results.append(np.frombuffer(found[start : start + size], a.type.dtype).reshape(a.type.shape))
        start += size
    assert start == len(found)
    _ran(["make", "-s", "clean"], folder)
    return results


def _main(face: Interface) -> str:
    def declared(arguments: Sequence[Argument]) -> str:
        return ";\nstatic ".join(f"{c_type(a.type)} {a.name}[{face.name}_{a.name}_size]" for a in arguments)

    def each(arguments: Sequence[Argument], call: str) -> str:
        return "\n".join(
            f"    bad |= {call.format(a.name, f'{face.name}_{a.name}_size')} != {face.name}_{a.name}_size;"
            for a in arguments
        )

    return _MAIN.format(
        header=file_names(face.name)["header"],
        inputs=declared(face.inputs),
        outputs=declared(face.outputs),
        read=each(face.inputs, "fread({0}, sizeof *{0}, {1}, in)"),
        function=face.function,
        arguments=", ".join(a.name for a in face.arguments),
        write=each(face.outputs, "fwrite({0}, sizeof *{0}, {1}, out)"),
    )


def _ran(command: Sequence[str], folder: Path) -> None:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not ran.returncode, f"{' '.join(command)}: {ran.returncode}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}"
