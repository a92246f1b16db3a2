"""A module as C99 that needs no TVM: TVM's own sources, made to stand alone, under a header with one function."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx2caffe.canon import Shape
from onnx2caffe.errors import Unsupported
from onnx2caffe.tvm.cmemory import overwriting, without_last_reads
from onnx2caffe.tvm.program import Program, Reference, Type

__all__ = [
    "BUILD",
    "MAKEFILE",
    "Argument",
    "Interface",
    "build_files",
    "c_type",
    "file_names",
    "identifier",
    "interface",
    "renamed",
    "sources",
]

_TYPES = {"float32": "float", "float64": "double", "bool": "bool"}
_RUNTIME = re.compile(r"\bTVM(?:Func|Mod|API|Backend|Array)\w+(?=\()")
_PLACED = re.compile(r'__attribute__\(\(section\("[^"]*"\),\s*(.*?)\)\)')
_INCLUDE = re.compile(r'^#include ["<](?:tvm/runtime/\w+|tvmgen_\w+)\.h[">]\n', re.MULTILINE)
_ADDRESSES = re.compile(r"(?:^ +void\* \w+ = \(&\(\w+\[\d+\]\)\);\n)+", re.MULTILINE)


@dataclass(frozen=True)
class Argument:
    """An argument of the function: its name, the tensor it holds, and that one's type."""

    name: str
    tensor: str
    type: Type


@dataclass(frozen=True)
class Interface:
    """What the header declares: `name`_run, with the inputs first, then the outputs."""

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    same: tuple[int, ...]
    """For each output the first output that has the same numbers."""

    @property
    def function(self) -> str:
        """The name of the function."""
        return f"{self.name}_run"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All arguments, in order."""
        return self.inputs + self.outputs


def identifier(text: str) -> str:
    """A C identifier after any text."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
    return plain if plain[:1].isalpha() else f"net_{plain}"


def interface(
    name: str, program: Program, inputs: Iterable[tuple[str, Type]], outputs: Iterable[tuple[str, Type]]
) -> Interface:
    """The interface of a program with these tensors; names become identifiers, each used once."""
    taken: set[str] = set()

    def arguments(prefix: str, tensors: Iterable[tuple[str, Type]]) -> tuple[Argument, ...]:
        return tuple(Argument(_unused(f"{prefix}_{tensor}", taken), tensor, kind) for tensor, kind in tensors)

    return Interface(identifier(name), arguments("in", inputs), arguments("out", outputs), _same(program))


def _unused(text: str, taken: set[str]) -> str:
    plain = found = identifier(text)
    count = 1
    while found in taken:
        count += 1
        found = f"{plain}_{count}"
    taken.add(found)
    return found


def renamed(program: Program) -> Program:
    """The program with inputs whose names, as fields of a C struct, are neither keywords nor macros nor weights'.

    A result that is several outputs, in one shape or in several, stands in it once.
    """
    inputs = [replace(given, name=_field(number)) for number, given in enumerate(program.inputs)]
    return replace(program, inputs=inputs, outputs=[program.outputs[number] for number in sorted({*_same(program)})])


def _same(program: Program) -> tuple[int, ...]:
    """For each output the first one with the same numbers, of which alone this TVM writes the memory."""
    numbers = [_reshaped(program, output) for output in program.outputs]
    return tuple(numbers.index(one) for one in numbers)


def _reshaped(program: Program, reference: Reference) -> Reference:
    """What a value is in another shape: to TVM's planner a reshape has no memory of its own."""
    while "call" in reference and (call := program.calls[reference["call"]]).fn == "reshape":
        reference = call.args[0]
    return reference


def _field(number: int) -> str:
    return f"_in{number}"


def file_names(name: str) -> dict[str, str]:
    """What the files of an interface are called: as its function, for a model may be called `math` as a header is."""
    return {
        "header": f"{name}_run.h",
        "c": f"{name}_run.c",
        "operators": f"{name}_run_operators.c",
        "private": f"{name}_run_private.h",
    }


