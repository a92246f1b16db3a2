"""Arithmetic of sliding windows, as Caffe does it in C++ integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx2caffe.caffe.layers.base import Array, OnnxBuilder, Shape, require, scalar
from onnx2caffe.caffe.layers.codec import Codec, PerAxis

__all__ = ["WINDOW_CODECS", "Windows", "pad_spatial"]

WINDOW_CODECS: Mapping[str, Codec] = {
    "kernel_size": PerAxis("kernel_size", "kernel_h", "kernel_w"),
    "stride": PerAxis("stride", "stride_h", "stride_w"),
    "pad": PerAxis("pad", "pad_h", "pad_w"),
    "dilation": PerAxis("dilation"),
}


@dataclass(frozen=True)
class Windows:
    """Kernel, stride, pad and dilation: one value per spatial axis each."""

    kernel: Shape
    stride: Shape
    pad: Shape
    dilation: Shape

    @classmethod
    def of(cls, spatial: int, kernel: Shape, stride: Shape, pad: Shape, dilation: Shape = (1,)) -> Windows:
        """Spreads parameters given once over `spatial` axes.

        Raises:
            LayerError: neither one value nor one per axis, or a kernel, stride or dilation of 0.

        """
        spread = {
            name: _per_axis(name, values, spatial)
            for name, values in {"kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation}.items()
        }
        for name in ("kernel", "stride", "dilation"):
            require(all(v > 0 for v in spread[name]), f"{name} {spread[name]} must be positive")
        return cls(**spread)

    @property
    def extent(self) -> Shape:
        """The length of a dilated kernel."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def convolved(self, size: Shape) -> Shape:
        """Output sizes of a Convolution; C++ divides toward zero, so a kernel longer than the input may give 1."""
        axes = zip(size, self.extent, self.stride, self.pad, strict=True)
        return tuple(int((n + 2 * p - e) / s) + 1 for n, e, s, p in axes)

    def deconvolved(self, size: Shape) -> Shape:
        """Output sizes of a Deconvolution."""
        axes = zip(size, self.extent, self.stride, self.pad, strict=True)
        return tuple(s * (n - 1) + e - 2 * p for n, e, s, p in axes)

    def end_pads(self, size: Shape, output: Shape) -> Shape:
        """What must follow the input so that the last of `output` windows just fits; negative: surplus."""
        axes = zip(size, output, self.extent, self.stride, self.pad, strict=True)
        return tuple((o - 1) * s + e - n - p for n, o, e, s, p in axes)

    def indices(self, axis: int, outputs: int) -> Array:
        """(kernel, outputs): where each element of each window lies in the input, padded by `pad` in front."""
        inside = np.arange(self.kernel[axis]) * self.dilation[axis]
        starts = np.arange(outputs) * self.stride[axis]
        return np.asarray(inside[:, None] + starts[None, :])


def pad_spatial(g: OnnxBuilder, x: Any, begin: Sequence[int], end: Sequence[int], value: float) -> Any:
    """Pads the axes behind N and C by a constant; negative pads crop; x itself where there is nothing to do."""
    if not any((*begin, *end)):
        return x
    pads = np.array([0, 0, *begin, 0, 0, *end], np.int64)
    return g.op("Pad", x, g.const(pads), scalar(g, value))


def _per_axis(name: str, values: Shape, spatial: int) -> Shape:
    require(len(values) in {1, spatial}, f"{name} {values} is given neither once nor once per {spatial} spatial axes")
    return values * spatial if len(values) == 1 else values
