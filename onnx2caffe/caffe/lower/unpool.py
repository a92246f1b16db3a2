"""MaxUnpool: values put back where a MaxPool found them. Facts: recipes 2.22, 2.23."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.layers import AbsVal, Bias, Eltwise, Power, Threshold, Upsample
from onnx2caffe.caffe.lower.blocks import add_map, reshape, spatial_rank
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.pool import EXACT
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob
from onnx2caffe.canon import Shape

__all__: list[str] = []


@lowers("MaxUnpool", variant="upsample")
def unpool_by_upsample(op: Op, net: Emitter) -> Blob:
    """Upsample with the mask as second bottom (recipes 2.23)."""
    values, mask, plane = _planes(op, net)
    return reshape(net, net(Upsample(upsample_h=plane[0], upsample_w=plane[1]), values, mask), op.outputs[0])


@lowers("MaxUnpool", variant="compare")
def unpool_by_comparison(op: Op, net: Emitter) -> Blob:
    """Stock layers: values and mask repeated over their windows, kept where the mask names the place."""
    steps = _disjoint_windows(op)
    values, mask, plane = _planes(op, net)
    factors = (1,) * (2 - len(steps)) + steps
    spread, found = net.recipe("upsample", values, factors), net.recipe("upsample", mask, factors)
    places = np.arange(math.prod(plane), dtype=np.float32).reshape(plane)
    height, width = spread.shape[2:]
    distance = net(AbsVal(), add_map(net, found, -places[:height, :width]))
    there = net(Power(scale=-1.0, shift=1.0), net(Threshold(threshold=0.5), distance))
    kept = net(Eltwise(operation="PROD"), spread, there)
    rest = [size - made for size, made in zip(plane, (height, width), strict=True)]
    return reshape(net, net.recipe("zero_pad", kept, [0, 0], rest), op.outputs[0])


def _planes(op: Op, net: Emitter) -> tuple[Blob, Blob, Shape]:
    """Values and mask as 4-D blobs, the mask counting within a map of the output, and that map's shape."""
    values, indices = op.blob(0), op.blob(1)
    if (rank := spatial_rank(values)) > 2:
        raise Refused(f"unpooling over {rank} axes: Upsample has two")
    if math.prod(op.outputs[0]) > EXACT:
        raise Refused(f"indices into a tensor of {math.prod(op.outputs[0])} elements do not fit a float")
    batch, channels, *out = op.outputs[0]
    if batch * channels > 1 and _pooled_shape(op) != op.outputs[0]:
        raise Refused("indices not known to lie in their own map: no MaxPool of the output's shape made them")
    plane = (1,) * (2 - rank) + tuple(out)
    shape = (batch, channels, *(1,) * (2 - rank), *values.shape[2:])
    first = -np.arange(batch * channels, dtype=np.float32).reshape(batch, channels) * math.prod(plane)
    mask = reshape(net, indices, shape)
    if first.any():
        mask = net(Bias(axis=0, num_axes=2, blobs=(first,)), mask)
    return reshape(net, values, shape), mask, plane


def _disjoint_windows(op: Op) -> tuple[int, ...]:
    """The strides, when the indices come from a MaxPool of the output's shape whose windows do not overlap.

    Raises:
        Refused: they do not: then the places of a window need not lie in its own share of the output.

    """
    pool = _pool(op)
    if pool is None:
        raise Refused("the indices come from no MaxPool")
    strides: tuple[int, ...] = canon.attribute(pool, "strides")
    if (
        _pooled_shape(op) != op.outputs[0]
        or canon.attribute(pool, "kernel_shape") != strides
        or any(canon.attribute(pool, "pads"))
        or canon.attribute(pool, "ceil_mode", 0)
    ):
        raise Refused("the windows of the MaxPool overlap, are padded, or its input has another shape")
    return strides


def _pool(op: Op) -> ir.Node | None:
    """The MaxPool that makes the indices."""
    indices = op.node.inputs[1]
    node = None if indices is None else indices.producer()
    return node if node is not None and node.op_type == "MaxPool" else None


def _pooled_shape(op: Op) -> Shape | None:
    """The shape of the tensor that the MaxPool's indices count in."""
    pool = _pool(op)
    source = None if pool is None else pool.inputs[0]
    return None if source is None else canon.shape(source)