def sources(archive: Path, face: Interface) -> dict[str, str]:
    """The files of a module.

    Args:
        archive: TVM's sources of the `renamed` program: the entry, then the operators.
        face: its interface.

    Raises:
        Unsupported: its C would call TVM's runtime, or may overwrite what it reads.

    """
    with tarfile.open(archive) as tar:
        entry, operators = (_text(tar, member) for member in ("lib0.c", "lib1.c"))
    if calls := sorted({*_RUNTIME.findall(entry + operators)}):
        raise Unsupported(
            f"plain C has no {', '.join(calls)}, which TVM's C calls",
            "a library has it: --target with a machine instead of c",
        )
    if unsafe := sorted(overwriting(operators)):
        raise Unsupported(
            f"TVM's plan of memory may let {', '.join(unsafe)} overwrite what it still reads",
            "a library has no such plan: --target with a machine instead of c",
        )
    names = file_names(face.name)
    include = f'#include "{names["private"]}"\n'
    return {
        names["header"]: _header(face),
        names["private"]: _private(face),
        names["c"]: f"{include}{_own(entry)}\n{_entry(face)}",
        names["operators"]: f"{include}{_own(without_last_reads(operators))}",
    }


def _text(tar: tarfile.TarFile, name: str) -> str:
    file = tar.extractfile(name)
    assert file is not None, f"{name} is no file"
    return file.read().decode()


def _own(text: str) -> str:
    """A source without TVM's headers, its sections, which linker scripts may not have, and its last semicolon.

    A truth is a byte to one of its functions and a bool to the next. gcc warns of bytes that are packed, and aligned
    constants stand where they do without. Addresses come in another order every time.
    """
    plain = _PLACED.sub(_aligned, _INCLUDE.sub("", text)).replace("bool*", "int8_t*").replace("((packed, ", "((")
    plain = _ADDRESSES.sub(lambda run: "".join(sorted(run[0].splitlines(keepends=True))), plain)
    return plain.rstrip().removesuffix(";").rstrip() + "\n"


def _aligned(placed: re.Match[str]) -> str:
    return f"__attribute__(({placed[1]}))" if placed[1] else ""


def c_type(kind: Type) -> str:
    """What C calls the elements of a tensor."""
    return _TYPES.get(kind.dtype, f"{kind.dtype}_t")


def _parameters(face: Interface) -> str:
    constant = [f"const {c_type(a.type)} *{a.name}" for a in face.inputs]
    return ", ".join([*constant, *(f"{c_type(a.type)} *{a.name}" for a in face.outputs)])


def _comment(argument: Argument) -> str:
    """A line on an argument; a tensor's name may hold anything."""
    tensor = (
        argument.tensor.encode("unicode_escape")
        .decode()
        .replace("*/", "*\\/")
        .replace("/*", "/\\*")
        .replace("??", "?\\?")
    )
    return f" * {argument.name}: {tensor}, {_shown(argument.type.shape)} {c_type(argument.type)}"


