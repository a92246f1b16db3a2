"""Conv and ConvTranspose of any spatial rank.

Caffe pads both ends of an axis alike and has no output padding. What is missing is made of zero taps: a zero row in
front of a kernel shifts its windows back, one behind shortens the output. Facts: recipes §3, 6.18; caffe.md §2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onnx2caffe.caffe.layers import Bias, Convolution, Deconvolution, Im2col, Scale, Tile
from onnx2caffe.caffe.layers.base import Array, Shape
from onnx2caffe.caffe.lower.blocks import convolution, reshape, spatial_rank
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.lower.windows import Taps, axes_of, even_pads
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.windows import Axis

__all__: list[str] = []

_MOST_GROWTH = 4
"""Zero taps may make a kernel this many times larger; beyond that moving data is cheaper."""

_MOST_PRODUCTS = 2**28
"""The most floats (1 GiB) that a convolution with computed weights may spread out."""


@lowers("Conv", variant="zero_taps")
def conv(op: Op, net: Emitter) -> Blob:
    """One Convolution; uneven pads by zero taps (recipes 3.1, 3.2, 3.5, 3.6)."""
    return _learned(Convolution, op, net, op.blob(0), [even_pads(a) for a in _axes(op)])


@lowers("Conv", variant="pad_layer")
def conv_after_pad(op: Op, net: Emitter) -> Blob:
    """The pads (or, negative, the crop) as a layer of their own, then a Convolution without (recipes 3.14, 3.18)."""
    axes = _axes(op)
    return _learned(Convolution, op, net, _padded(net, op.blob(0), axes), [Taps(0)] * len(axes))


def _axes(op: Op) -> list[Axis]:
    return axes_of(op, op.shape(1)[2:])


def _padded(net: Emitter, x: Blob, axes: Sequence[Axis]) -> Blob:
    return net.recipe("zero_pad", x, [a.front for a in axes], [a.behind for a in axes])


def _learned(
    kind: type[Convolution | Deconvolution], op: Op, net: Emitter, x: Blob, taps: Sequence[Taps], *, biased: bool = True
) -> Blob:
    """The layer with the node's weights, widened by zero taps, and its bias."""
    weights = _widened(op.need_const(1, "the weights"), taps)
    bias = op.const(2) if biased else None
    axes = _axes(op)
    layer = kind(
        num_output=op.outputs[0][1],
        kernel_size=weights.shape[2:],
        stride=tuple(a.stride for a in axes),
        pad=tuple(t.pad for t in taps),
        dilation=tuple(a.dilation for a in axes),
        group=op.attribute("group"),
        bias_term=bias is not None,
        blobs=(weights,) if bias is None else (weights, bias),
    )
    y = net.either(lambda: _placed(net, x, layer), lambda: _on_plane(net, x, layer))
    return _with_computed_bias(op, net, y) if biased else y


def _placed(net: Emitter, x: Blob, layer: Convolution | Deconvolution) -> Blob:
    return convolution(net, x, layer) if isinstance(layer, Convolution) else net(layer, x)


def _on_plane(net: Emitter, x: Blob, layer: Convolution | Deconvolution) -> Blob:
    """One spatial axis as the columns of a map, or as its rows where it is too long for that (recipes 3.5)."""
    if len(x.shape) != 3:
        raise Refused(f"shape {list(x.shape)} has not one spatial axis")
    return net.either(lambda: _with_flat_axis(net, x, layer, 0), lambda: _with_flat_axis(net, x, layer, 1))


def _with_flat_axis(net: Emitter, x: Blob, layer: Convolution | Deconvolution, flat: int) -> Blob:
    """The layer with spatial axis `flat` of size 1 more than its bottom has."""

    def with_one(numbers: Shape, one: int) -> Shape:
        return (*numbers[:flat], one, *numbers[flat:])

    weights, *bias = layer.blobs
    on_plane = replace(
        layer,
        kernel_size=with_one(layer.kernel_size, 1),
        stride=with_one(layer.stride, 1),
        pad=with_one(layer.pad, 0),
        dilation=with_one(layer.dilation, 1),
        blobs=(np.expand_dims(weights, 2 + flat), *bias),
    )
    y = _placed(net, reshape(net, x, (*x.shape[:2], *with_one(x.shape[2:], 1))), on_plane)
    return reshape(net, y, (*y.shape[:2], y.shape[3 - flat]))


def _with_computed_bias(op: Op, net: Emitter, y: Blob) -> Blob:
    """Adds input 2 when the net computes it."""
    return y if not op.has(2) or op.const(2) is not None else net(Bias(axis=1), y, op.blob(2))


def _widened(weights: Array, taps: Sequence[Taps]) -> Array:
    """The weights with the zero taps.

    Raises:
        Refused: they make the kernel many times larger.

    """
    extra = [(t.front, t.behind) for t in taps]
    if not any(map(any, extra)):
        return weights
    kernel = weights.shape[2:]
    larger = [k + a + b for k, (a, b) in zip(kernel, extra, strict=True)]
    if math.prod(larger) > _MOST_GROWTH * math.prod(kernel):
        raise Refused(f"uneven pads by zero taps turn kernel {kernel} into {tuple(larger)}")
    return np.pad(weights, [(0, 0), (0, 0), *extra])


