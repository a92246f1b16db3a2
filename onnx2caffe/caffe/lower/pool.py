"""Pooling of any spatial rank.

Caffe pools 4-D blobs only, with equal pads at both ends and, in Caffe 1.0, sizes rounded up; MAX skips the padding, AVE
counts it. Whatever the node asks for, the windows Caffe makes are compared with the windows ONNX makes, axis by axis,
and the difference is cut off or divided out. Facts: recipes §2; caffe.md §3.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from onnx2caffe.caffe.layers import AbsVal, Bias, Eltwise, Pooling, Power
from onnx2caffe.caffe.layers.base import Array, LayerError, Shape
from onnx2caffe.caffe.lower.blocks import crop_by_slices, depthwise, reshape, spatial_rank
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.lower.windows import Taps, axes_of, even_pads
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.windows import Axis

__all__ = ["EXACT", "Mode", "pool_axis"]

EXACT = 2**24
"""float32 holds every integer up to this one."""

_LONGEST_KERNEL = 255
_LARGEST_WINDOW = 2**15
"""Rows of a kernel times columns of the map (nnie §1 W01, W04)."""

_LOWEST = float(np.finfo(np.float32).min)
_MOST_TAPS = 64
"""Shifted copies of one axis: each is a layer with a kernel as wide as the window."""


Mode = Literal["MAX", "AVE"]


@dataclass(frozen=True)
class Windows:
    """A pooling over the two last axes of a 4-D blob. `padding`: averages count the padding."""

    mode: Mode
    axes: tuple[Axis, Axis]
    padding: bool = False
    indices: bool = False


def _axes(op: Op) -> list[Axis]:
    return axes_of(op, op.attribute("kernel_shape"))


@lowers("MaxPool")
def max_pool(op: Op, net: Emitter) -> Sequence[Blob]:
    """The recipe "max_pool"; with Indices when something reads them (recipes 2.1–2.7, 2.12, 2.22)."""
    axes = _axes(op)
    if op.wanted(1) and any(_dilated(a) for a in axes):
        raise Refused(f"Indices with dilations {[a.dilation for a in axes]}: Caffe's Pooling has no dilation")
    values, *indices = _pool(net, op.blob(), axes, "MAX", indices=op.wanted(1))
    if len(op.outputs) == 1:
        return [values]
    if not op.wanted(1):
        return [values, Blob("", op.outputs[1])]
    return [values, _flat_indices(op, net, indices[0])]


@lowers("AveragePool")
def average_pool(op: Op, net: Emitter) -> Blob:
    """The recipe "ave_pool", padding counted or not (recipes 2.1–2.11)."""
    axes, padding = _axes(op), bool(op.attribute("count_include_pad", 0))
    if not all(a.counts(padding=padding).all() for a in axes):
        raise Refused(
            f"pads {[(a.front, a.behind) for a in axes]}: a window lies in the padding, its average is undefined"
        )
    return _pool(net, op.blob(), axes, "AVE", padding=padding)[0]


def _dilated(axis: Axis) -> bool:
    return axis.dilation > 1 and axis.kernel > 1


@lowers("LpPool")
def lp_pool(op: Op, net: Emitter) -> Blob:
    """The p-norm of every window: powers, their mean over taps and padding, times the kernel's size (recipes 2.21)."""
    axes = [replace(a, behind=max(a.behind, a.reach)) for a in _axes(op)]
    p = op.attribute("p", 2)
    (mean,) = _pool(net, _powers(net, op.blob(), p), axes, "AVE", padding=True)
    return net(Power(power=1 / p, scale=float(math.prod(a.kernel for a in axes))), mean)


@lowers("GlobalAveragePool", "GlobalMaxPool")
def global_pool(op: Op, net: Emitter) -> Blob:
    """Pooling over all spatial axes, as one map (recipes 2.15, 2.16)."""
    mode: Mode = "MAX" if op.type == "GlobalMaxPool" else "AVE"
    return reshape(net, _pool_whole(net, op.blob(), mode), op.outputs[0])


@lowers("MaxRoiPool", "RoiAlign")
def roi_pool(op: Op, net: Emitter) -> Blob:
    """Nothing: no Caffe layer samples regions as ONNX does (recipes §18)."""
    raise Refused("Caffe's ROIPooling rounds regions otherwise than ONNX, and nothing in Caffe interpolates in regions")


