"""What Relay's virtual machine runs, as TVM writes it: instructions of 64-bit numbers, each headed by its hash."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

__all__ = ["settled"]

_ALLOCATION = 16
"""The instruction that allocates memory: …, address, alignment, type (3), device, rank, register, the shape's sizes."""

_HEAD = struct.Struct("<3Q")
"""How many numbers follow, the hash, the instruction."""

_FIXED, _RANK = 8, 6
"""How many numbers of an allocation stand before the sizes, and which of them says how many sizes there are."""


def settled(code: bytes) -> bytes:
    """The code with 0 for the addresses in it, which are others every time.

    TVM writes where a shape stood in its memory, in place of the register that an allocation without a shape reads.
    """
    result = bytearray(code)
    for found in re.finditer(re.escape(_ALLOCATION.to_bytes(8, "little")), code):
        start = found.start() - 16
        if rest := _allocation(code, start):
            rest[0] = 0
            _HEAD.pack_into(result, start, 2 + len(rest), _hash(rest), _ALLOCATION)
            struct.pack_into(f"<{len(rest)}Q", result, start + _HEAD.size, *rest)
    return bytes(result)


def _allocation(code: bytes, start: int) -> list[int]:
    """The numbers of the allocation, of a shape, that begins at a place; none if it is something else."""
    if start < 0:
        return []
    count, key, _ = _HEAD.unpack_from(code, start)
    rank = count - 2 - _FIXED
    if rank <= 0 or start + 8 + 8 * count > len(code):
        return []
    rest = [*struct.unpack_from(f"<{_FIXED + rank}Q", code, start + _HEAD.size)]
    return rest if rest[_RANK] == rank and key == _hash(rest) else []


def _hash(rest: Sequence[int]) -> int:
    key = _ALLOCATION
    for number in rest:
        key ^= (number + 0x9E3779B9 + (key << 6) + (key >> 2)) % 2**64
    return key
