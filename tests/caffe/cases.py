"""One list of layers and shapes: what the builtin runtime must compute as Caffe does."""

from __future__ import annotations

import itertools

import numpy as np

from onnx2caffe.caffe import layers as L
from tests.caffe.nets import Case

__all__ = ["CASES", "REFUSED"]

NAN, INF = float("nan"), float("inf")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1e-30, 100.0, -100.0, 3.5, -3.5, 1.0, -1.0]
FOUR = (2, 3, 4, 5)
RANKS = [(3,), (2, 3), (2, 3, 5), (2, 3, 4, 5), (1, 4, 3, 2, 3)]
ROIS = [[0, 1, 1, 8, 7], [1, -3, 2, 20, 4], [0, 5, 5, 5, 5], [1, 2.5, 0.5, 3.5, 1.5], [0, 9, 9, 2, 2]]


def _activations():
    for layer in [
        L.ReLU(), L.ReLU(negative_slope=0.1), L.ELU(), L.ELU(alpha=0.3), L.Sigmoid(), L.TanH(), L.BNLL(),
        L.Clip(min=-1, max=2), L.Clip(min=3, max=1), L.Swish(), L.Swish(beta=1.702), L.ReLU6(), L.ReLU6(threshold=2),
        L.Mish(), L.HardSwish(), L.HardSigmoid(), L.HardSigmoid(alpha=1 / 6, beta=0.5), L.Dropout(), L.AbsVal(),
        L.Power(), L.Power(power=2, scale=-0.5, shift=1), L.Power(power=-1), L.Power(power=0), L.Power(power=0.5),
        L.Power(scale=0, shift=3, power=2), L.Power(power=3), L.Power(shift=1), L.Exp(), L.Exp(base=2, scale=0.5),
        L.Exp(base=3, shift=-1), L.Exp(shift=1), L.Log(), L.Log(base=10), L.Log(base=2, scale=-2, shift=0.5),
        L.Threshold(), L.Threshold(threshold=0.5),
    ]:  # fmt: skip
        for shape in [(), *RANKS]:
            yield Case(layer, [shape])
        yield Case(layer, [(len(SPECIAL),)], {0: SPECIAL})
    for shape in RANKS[1:4]:
        yield Case(L.PReLU(), [shape])
        yield Case(L.PReLU(channel_shared=True), [shape])
    for shape in RANKS:
        for axis in range(-len(shape), len(shape)):
            yield Case(L.Softmax(axis=axis), [shape])


def _arithmetic():
    for shape, count in itertools.product([(), *RANKS], [2, 3]):
        bottoms = [shape] * count
        yield Case(L.Eltwise(), bottoms)
        yield Case(L.Eltwise(operation="PROD"), bottoms)
        yield Case(L.Eltwise(operation="MAX"), bottoms)
        yield Case(L.Eltwise(coeff=(1.0, -2.0, 0.5)[:count]), bottoms)
    yield Case(L.Eltwise(operation="MAX"), [(4,)] * 2, {0: [NAN, 1, INF, -INF], 1: [1, NAN, 2, 3]})
    for operand, axis in [((2,), 0), ((3,), 1), ((5,), -1), ((2, 3), 0), ((3, 4), 1), (FOUR, 0), ((), 0), ((), 1)]:
        yield Case(L.Scale(axis=axis), [FOUR, operand])
        yield Case(L.Scale(axis=axis, bias_term=True), [FOUR, operand])
        yield Case(L.Bias(axis=axis), [FOUR, operand])
    for shape in RANKS:
        for axis, num_axes in [(0, 1), (0, -1), (-1, 1), (0, 0), (1, 1), (1, -1), (1, 2)]:
            if axis < len(shape) and axis + num_axes <= len(shape):
                for bias in (False, True):
                    yield Case(L.Scale(axis=axis, num_axes=num_axes, bias_term=bias), [shape])
                yield Case(L.Bias(axis=axis, num_axes=num_axes), [shape])
    yield Case(L.Axpy(), [(2, 3, 1, 1), FOUR, FOUR])
    yield Case(L.Axpy(), [(2, 3), FOUR, FOUR])
    for shape in RANKS:
        for axis in range(-len(shape), len(shape)):
            yield Case(L.InnerProduct(num_output=7, axis=axis), [shape])
        last = len(shape) - 1
        yield Case(L.InnerProduct(num_output=2, axis=last, transpose=True), [shape])
        yield Case(L.InnerProduct(num_output=2, axis=last, bias_term=False), [shape])
    for shape in [(), (4,), (2, 3), (2, 1, 2)]:
        for bias in (False, True):
            yield Case(L.Embed(num_output=3, input_dim=6, bias_term=bias), [shape])