def _powers(net: Emitter, x: Blob, p: int) -> Blob:
    """|x|^p; p of LpPool is a positive integer."""
    if p % 2:
        x = net(AbsVal(), x)
    return x if p == 1 else net(Power(power=float(p)), x)


def _pool_whole(net: Emitter, x: Blob, mode: Mode) -> Blob:
    spatial_rank(x)
    maps = x if len(x.shape) == 4 else reshape(net, x, (*x.shape[:2], x.shape[2], math.prod(x.shape[3:])))
    return net.recipe("whole_pool", maps, mode)


@recipe("whole_pool", "global")
def pool_globally(net: Emitter, x: Blob, mode: Mode) -> Blob:
    """One Pooling over the whole of each map (recipes 2.15)."""
    return net(Pooling(pool=mode, global_pooling=True), x)


@recipe("whole_pool", "stages")
def pool_in_stages(net: Emitter, x: Blob, mode: Mode) -> Blob:
    """Columns, then rows, a factor of their number at a time (recipes 2.15, 2.16)."""
    return pool_axis(net, pool_axis(net, x, mode, 3), mode, 2)


def pool_axis(net: Emitter, x: Blob, mode: Mode, axis: int) -> Blob:
    """The maxima or averages of a map along its rows (axis 2) or columns (axis 3), as 1.

    Raises:
        Refused: the axis has a factor that is larger than a kernel may be.

    """
    most = _LONGEST_KERNEL if axis == 3 else min(_LONGEST_KERNEL, _LARGEST_WINDOW // x.shape[3])
    while (size := x.shape[axis]) > 1:
        part = next(f for f in range(max(1, min(size, most)), 0, -1) if size % f == 0)
        if part == 1:
            raise Refused(f"axis {axis} of {list(x.shape)} has no factor up to {most}")
        kernel = (part, 1) if axis == 2 else (1, part)
        x = net(Pooling(pool=mode, kernel_size=kernel, stride=kernel), x)
    return x


def _flat_indices(op: Op, net: Emitter, mask: Blob) -> Blob:
    """Caffe's mask counts within a map, ONNX over the whole tensor: each map's first index is added (recipes 2.22)."""
    shape = op.shape()
    if op.attribute("storage_order", 0):
        raise Refused("Indices with storage_order 1: Caffe's mask counts along rows")
    if math.prod(shape) > EXACT:
        raise Refused(f"Indices of a tensor of {math.prod(shape)} elements do not fit a float")
    maps = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape[:2]) * math.prod(shape[2:])
    return net(Bias(axis=0, num_axes=2, blobs=(maps,)), mask) if maps.any() else mask


def _pool(
    net: Emitter, x: Blob, axes: Sequence[Axis], mode: Mode, *, padding: bool = False, indices: bool = False
) -> tuple[Blob, ...]:
    """Pools the spatial axes two at a time: maxima and averages of boxes are separable (recipes 2.19, 2.20)."""
    if indices and len(axes) > 2:
        raise Refused(f"Indices of a pooling over {len(axes)} axes: Caffe's mask counts within a map")

    def staged(stages: Sequence[_Stage]) -> tuple[Blob, ...]:
        return _pool_stages(net, x, axes, stages, lambda pair: Windows(mode, pair, padding, indices))

    if len(axes) == 1:  # as the columns of a map, or as its rows where it is too long for that
        (batch, channels, size), (axis,) = x.shape, axes
        columns = ((batch, channels, 1, size), (_whole(1), axis))
        rows = ((batch, channels, size, 1), (axis, _whole(1)))
        return net.either(lambda: staged([columns]), lambda: staged([rows]))
    return staged(_stages(x.shape, axes))


def _pool_stages(
    net: Emitter, x: Blob, axes: Sequence[Axis], stages: Sequence[_Stage], windows: Callable[[_Pair], Windows]
) -> tuple[Blob, ...]:
    tops: tuple[Blob, ...] = (x,)
    for shape, pair in stages:
        asked = windows(pair)
        if asked.indices or any((a.kernel, a.stride, a.out) != (1, 1, a.size) for a in pair):
            tops = net.attempt(f"{asked.mode.lower()}_pool", net, reshape(net, tops[0], shape), asked)
    return tuple(reshape(net, top, (*x.shape[:2], *(a.out for a in axes))) for top in tops)


