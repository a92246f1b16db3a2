"""One protocol for everything that runs written files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

__all__ = ["Array", "Feeds", "NetFiles", "Runtime", "Tap"]

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]


@dataclass(frozen=True)
class NetFiles:
    """A written net."""

    prototxt: Path
    caffemodel: Path


@dataclass(frozen=True)
class Tap:
    """A value to read: `blob` right after `layer` ran ("" = after the whole net)."""

    blob: str
    layer: str = ""


class Runtime(Protocol):
    """Runs written Caffe files, never in-memory intermediate objects."""

    name: str

    def version(self) -> str:
        """A short text for reports, e.g. "caffe 1.0.0 (python 3.11)"."""
        ...

    def missing(self, types: Sequence[str]) -> list[str]:
        """Those of the layer types that this runtime lacks."""
        ...

    def run(self, files: NetFiles, feeds: Sequence[Feeds], taps: Sequence[Tap]) -> list[dict[Tap, Array]]:
        """Run the net once per feed (blob name -> array, any shape of the blob's size); the tapped values, copied.

        Raises:
            RuntimeMissing: a layer type is missing.
            RuntimeCrash: the runtime's process died; the message holds its words.

        """
        ...

    def close(self) -> None:
        """Free processes and sessions."""
        ...
