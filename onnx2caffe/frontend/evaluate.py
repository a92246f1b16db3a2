"""Evaluate canonical nodes on arrays.

Data movers and exact arithmetic run in numpy, for every dtype (onnxruntime lacks integer forms of some movers); the
rest runs in onnxruntime, so that a folded constant is what onnxruntime would have computed.
Source: ONNX operator specifications, opset 23.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from onnx2caffe import canon

__all__ = ["MOVERS", "NotEvaluable", "evaluate", "run"]

Array = np.ndarray[Any, Any]
Attributes = Mapping[str, Any]
Kernel = Callable[..., Array | list[Array]]

MOVERS: frozenset[str] = frozenset(
    {
        "Concat", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Pad", "Reshape",
        "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Tile", "Transpose",
        "Where",
    }
)  # fmt: skip
"""Ops whose outputs are elements of their data inputs (or a constant fill), moved.

Scatter ops only with reduction "none"; index, shape and condition inputs must be constant for a fixed index map.
"""


class NotEvaluable(Exception):
    """Neither numpy nor onnxruntime can run this node."""


class _Elsewhere(Exception):
    """A numpy kernel leaves these dtypes or values to onnxruntime."""


def evaluate(node: ir.Node, arrays: Sequence[Array | None]) -> list[Array]:
    """The outputs of a canonical node for the given inputs (None for absent ones).

    Raises:
        NotEvaluable: no implementation for this op, these dtypes or these values.

    """
    attributes = {name: canon.attribute(node, name) for name in node.attributes}
    return run(node.op_type, attributes, arrays, len(node.outputs))


def run(op_type: str, attributes: Attributes, arrays: Sequence[Array | None], outputs: int = 1) -> list[Array]:
    """Like `evaluate`, for a node that is not built yet."""
    kernel = _KERNELS.get(op_type)
    if kernel is not None:
        try:
            result = kernel(attributes, *arrays)
            return result if isinstance(result, list) else [result]
        except _Elsewhere:
            pass
    return _onnxruntime(op_type, attributes, arrays, outputs)


def _onnxruntime(op_type: str, attributes: Attributes, arrays: Sequence[Array | None], outputs: int) -> list[Array]:
    import onnxruntime

    names = ["" if a is None else f"i{i}" for i, a in enumerate(arrays)]
    results = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, **attributes)
    feeds = {name: a for name, a in zip(names, arrays, strict=True) if a is not None}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in feeds.items()
        ]
        graph = helper.make_graph([node], "fold", inputs, [onnx.ValueInfoProto(name=name) for name in results])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", canon.OPSET)], ir_version=10)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [np.asarray(a) for a in session.run(results, feeds)]
    except Exception as error:  # onnxruntime's errors share no base class
        raise NotEvaluable(f"{op_type}: {error}") from error


def _slice(_: Attributes, x: Array, starts: Array, ends: Array, axes: Array, steps: Array) -> Array:
    cuts = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True):
        cuts[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(cuts)]


def _split(attributes: Attributes, x: Array, sizes: Array) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1].tolist(), axis=attributes["axis"])


def _pad(attributes: Attributes, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None) -> Array:
    if axes is not None:
        raise _Elsewhere
    before, after = pads[: x.ndim].tolist(), pads[x.ndim :].tolist()
    cut = x[tuple(slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, x.shape, strict=True))]
    widths = [(max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True)]
    mode = attributes["mode"]
    if mode == "constant":
        return np.pad(cut, widths, constant_values=x.dtype.type(0) if value is None else value.reshape(())[()])
    return np.pad(cut, widths, mode=mode)


def _gather(attributes: Attributes, x: Array, indices: Array) -> Array:
    return np.take(x, indices, axis=attributes["axis"])


def _gather_elements(attributes: Attributes, x: Array, indices: Array) -> Array:
    axis = attributes["axis"]
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[axis] = indices
    return x[tuple(grid)]


def _gather_nd(attributes: Attributes, x: Array, indices: Array) -> Array:
    batch = attributes["batch_dims"]
    lead = x.shape[:batch]
    flat = x.reshape(-1, *x.shape[batch:])
    picks = indices.reshape(-1, *indices.shape[batch:])
    rows = [flat[i][tuple(np.moveaxis(picks[i], -1, 0))] for i in range(len(flat))]
    if not rows:
        raise _Elsewhere
    return np.stack(rows).reshape(*lead, *rows[0].shape)


_REDUCTIONS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(x: Array, where: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    out = x.copy()
    if reduction == "none":
        out[where] = updates
    else:
        _REDUCTIONS[reduction].at(out, where, updates)
    return out


def _scatter_elements(attributes: Attributes, x: Array, indices: Array, updates: Array) -> Array:
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[attributes["axis"]] = indices
    return _scatter(x, tuple(grid), updates, attributes["reduction"])


def _scatter_nd(attributes: Attributes, x: Array, indices: Array, updates: Array) -> Array:
    return _scatter(x, tuple(np.moveaxis(indices, -1, 0)), updates, attributes["reduction"])


def _depth_to_space(attributes: Attributes, x: Array) -> Array:
    n, c, h, w = x.shape
    b = attributes["blocksize"]
    if attributes["mode"] == "DCR":
        blocks = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, c // b**2, h * b, w * b)


def _space_to_depth(attributes: Attributes, x: Array) -> Array:
    n, c, h, w = x.shape
    b = attributes["blocksize"]
    return x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


def _trilu(attributes: Attributes, x: Array, k: Array | None = None) -> Array:
    diagonal = 0 if k is None else int(k.reshape(()))
    return np.triu(x, diagonal) if attributes["upper"] else np.tril(x, diagonal)


def _one_hot(attributes: Attributes, indices: Array, depth: Array, values: Array) -> Array:
    size = int(depth.reshape(()))
    axis = attributes["axis"]
    wrapped = np.where(indices < 0, indices + size, indices)
    hot = np.expand_dims(wrapped, axis) == np.arange(size).reshape(
        [-1 if i == axis else 1 for i in range(indices.ndim + 1)]
    )
    return np.asarray(np.where(hot, values[1], values[0]))


def _range(_: Attributes, start: Array, limit: Array, delta: Array) -> Array:
    if start.dtype.kind == "f":
        raise _Elsewhere
    return np.arange(int(start.reshape(())), int(limit.reshape(())), int(delta.reshape(())), dtype=start.dtype)


def _constant_of_shape(attributes: Attributes, shape: Array) -> Array:
    value = attributes["value"]
    return np.broadcast_to(value.reshape(()), tuple(shape.tolist()))  # one element in memory, whatever the shape


def _cumsum(attributes: Attributes, x: Array, axis: Array) -> Array:
    at = int(axis.reshape(()))
    y = np.flip(x, at) if attributes["reverse"] else x
    total = np.cumsum(y, axis=at, dtype=x.dtype)
    if attributes["exclusive"]:
        total = np.roll(total, 1, axis=at)
        total[tuple(0 if i == at else slice(None) for i in range(x.ndim))] = 0
    return np.flip(total, at) if attributes["reverse"] else total


def _reverse_sequence(attributes: Attributes, x: Array, lengths: Array) -> Array:
    batch, time = attributes["batch_axis"], attributes["time_axis"]
    y = np.moveaxis(x, (batch, time), (0, 1)).copy()
    for row, length in enumerate(lengths.tolist()):
        y[row, :length] = y[row, :length][::-1]
    return np.moveaxis(y, (0, 1), (batch, time))


def _divide(_: Attributes, a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    if not b.all():
        raise _Elsewhere
    quotient = np.abs(a) // np.abs(b)
    return (np.sign(a) * np.sign(b) * quotient).astype(a.dtype) if a.dtype.kind == "i" else a // b


def _mod(attributes: Attributes, a: Array, b: Array) -> Array:
    if a.dtype.kind != "f" and not b.all():
        raise _Elsewhere
    return np.fmod(a, b) if attributes["fmod"] else np.mod(a, b)


def _cast(attributes: Attributes, x: Array) -> Array:
    to = ir.DataType(attributes["to"])
    if to == ir.DataType.STRING or x.dtype.kind not in "biuf":
        raise _Elsewhere
    dtype = to.numpy()
    if x.dtype.kind == "f" and dtype.kind in "iu":
        if not np.isfinite(x).all():
            raise _Elsewhere
        return np.trunc(x).astype(dtype)
    if dtype.kind not in "biuf":
        raise _Elsewhere
    return x.astype(dtype)


def _dequantize(attributes: Attributes, x: Array, scale: Array, zero: Array | None = None) -> Array:
    if scale.dtype != np.float32:
        raise _Elsewhere
    block, axis = attributes["block_size"], attributes["axis"]
    exact = np.int32 if x.dtype.kind in "iu" else np.float32  # 4-bit and 8-bit float types are neither to numpy
    centred = x.astype(exact)
    if zero is not None:
        centred = centred - _spread(zero, x.shape, axis, block).astype(exact)
    return centred.astype(np.float32) * _spread(scale, x.shape, axis, block)


def _spread(parameter: Array, shape: tuple[int, ...], axis: int, block: int) -> Array:
    """A quantisation parameter (one, one per index of `axis`, or one per block along it) made broadcastable."""
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim == 1 and not block:
        return parameter.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.repeat(parameter, block, axis=axis).take(range(shape[axis]), axis=axis)


def _reduce(ufunc: np.ufunc) -> Kernel:
    def kernel(attributes: Attributes, x: Array, axes: Array | None = None) -> Array:
        if x.dtype.kind == "f" and ufunc not in {np.maximum, np.minimum}:
            raise _Elsewhere  # the order of a float sum is onnxruntime's
        over = tuple(range(x.ndim)) if axes is None else tuple(axes.tolist())
        if 0 in x.shape:
            raise _Elsewhere
        return np.asarray(ufunc.reduce(x, axis=over, keepdims=bool(attributes["keepdims"]), dtype=x.dtype))

    return kernel


def _plain(function: Callable[..., Any]) -> Kernel:
    return lambda _, *arrays: np.asarray(function(*arrays))


def _chain(function: np.ufunc) -> Kernel:
    def kernel(_: Attributes, first: Array, *rest: Array) -> Array:
        for array in rest:
            first = function(first, array)
        return first

    return kernel


def _quiet(kernel: Kernel) -> Kernel:
    def run_quietly(attributes: Attributes, *arrays: Array) -> Array | list[Array]:
        with np.errstate(all="ignore"):
            return kernel(attributes, *arrays)

    return run_quietly


_KERNELS: dict[str, Kernel] = {
    "Reshape": lambda _, x, shape: x.reshape(tuple(shape.tolist())),
    "Transpose": lambda attributes, x: x.transpose(attributes["perm"]),
    "Slice": _slice,
    "Concat": lambda attributes, *xs: np.concatenate(xs, axis=attributes["axis"]),
    "Split": _split,
    "Pad": _pad,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Tile": lambda _, x, repeats: np.tile(x, tuple(repeats.tolist())),
    "Expand": lambda _, x, shape: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist()))),
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Trilu": _trilu,
    "OneHot": _one_hot,
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "Where": _plain(np.where),
    "CumSum": _cumsum,
    "ReverseSequence": _reverse_sequence,
    "NonZero": lambda _, x: np.asarray(np.nonzero(np.atleast_1d(x)), dtype=np.int64),
    "Cast": _quiet(_cast),
    "DequantizeLinear": _dequantize,
    "Add": _quiet(_plain(np.add)),
    "Sub": _quiet(_plain(np.subtract)),
    "Mul": _quiet(_plain(np.multiply)),
    "Div": _quiet(_divide),
    "Mod": _quiet(_mod),
    "Neg": _plain(np.negative),
    "Abs": _plain(np.abs),
    "Floor": _plain(np.floor),
    "Ceil": _plain(np.ceil),
    "Sqrt": _quiet(_plain(np.sqrt)),
    "Min": _chain(np.minimum),
    "Max": _chain(np.maximum),
    "Equal": _plain(np.equal),
    "Greater": _plain(np.greater),
    "GreaterOrEqual": _plain(np.greater_equal),
    "Less": _plain(np.less),
    "LessOrEqual": _plain(np.less_equal),
    "And": _plain(np.logical_and),
    "Or": _plain(np.logical_or),
    "Xor": _plain(np.logical_xor),
    "Not": _plain(np.logical_not),
    "ReduceSum": _reduce(np.add),
    "ReduceProd": _reduce(np.multiply),
    "ReduceMax": _reduce(np.maximum),
    "ReduceMin": _reduce(np.minimum),
}