_Pair = tuple[Axis, Axis]
_Stage = tuple[Shape, _Pair]
"""The shape of a map, and how its axes are pooled."""


def _stages(shape: Shape, axes: Sequence[Axis]) -> list[_Stage]:
    """The 4-D poolings, one after the other, that pool two or three axes."""
    batch, channels, *sizes = shape
    match axes:
        case [h, w]:
            return [(shape, (h, w))]
        case [d, h, w]:
            plane = h.out * w.out
            first = (batch, channels * d.size, h.size, w.size)
            return [(first, (h, w)), ((batch, channels, d.size, plane), (d, _whole(plane)))]
    raise Refused(f"pooling over {len(sizes)} axes")


def _whole(size: int) -> Axis:
    """An axis that is not pooled."""
    return Axis(size, size, 1)


@recipe("max_pool", "pooling")
@recipe("ave_pool", "pooling")
def pooling(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """Pooling as it is, where Caffe makes as many windows as ONNX (recipes 2.1, 2.2, 2.7)."""
    return _pooling(net, x, windows, _layer(windows))


@recipe("max_pool", "floor")
@recipe("ave_pool", "floor")
def pooling_rounded_down(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """Pooling with round_mode FLOOR (recipes 2.4)."""
    return _pooling(net, x, windows, _layer(windows, round_mode="FLOOR"))


@recipe("max_pool", "every")
@recipe("ave_pool", "every")
def every_stride(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """A kernel of 1 only picks: a crop with steps (recipes 2.3)."""
    if any(a.kernel > 1 or a.front or a.reach > 0 for a in windows.axes) or windows.indices:
        raise Refused("the kernel is larger than 1")
    return (_stepped(net, x, windows, (0, 0)),)


@recipe("max_pool", "cut")
@recipe("ave_pool", "cut")
def pooling_then_cut(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """More windows than wanted, in front (uneven pads) or behind (rounding), then a crop (recipes 2.4, 2.6)."""
    if _hollow(windows):
        raise Refused("windows outside the map have no average, and one-hot weights do not hide that")
    return _cut(net, x, windows)


@recipe("ave_pool", "slices")
def pooling_then_slices(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """The same where windows may lie outside the map: what they hold is sliced off."""
    return _cut(net, x, windows)


def _hollow(windows: Windows) -> bool:
    """Whether Caffe may average over windows that lie outside the map, which gives no number."""
    return windows.mode == "AVE" and any(a.stride > a.kernel for a in windows.axes)


def _cut(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    shifts = [range(max(1, math.ceil((a.kernel - a.front) / a.stride))) for a in windows.axes]
    for shift in sorted(itertools.product(*shifts), key=sum):
        with contextlib.suppress(Refused):
            return _pooling(net, x, windows, _layer(windows, shift), shift)
    raise Refused("no even pad below the kernel gives Caffe all windows")


@recipe("max_pool", "stride1")
def pooling_then_step(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """Pooling at stride 1, where rounding does not matter, then a crop with steps (recipes 2.5)."""
    pad = [max(a.front, a.reach, 0) for a in windows.axes]
    layer = replace(_layer(windows), stride=(1, 1), pad=tuple(pad))
    front = [p - a.front for p, a in zip(pad, windows.axes, strict=True)]
    return tuple(_stepped(net, top, windows, front) for top in net.many(layer, x))


@recipe("max_pool", "taps")
def maximum_of_taps(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """Any dilation: per axis, the maximum of one shifted copy per tap (recipes 2.12)."""
    if windows.indices:
        raise Refused("a maximum of shifted copies has no Indices")
    if (kernel := max(a.kernel for a in windows.axes)) > _MOST_TAPS:
        raise Refused(f"kernel {kernel} needs as many shifted copies (at most {_MOST_TAPS})")
    for i, axis in enumerate(windows.axes):
        x = net.recipe("constant_pad", x, 2 + i, axis.front, max(axis.reach, 0), value=_LOWEST)
        taps = [_tap(net, x, i, axis, j) for j in range(axis.kernel)]
        x = net(Eltwise(operation="MAX"), *taps) if len(taps) > 1 else taps[0]
    return (x,)


@recipe("ave_pool", "conv")
def average_by_convolution(net: Emitter, x: Blob, windows: Windows) -> tuple[Blob, ...]:
    """A depthwise Convolution of ones over the kernel's size, then what was counted too often (recipes 2.8, 2.11)."""
    try:
        geometry = [even_pads(a) for a in windows.axes]
    except Refused:
        x = net.recipe("zero_pad", x, [a.front for a in windows.axes], [a.reach for a in windows.axes])
        geometry = [Taps(0)] * 2
    taps = [
        np.pad(np.full(a.kernel, 1 / a.kernel, np.float32), (t.front, t.behind))
        for a, t in zip(windows.axes, geometry, strict=True)
    ]
    stride, dilation = [a.stride for a in windows.axes], [a.dilation for a in windows.axes]
    y = depthwise(net, x, taps, stride=stride, pad=[t.pad for t in geometry], dilation=dilation)
    return (_rescaled(net, y, windows, [np.full(a.out, a.kernel) for a in windows.axes]),)


def _layer(windows: Windows, shift: Sequence[int] = (0, 0), round_mode: str | None = None) -> Pooling:
    """Pooling whose window i + shift is the node's window i."""
    if any(_dilated(a) for a in windows.axes):
        raise Refused(f"dilations {[a.dilation for a in windows.axes]}: Caffe's Pooling has none")
    if any(a.front < 0 for a in windows.axes):
        raise Refused(f"pads {[a.front for a in windows.axes]}: Caffe has no negative pads")
    return Pooling(
        pool=windows.mode,
        kernel_size=tuple(a.kernel for a in windows.axes),
        stride=tuple(a.stride for a in windows.axes),
        pad=tuple(a.front + m * a.stride for a, m in zip(windows.axes, shift, strict=True)),
        round_mode=round_mode,
        tops=2 if windows.indices else 1,
    )


def _pooling(
    net: Emitter, x: Blob, windows: Windows, layer: Pooling, shift: Sequence[int] | None = None
) -> tuple[Blob, ...]:
    """The layer, and without `shift` nothing to cut; averages rescaled where Caffe counts otherwise than ONNX."""
    try:
        made = layer.infer([x.shape])[0][2:]
    except LayerError as problem:
        raise Refused(f"Pooling: {problem}") from problem
    wanted = tuple(a.out for a in windows.axes)
    behind = [n - m - out for n, m, out in zip(made, shift or (0, 0), wanted, strict=True)]
    if min(behind) < 0 or (shift is None and any(behind)):
        raise Refused(f"Caffe makes {made} windows, ONNX {wanted}")
    crop = partial(crop_by_slices, net) if _hollow(windows) else partial(net.recipe, "crop")
    tops = [crop(top, shift or (0, 0), behind) for top in net.many(layer, x)]
    if windows.mode == "AVE":
        counts = [_caffe_counts(a, p) for a, p in zip(windows.axes, layer.pad, strict=True)]
        tops = [_rescaled(net, top, windows, counts) for top in tops]
    return tuple(tops)


def _caffe_counts(axis: Axis, pad: int) -> Array:
    """What AVE divides by: the window up to the end of Caffe's own padding."""
    starts = np.arange(axis.out) * axis.stride - axis.front
    return np.minimum(starts + axis.kernel, axis.size + pad) - starts


def _rescaled(net: Emitter, y: Blob, windows: Windows, divisors: Sequence[Array]) -> Blob:
    """Averages by other divisors (recipes 2.9)."""
    counts = [a.counts(padding=windows.padding) for a in windows.axes]
    return net.recipe("scale_map", y, [d / c for d, c in zip(divisors, counts, strict=True)])


def _stepped(net: Emitter, y: Blob, windows: Windows, front: Sequence[int]) -> Blob:
    """The windows' starts out of a map with a value for every place."""
    behind = [
        size - a - (axis.out - 1) * axis.stride - 1
        for size, a, axis in zip(y.shape[2:], front, windows.axes, strict=True)
    ]
    return net.recipe("crop", y, front, behind, [a.stride for a in windows.axes])


def _tap(net: Emitter, x: Blob, i: int, axis: Axis, j: int) -> Blob:
    """The values that tap `j` of every window of spatial axis `i` sees."""
    first = j * axis.dilation
    last = first + (axis.out - 1) * axis.stride
    front, behind, step = [0, 0], [0, 0], [1, 1]
    front[i], behind[i], step[i] = first, x.shape[2 + i] - 1 - last, axis.stride
    return net.recipe("crop", x, front, behind, step)
