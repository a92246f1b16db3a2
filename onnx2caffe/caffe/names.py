"""Names in a Caffe net: unique, printable, and as close to the user's own as Caffe allows."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain, count

__all__ = ["Namer", "unlike"]

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Namer:
    """Hands out names that nobody else in the net has.

    Model names are untrusted: control characters (NUL ends a C string, newlines end a log line) become `_`. Everything
    else, non-ASCII and quotes included, stays as the user wrote it.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, wish: str) -> str:
        """A name like `wish`, with `_2`, `_3` … when it is taken."""
        base = _UNPRINTABLE.sub("_", wish) or "unnamed"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def unlike(name: str, taken: Collection[str], length: int = 0) -> str:
    """`name`, or with `_2`, `_3` … behind it, so that it is not taken; of more than `length` characters the last ones.

    The end of a name tells most. `length` 0: any.
    """
    endings = chain([""], (f"_{number}" for number in count(2)))
    candidates = (name[-(length - len(ending)) :] + ending if length else name + ending for ending in endings)
    return next(candidate for candidate in candidates if candidate not in taken)
