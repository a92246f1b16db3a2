"""OpenCL as far as tests need it: the kernels of a source, compiled by whatever device there is (PoCL has this CPU)."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from functools import cache
from typing import Any

PACKAGES = "apt-get install ocl-icd-opencl-dev pocl-opencl-icd"

_ANY_DEVICE = 0xFFFFFFFF
_BUILD_LOG = 0x1183
_KERNELS = re.compile(rb"[\t\n -~]*__kernel void[\t\n -~]*")
_NAMES = re.compile(r"__kernel void (?:__attribute__\(\(.*?\)\)\s*)?(\w+)\(")


def sources(library: bytes) -> list[str]:
    """The texts with kernels that stand in a library or its objects."""
    return [text.decode() for text in _KERNELS.findall(library)]


def names(source: str) -> list[str]:
    return _NAMES.findall(source)


class Device:
    """The first device of the first platform."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._cl = library
        for function in ("clCreateContext", "clCreateProgramWithSource", "clCreateKernel"):
            getattr(library, function).restype = ctypes.c_void_p
        platform, self._device = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
        assert library.clGetDeviceIDs(platform, ctypes.c_uint64(_ANY_DEVICE), 1, ctypes.byref(self._device), None) == 0
        error = ctypes.c_int()
        devices = (ctypes.c_void_p * 1)(self._device)
        self._context = ctypes.c_void_p(library.clCreateContext(None, 1, devices, None, None, ctypes.byref(error)))
        assert error.value == 0

    def compiled(self, source: str) -> list[str]:
        """The kernels that the device has of a source; what is wrong with it is an AssertionError."""
        error, text = ctypes.c_int(), ctypes.c_char_p(source.encode())
        program = ctypes.c_void_p(
            self._cl.clCreateProgramWithSource(self._context, 1, ctypes.byref(text), None, ctypes.byref(error))
        )
        assert error.value == 0
        devices = (ctypes.c_void_p * 1)(self._device)
        assert self._cl.clBuildProgram(program, 1, devices, None, None, None) == 0, self._log(program)
        return [name for name in names(source) if self._cl.clCreateKernel(program, name.encode(), None)]

    def _log(self, program: Any) -> str:
        log = ctypes.create_string_buffer(2**16)
        self._cl.clGetProgramBuildInfo(program, self._device, _BUILD_LOG, ctypes.c_size_t(2**16), log, None)
        return log.value.decode(errors="replace")


@cache
def device() -> Device | None:
    """The device, None where there is none."""
    found = ctypes.util.find_library("OpenCL")
    if found is None:
        return None
    try:
        return Device(ctypes.CDLL(found))
    except (AssertionError, OSError):
        return None