def _normalisation():
    for shape in RANKS[1:]:
        yield Case(L.BatchNorm(), [shape])
        yield Case(L.BatchNorm(eps=0.1, use_global_stats=True), [shape])
        yield Case(L.BatchNorm(use_global_stats=False), [shape])
        for spatial, shared in itertools.product([True, False], repeat=2):
            yield Case(L.Normalize(across_spatial=spatial, channel_shared=shared, eps=1e-3), [shape])
    unfilled = tuple(np.zeros(s, np.float32) for s in ((3,), (3,), (1,)))
    yield Case(L.BatchNorm(blobs=unfilled), [FOUR])
    for shape in RANKS[:4]:
        for channels, variance in itertools.product([True, False], repeat=2):
            yield Case(L.MVN(across_channels=channels, normalize_variance=variance, eps=0.1), [shape])
    for size in (1, 3, 5):
        yield Case(L.LRN(local_size=size, alpha=0.3), [FOUR])
        yield Case(L.LRN(local_size=size, alpha=2, beta=0.5, k=2), [(1, 7, 3, 3)])
        yield Case(L.LRN(local_size=size, alpha=2, norm_region="WITHIN_CHANNEL"), [FOUR])


def _convolutions():
    parameters = [
        {"kernel_size": (1,)},
        {"kernel_size": (3,), "pad": (1,), "stride": (2,)},
        {"kernel_size": (2, 3), "pad": (2, 0), "stride": (1, 3), "dilation": (2, 1)},
        {"kernel_size": (3, 1), "pad": (4, 3), "stride": (3, 1)},
        {"kernel_size": (3,), "stride": (2,), "dilation": (3,), "pad": (2,)},
    ]
    for options, group, bias, size in itertools.product(parameters, [1, 2], [True, False], [(6, 7), (9, 8)]):
        yield Case(L.Convolution(num_output=6, group=group, bias_term=bias, **options), [(2, 4, *size)])
        yield Case(L.Deconvolution(num_output=6, group=group, bias_term=bias, **options), [(2, 4, *size)])
    for options in parameters:
        yield Case(L.DepthwiseConv(num_output=4, **options), [(2, 4, 7, 8)])
        yield Case(L.Im2col(**options), [(2, 4, 7, 8)])
    yield Case(L.DepthwiseConv(num_output=8, kernel_size=(3,)), [(1, 4, 5, 5)])
    for layer in (L.Convolution, L.Deconvolution):
        yield Case(layer(num_output=4, kernel_size=(1,)), [(2, 3)])
        yield Case(layer(num_output=4, kernel_size=(3,), stride=(2,), pad=(1,)), [(2, 3, 9)])
        yield Case(layer(num_output=4, kernel_size=(3, 2, 2), stride=(2, 1, 2), pad=(1, 0, 1)), [(2, 3, 5, 4, 6)])
        yield Case(layer(num_output=4, kernel_size=(2,)), [(2, 3, 5, 4)] * 3)
        yield Case(layer(num_output=4, kernel_size=(2,), pad=(3,), stride=(2,)), [(2, 3, 5, 4)])
    yield Case(L.Convolution(num_output=2, kernel_size=(3,), stride=(2,)), [(1, 2, 2, 5)])
    yield Case(L.Convolution(num_output=2, kernel_size=(2,), dilation=(4,), stride=(3,)), [(1, 2, 3, 4)])
    yield Case(L.Im2col(kernel_size=(3,), stride=(2,)), [(1, 2, 2, 5)])
    yield Case(L.Im2col(kernel_size=(3,), stride=(2,), pad=(1,)), [(2, 2, 7)])
    yield Case(L.Im2col(kernel_size=(2, 3, 1)), [(2, 2, 4, 5, 3)])