def _shown(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "1"


def _size(shape: Shape) -> int:
    size = 1
    for dim in shape:
        size *= dim
    return size


def _header(face: Interface) -> str:
    comments = "\n".join(_comment(argument) for argument in face.arguments)
    sizes = ",\n".join(f"    {face.name}_{a.name}_size = {_size(a.type.shape)}" for a in face.arguments)
    return f"""\
#ifndef ONNX2CAFFE_{face.name}_H
#define ONNX2CAFFE_{face.name}_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Elements of the arguments of {face.function}. */
enum {{
{sizes}
}};

/*
 * Compute the outputs of the inputs, dense arrays in C order:
 *
{comments}
 *
 * Gives 0. Its memory is static: one call at a time.
 */
int {face.function}({_parameters(face)});

#ifdef __cplusplus
}}
#endif

#endif
"""


def _outputs(face: Interface) -> list[str]:
    """What TVM calls the outputs, each tensor once."""
    count = len({*face.same})
    return ["output"] if count == 1 else [f"output{number}" for number in range(count)]


def _private(face: Interface) -> str:
    inputs = "\n".join(f"    void *{_field(number)};" for number in range(len(face.inputs))) or "    char none;"
    outputs = "\n".join(f"    void *{name};" for name in _outputs(face))
    prefix = f"tvmgen_{face.name}"
    return f"""\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define TVM_DLL

/* How TVM writes these numbers. */
#define inff INFINITY
#define nanf NAN
#define inf INFINITY
#define nan NAN

struct {prefix}_inputs {{
{inputs}
}};

struct {prefix}_outputs {{
{outputs}
}};

int32_t {prefix}_run(struct {prefix}_inputs *inputs, struct {prefix}_outputs *outputs);
"""


def _entry(face: Interface) -> str:
    prefix = f"tvmgen_{face.name}"
    inputs = ", ".join(f"(void *){a.name}" for a in face.inputs) or "0"
    outputs = ", ".join(face.outputs[number].name for number in sorted({*face.same}))
    copies = [
        f"    memcpy({a.name}, {face.outputs[first].name}, sizeof *{a.name} * {face.name}_{a.name}_size);\n"
        for number, (a, first) in enumerate(zip(face.outputs, face.same, strict=True))
        if first != number
    ]
    call = f"{prefix}_run(&inputs, &outputs)"
    end = f"    int code = {call};\n{''.join(copies)}    return code;" if copies else f"    return {call};"
    return f"""\
#include "{file_names(face.name)["header"]}"

#include <string.h>

int {face.function}({_parameters(face)})
{{
    struct {prefix}_inputs inputs = {{{inputs}}};
    struct {prefix}_outputs outputs = {{{outputs}}};
{end}
}}
"""


MAKEFILE = "Makefile"
BUILD = "build"
"""The folder, beside the sources, that the Makefile builds in."""


def build_files(library: str, names: Sequence[str]) -> Mapping[str, str]:
    """A Makefile and a CMakeLists.txt that build `lib<library>.a` of the interfaces of these names.

    `library` is a target of CMake too: no name that CMake keeps for itself (`all`), nor one of another library (`m`).
    """
    files = [file_names(name) for name in names]
    units = [file[what] for file in files for what in ("c", "operators")]
    headers = [file[what] for file in files for what in ("header", "private")]
    objects = " ".join(f"{BUILD}/{unit.removesuffix('.c')}.o" for unit in units)
    made = f"{BUILD}/lib{library}.a"
    makefile = f"""\
# {made}. For a board: make CROSS=arm-himix200-linux- (the beginning of its tools' names).
CC = $(CROSS)gcc
AR = $(CROSS)ar
CFLAGS ?= -O3

{made}: {objects}
\trm -f $@
\t$(AR) rc $@ $^
\t$(CROSS)ranlib $@

# One memory holds values of several types, one after another.
{BUILD}/%.o: %.c {" ".join(headers)} {BUILD}/how
\t$(CC) -std=c99 -fno-strict-aliasing $(CFLAGS) -c -o $@ $<

# What another compiler built, or other flags, is built anew.
{BUILD}/how: FORCE
\t@mkdir -p {BUILD}
\t@echo '$(CC) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CFLAGS)' > $@

clean:
\trm -f {made} {objects} {BUILD}/how

.PHONY: clean FORCE
"""
    cmake = f"""\
cmake_minimum_required(VERSION 3.5)
project({library} C)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library({library} STATIC {" ".join(units)})
set_target_properties({library} PROPERTIES C_STANDARD 99)
# One memory holds values of several types, one after another.
target_compile_options({library} PRIVATE -fno-strict-aliasing)
target_include_directories({library} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries({library} PUBLIC m)
"""
    return {MAKEFILE: makefile, "CMakeLists.txt": cmake}
