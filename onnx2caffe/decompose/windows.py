"""The windows that kernels slide over an axis: what Conv, ConvTranspose and the poolings share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Axis"]

Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Axis:
    """The windows of one axis: window i covers the places i·stride - front + j·dilation, j < kernel.

    `behind`: the padding at the end. A window may stick out beyond it (ceil_mode); those places never count.
    """

    size: int
    out: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    front: int = 0
    behind: int = 0

    @property
    def span(self) -> int:
        """The places from a window's first tap to its last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def reach(self) -> int:
        """How far the last window reaches beyond the input; negative when it ends before."""
        return (self.out - 1) * self.stride + self.span - self.size - self.front

    def counts(self, *, padding: bool) -> Counts:
        """How many taps of each window lie on the input, or on input and padding."""
        start = np.arange(self.out) * self.stride - self.front
        low, high = (-self.front, self.size + self.behind) if padding else (0, self.size)
        first, stop = (np.clip(-((start - end) // self.dilation), 0, self.kernel) for end in (low, high))
        return np.asarray(stop - first)