def _poolings():
    kernels, strides, pads = [(2,), (3,), (3, 2)], [(1,), (2,), (4, 3)], [(0,), (1,), (1, 0)]
    for pool, (h, w), kernel, stride, pad, mode in itertools.product(
        ["MAX", "AVE"], [(6, 7), (5, 3)], kernels, strides, pads, [None, "FLOOR"]
    ):
        layer = L.Pooling(pool=pool, kernel_size=kernel, stride=stride, pad=pad, round_mode=mode)
        if mode is None or (h, w) == (6, 7):
            yield Case(layer, [(2, 3, h, w)])
        if pool == "MAX" and mode is None and (h, w) == (6, 7):
            tops = L.Pooling(kernel_size=kernel, stride=stride, pad=pad, tops=2)
            yield Case(tops, [(2, 3, h, w)])
            yield Case(tops, [(1, 1, h, w)], {0: np.arange(h * w) // 4})
    for pool in ("MAX", "AVE"):
        yield Case(L.Pooling(pool=pool, global_pooling=True), [(2, 3, 5, 4)])
        yield Case(L.Pooling(pool=pool, kernel_size=(3,), stride=(2,)), [(1, 2, 2, 5)])
        yield Case(L.Pooling(pool=pool, kernel_size=(2,), pad=(1,)), [(1, 1, 3, 4)], {0: SPECIAL})
        for levels in (1, 2, 3):
            yield Case(L.SPP(pyramid_height=levels, pool=pool), [(2, 3, 9, 10)])
    yield Case(L.Pooling(kernel_size=(2,), pad=(1,), tops=2), [(1, 1, 3, 4)], {0: SPECIAL})
    yield Case(L.Pooling(kernel_size=(1,), tops=2), [(1, 1, 3, 4)], {0: SPECIAL})


def _shapes():
    for shape, axis, num_axes in [
        ((0, -1), 0, -1),
        ((60, 2), 0, -1),
        ((-1,), 0, -1),
        ((0, 0, 20), 0, -1),
        ((4, 5), 2, -1),
        ((1,), -1, 0),
        ((1,), 1, 0),
        ((-1, 0), 1, 2),
        ((10, 2), -3, 2),
    ]:
        yield Case(L.Reshape(shape=shape, axis=axis, num_axes=num_axes), [FOUR])
    yield Case(L.Reshape(shape=()), [(1, 1)])
    yield Case(L.Reshape(shape=(1, 1)), [()])
    for axis, end in [(1, -1), (0, -1), (1, 2), (-2, -1), (2, 1), (3, 3), (0, 0)]:
        yield Case(L.Flatten(axis=axis, end_axis=end), [FOUR])
    for order in [(0, 2, 3, 1), (1,), (3, 0), (2, 1, 0, 3), ()]:
        yield Case(L.Permute(order=order), [FOUR])
    yield Case(L.Permute(order=(4, 1)), [(2, 3, 2, 2, 3)])
    for axis in (0, 1, -1, 2):
        sizes = [tuple(d + i * (a == axis % 4) for a, d in enumerate(FOUR)) for i in range(3)]
        yield Case(L.Concat(axis=axis), sizes)
        yield Case(L.Concat(axis=axis), sizes[:1])
        yield Case(L.Tile(axis=axis, tiles=3), [FOUR])
    yield Case(L.Concat(axis=0), [(2,), (3,)])
    for axis, points, tops in [(1, (), 3), (0, (), 2), (-1, (1, 3), 3), (3, (4,), 2), (2, (), 1), (1, (), 1)]:
        yield Case(L.Slice(axis=axis, slice_point=points, tops=tops), [FOUR])
    yield Case(L.Split(tops=3), [FOUR])
    yield Case(L.Crop(), [(2, 3, 6, 7), (1, 9, 4, 5)])
    yield Case(L.Crop(offset=(1,)), [(2, 3, 6, 7), (1, 9, 4, 5)])
    yield Case(L.Crop(axis=1, offset=(1, 2, 0)), [(2, 3, 6, 7), (2, 1, 4, 5)])
    yield Case(L.Crop(axis=-1, offset=(2,)), [(2, 3, 6), (1, 1, 3)])
    for group, shape in itertools.product([1, 2, 3], [(2, 6), (2, 6, 3), (1, 6, 2, 3), (2, 6, 2, 1, 2)]):
        yield Case(L.ShuffleChannel(group=group), [shape])
    yield Case(L.PassThrough(num_output=24, block_height=2, block_width=4), [(2, 3, 4, 8)])
    yield Case(L.PassThrough(block_height=3, block_width=1), [(2, 2, 6, 5)])
    for stride in (1, 2, 3):
        yield Case(L.Reorg(stride=stride), [(2, 36, 6, 12)])
        yield Case(L.Reorg(stride=stride, reverse=True), [(2, 36, 3, 2)])
    yield Case(L.BatchReindex(), [FOUR, (5,)])
    yield Case(L.BatchReindex(), [(4,), (3,)])


def _resizes():
    for options in [
        {}, {"scale": 3}, {"scale_h": 2, "scale_w": 3}, {"upsample_h": 7, "upsample_w": 9}, {"stride": 2, "scale": 0.5},
        {"stride_h": 3}, {"scale": 2, "pad_out_h": True, "pad_out_w": True}, {"scale": 1.5},
    ]:  # fmt: skip
        yield Case(L.Upsample(**options), [FOUR])
        yield Case(L.Upsample(mode="BILINEAR", **options), [FOUR])
    mask = np.stack([np.random.default_rng(i).permutation(80)[:20] for i in range(6)])
    yield Case(L.Upsample(scale=2), [FOUR, FOUR], {1: mask})
    for options in [
        {"height": 9, "width": 3}, {"height": 1, "width": 1}, {"zoom_factor": 3}, {"shrink_factor": 2},
        {"shrink_factor": 2, "zoom_factor": 2}, {"height": 7, "width": 8, "pad_beg": -1, "pad_end": -1},
    ]:  # fmt: skip
        yield Case(L.Interp(**options), [FOUR])
    yield Case(L.Interp(), [FOUR, (1, 1, 7, 6)])


def _reductions():
    for operation, shape in itertools.product(["SUM", "ASUM", "SUMSQ", "MEAN"], RANKS):
        for axis in range(-len(shape), len(shape)):
            yield Case(L.Reduction(operation=operation, axis=axis), [shape])
        yield Case(L.Reduction(operation=operation, coeff=-0.5), [shape])
    ties = np.random.default_rng(0).integers(0, 3, 120)
    for k, values in itertools.product([1, 3], [False, True]):
        for axis in (1, -1, 2, 0):
            if k <= FOUR[axis]:
                yield Case(L.ArgMax(axis=axis, top_k=k, out_max_val=values), [FOUR], {0: ties})
        for shape in RANKS[1:]:
            yield Case(L.ArgMax(top_k=k, out_max_val=values), [shape], {0: ties[: np.prod(shape)]})


def _recurrent():
    for layer, states in [(L.LSTM, 2), (L.RNN, 1)]:
        for shape in [(1, 1, 4), (3, 2, 4), (5, 1, 2, 3)]:
            state = (1, shape[1], 3)
            yield Case(layer(num_output=3), [shape, shape[:2]])
            yield Case(layer(num_output=3), [shape, shape[:2], (shape[1], 2)])
            yield Case(layer(num_output=3, expose_hidden=True), [shape, shape[:2], *[state] * states])
            yield Case(layer(num_output=3, expose_hidden=True), [shape, shape[:2], (shape[1], 5), *[state] * states])


def _regions():
    rois = {1: ROIS}
    for h, w, scale in [(2, 3, 1.0), (7, 7, 0.5), (1, 1, 0.0625)]:
        yield Case(L.ROIPooling(pooled_h=h, pooled_w=w, spatial_scale=scale), [(2, 3, 9, 10), (5, 5)], rois)
    for size, scale in [(1, 1.0), (3, 1.0), (2, 0.5)]:
        layer = L.PSROIPooling(spatial_scale=scale, output_dim=2, group_size=size)
        yield Case(layer, [(2, 2 * size * size, 9, 10), (5, 5)], rois)


CASES = [
    *_activations(),
    *_arithmetic(),
    *_normalisation(),
    *_convolutions(),
    *_poolings(),
    *_shapes(),
    *_resizes(),
    *_reductions(),
    *_recurrent(),
    *_regions(),
    Case(L.Parameter(shape=(2, 3)), []),
    Case(L.Parameter(shape=()), []),
    Case(L.DummyData(shape=(2, 3), value=0.1), []),
]

REFUSED = [
    Case(L.PReLU(), [(1, 2, 3, 4, 5)]),
    Case(L.PReLU(), [(3,)]),
    Case(L.Softmax(axis=1), [(3,)]),
    Case(L.Eltwise(), [(2, 3), (2, 1)]),
    Case(L.Eltwise(), [(2, 3)]),
    Case(L.Eltwise(coeff=(1.0,)), [(2, 3), (2, 3)]),
    Case(L.Eltwise(operation="PROD", coeff=(1.0, 1.0)), [(2, 3), (2, 3)]),
    Case(L.Scale(axis=0), [FOUR, (2, 3, 1, 1)]),
    Case(L.Scale(num_axes=4), [FOUR]),
    Case(L.Bias(axis=4), [FOUR]),
    Case(L.Exp(base=0), [FOUR]),
    Case(L.Log(base=1), [FOUR]),
    Case(L.InnerProduct(num_output=2), [(3,)]),
    Case(L.BatchNorm(), [(3,)]),
    Case(L.MVN(), [(1, 2, 3, 4, 5)]),
    Case(L.LRN(local_size=4), [FOUR]),
    Case(L.LRN(), [(2, 3, 4)]),
    Case(L.Convolution(num_output=3, kernel_size=(3,)), [(1, 2, 2, 5)]),
    Case(L.Convolution(num_output=3, kernel_size=(3,), group=2), [(1, 3, 5, 5)]),
    Case(L.Convolution(num_output=3, kernel_size=(3, 2, 1)), [(1, 3, 5, 5)]),
    Case(L.Deconvolution(num_output=3, kernel_size=(1,), pad=(3,)), [(1, 3, 5, 5)]),
    Case(L.Pooling(kernel_size=(3,), pad=(3,)), [FOUR]),
    Case(L.Pooling(kernel_size=(2,)), [(2, 3, 4)]),
    Case(L.Pooling(kernel_size=(5,)), [(1, 1, 2, 9)]),
    Case(L.Pooling(kernel_size=(2,), global_pooling=True), [FOUR]),
    Case(L.Pooling(stride=(2,), global_pooling=True), [FOUR]),
    Case(L.Reshape(shape=(7, -1)), [FOUR]),
    Case(L.Reshape(shape=(-1, -1)), [FOUR]),
    Case(L.Reshape(shape=(2, 3)), [FOUR]),
    Case(L.Reshape(shape=(0, 0, 0)), [(2, 3)]),
    Case(L.Reshape(shape=(1,), axis=5), [FOUR]),
    Case(L.Flatten(axis=1), [(3,)]),
    Case(L.Permute(order=(0, 0)), [FOUR]),
    Case(L.Permute(order=(4,)), [FOUR]),
    Case(L.Concat(), [(2, 3), (2, 3, 1)]),
    Case(L.Concat(), [(2, 3), (3, 3)]),
    Case(L.Slice(tops=2), [FOUR]),
    Case(L.Slice(slice_point=(2, 1), tops=3), [FOUR]),
    Case(L.Slice(slice_point=(3,), tops=2), [FOUR]),
    Case(L.Tile(tiles=0), [FOUR]),
    Case(L.Crop(), [(2, 3, 4, 5), (2, 3, 5, 5)]),
    Case(L.Crop(offset=(1, 2, 3)), [FOUR, (2, 3, 1, 1)]),
    Case(L.ShuffleChannel(group=2), [FOUR]),
    Case(L.PassThrough(block_height=2, block_width=2), [FOUR]),
    Case(L.PassThrough(num_output=5, block_height=1, block_width=1), [FOUR]),
    Case(L.Reorg(), [FOUR]),
    Case(L.BatchReindex(), [FOUR, (2, 2)]),
    Case(L.Upsample(), [(2, 3, 4)]),
    Case(L.Interp(height=0, width=3), [FOUR]),
    Case(L.Reduction(axis=4), [FOUR]),
    Case(L.ArgMax(top_k=4, axis=1), [FOUR]),
    Case(L.LSTM(num_output=2), [(3, 2, 4), (3, 1)]),
    Case(L.LSTM(num_output=2, expose_hidden=True), [(3, 2, 4), (3, 2)]),
    Case(L.ROIPooling(pooled_h=0, pooled_w=2), [(2, 3, 9, 10), (5, 5)]),
    Case(L.PSROIPooling(spatial_scale=1, output_dim=2, group_size=2), [(2, 3, 9, 10), (5, 5)]),
    Case(L.Parameter(shape=(2, 0)), []),
    Case(L.Parameter(shape=(1,) * 33), []),
]
"""What Caffe refuses when it makes the net or first runs it."""