@lowers("Conv", variant="im2col")
def conv_with_computed_weights(op: Op, net: Emitter) -> Blob:
    """Weights from the net: every window as channels, times the weights, summed by ones (recipes 6.18, 6.18b)."""
    if op.const(1) is not None:
        raise Refused("the weights are constant")
    x, weights = op.blob(0), op.blob(1)
    if (rank := spatial_rank(x)) > 2:
        raise Refused(f"weights computed in the net: Im2col has two spatial axes, the input has {rank}")
    flat = [Axis(1, 1, 1)] * (2 - rank)
    maps = reshape(net, x, (*x.shape[:2], *(a.size for a in flat), *x.shape[2:]))
    y = _sum_of_products(net, maps, weights, [*flat, *_axes(op)], op.attribute("group"))
    return _with_computed_bias(op, net, reshape(net, y, op.outputs[0]))


def _sum_of_products(net: Emitter, x: Blob, weights: Blob, axes: Sequence[Axis], group: int) -> Blob:
    outputs, terms = weights.shape[0], math.prod(weights.shape[1:])
    columns = _columns(net, x, axes)
    batch, _, height, width = columns.shape
    if (products := batch * outputs * terms * height * width) > _MOST_PRODUCTS:
        raise Refused(f"weights computed in the net would take {products} products at once")
    if outputs > group:
        columns = reshape(net, columns, (batch, group, terms, height * width))
        columns = net(Tile(axis=2, tiles=outputs // group), columns)
        columns = reshape(net, columns, (batch, outputs * terms, height, width))
    scaled = net(Scale(axis=1), columns, reshape(net, weights, (outputs * terms,)))
    ones = np.ones((outputs, terms, 1, 1), np.float32)
    layer = Convolution(num_output=outputs, kernel_size=(1, 1), group=outputs, bias_term=False, blobs=(ones,))
    return net(layer, scaled)


def _columns(net: Emitter, x: Blob, axes: Sequence[Axis]) -> Blob:
    """(N, C·kh·kw, H', W'): the windows as channels."""
    even = all(a.front == a.behind >= 0 for a in axes)
    layer = Im2col(
        kernel_size=tuple(a.kernel for a in axes),
        stride=tuple(a.stride for a in axes),
        pad=tuple(a.front if even else 0 for a in axes),
        dilation=tuple(a.dilation for a in axes),
    )
    return net(layer, x if even else _padded(net, x, axes))


@lowers("ConvTranspose", variant="zero_taps")
def conv_transpose(op: Op, net: Emitter) -> Blob:
    """One Deconvolution; uneven pads and output padding by zero taps (recipes 3.10)."""
    return _learned(Deconvolution, op, net, op.blob(0), [_even_cuts(a) for a in _cut_axes(op)])


@lowers("ConvTranspose", variant="crop")
def conv_transpose_then_crop(op: Op, net: Emitter) -> Blob:
    """A Deconvolution with the pads that both ends share, then a crop of the rest (recipes 3.10)."""
    taps, front, behind = [], [], []
    for axis in _cut_axes(op):
        before, after = (max(0, math.ceil(-cut / axis.dilation)) for cut in (axis.front, axis.behind))
        first, last = axis.front + before * axis.dilation, axis.behind + after * axis.dilation
        taps.append(Taps(min(first, last), before, after))
        front.append(first - taps[-1].pad)
        behind.append(last - taps[-1].pad)
    return net.recipe("crop", _learned(Deconvolution, op, net, op.blob(0), taps), front, behind)


@lowers("ConvTranspose", variant="pad_layer")
def conv_transpose_then_pad(op: Op, net: Emitter) -> Blob:
    """A Deconvolution without pads, then the crop, or the output padding as zeros, and then the bias (recipes 3.10)."""
    axes = _cut_axes(op)
    y = _learned(Deconvolution, op, net, op.blob(0), [Taps(0)] * len(axes), biased=False)
    y = net.recipe("zero_pad", y, [-a.front for a in axes], [-a.behind for a in axes])
    bias = op.const(2)
    return _with_computed_bias(op, net, y) if bias is None else net(Bias(axis=1, blobs=(bias,)), y)


def _cut_axes(op: Op) -> list[Axis]:
    """The axes of a ConvTranspose; `behind` is what is cut off the end: pads less output padding, maybe negative."""
    padding = op.attribute("output_padding")
    return [replace(a, behind=a.behind - more) for a, more in zip(_axes(op), padding, strict=True)]


def _even_cuts(axis: Axis) -> Taps:
    """The least pad that zero taps can shorten to the cuts of the axis."""
    d, least = axis.dilation, max(axis.front, axis.behind, 0)
    for pad in range(least, least + d):
        before, after = pad - axis.front, pad - axis.behind
        if before % d == after % d == 0:
            return Taps(pad, before // d, after // d)
    raise Refused(f"pads {axis.front}, {axis.behind} cannot be made even by zero taps of dilation {d}")
