"""Builds canonical nodes: infers their static shapes, folds what is constant, names what is new."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper, shape_inference

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.frontend.evaluate import NotEvaluable, run
from onnx2caffe.frontend.files import Array
from onnx2caffe.frontend.names import Names

__all__ = ["FOLD_LIMIT", "RANDOM", "Builder", "Opaque", "Unsized", "infer", "widened"]

FOLD_LIMIT = 512 << 20
"""Bytes: the largest dense layer of VGG has 411 MB.

A constant above this, and larger than what it is made from, is not folded (nothing is allocated).
"""

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)

_LIKE_INPUT = {"GroupNormalization", "MeanVarianceNormalization"}
"""Ops whose output has the type of their first input, for which onnx has no inference."""

_NARROW = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE}


class Opaque(Exception):
    """This node has no canonical form; `reason` says why, for the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unsized(Opaque):
    """All that this node lacks is that some sizes of its outputs depend on data."""


def widened(dtype: ir.DataType) -> ir.DataType:
    """The element type a canonical model uses: float32 for float16, bfloat16 and float64."""
    return ir.DataType.FLOAT if dtype in _NARROW else dtype


class Builder:
    """Emits canonical nodes.

    All emitted nodes are kept in creation order, which is a topological order. `at` says for which of the user's nodes
    the following ones are made.
    """

    def __init__(self, names: Names) -> None:
        self.nodes: list[ir.Node] = []
        self._names = names
        self._label = ""
        self._sources: tuple[str, ...] = ()

    def at(self, label: str, sources: tuple[str, ...]) -> None:
        """Name what follows after `label`; it stands for the user's nodes `sources`."""
        self._label, self._sources = label, sources

    def const(self, array: Any, what: str = "const", dtype: ir.DataType | None = None) -> ir.Value:
        """A new initializer (float16, bfloat16, float64 become float32)."""
        array = np.asarray(array)
        dtype = dtype or ir.DataType.from_numpy(array.dtype)
        if widened(dtype) != dtype:
            dtype = ir.DataType.FLOAT
            with np.errstate(over="ignore"):
                array = array.astype(np.float32)
        name = self._names.new(self._label, what)
        tensor: ir.TensorProtocol
        if dtype == ir.DataType.STRING:
            strings = [s if isinstance(s, bytes) else str(s).encode() for s in array.ravel().tolist()]
            tensor = ir.StringTensor(strings, shape=ir.Shape(array.shape), name=name)
        else:
            tensor = ir.Tensor(array, dtype=dtype, name=name)
        return ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(dtype), const_value=tensor)

    def ints(self, values: Sequence[int], what: str) -> ir.Value:
        """A new one-dimensional int64 initializer."""
        return self.const(np.asarray(values, np.int64), what)

    def like(self, value: float, x: ir.Value, what: str) -> ir.Value:
        """A new scalar initializer of `x`'s element type."""
        return self.const(np.asarray(value, canon.dtype(x).numpy()), what)

    def op(self, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """One node with one output."""
        return self.many(op_type, inputs, 1, **attributes)[0]

    def many(self, op_type: str, inputs: Sequence[ir.Value | None], outputs: int, **attributes: Any) -> list[ir.Value]:
        """One canonical node with `outputs` outputs, or the constants it evaluates to; without elements it always does.

        Raises:
            Opaque: its inputs or outputs have no static shape, or they do not fit the op.

        """
        attributes = {name: value for name, value in attributes.items() if value is not None}
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        types = infer(op_type, inputs, outputs, [_proto(name, value) for name, value in attributes.items()])
        arrays = [canon.const(v) for v in inputs]
        constant = all(a is not None or v is None for a, v in zip(arrays, inputs, strict=True))
        if constant and op_type not in RANDOM and _foldable(types, arrays):
            try:
                results = run(op_type, attributes, arrays, outputs)
            except NotEvaluable:
                pass
            else:
                return [self.const(a, op_type.lower()) for a in results]
        known = [_static(t) for t in types]
        if all(0 in shape and dtype != ir.DataType.STRING for dtype, shape in known):
            return [self.const(np.zeros(shape, dtype.numpy()), op_type.lower(), dtype) for dtype, shape in known]
        made = [_attribute(name, value) for name, value in attributes.items()]
        node = ir.Node("", op_type, inputs, made, num_outputs=outputs)
        for value, (dtype, shape) in zip(node.outputs, known, strict=True):
            value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
            value.name = self._names.new(self._label, op_type.lower())
        self.keep(node)
        return list(node.outputs)

    def keep(self, node: ir.Node) -> None:
        """Add a node made elsewhere."""
        node.meta["sources"] = self._sources
        self.nodes.append(node)

    def reshape(self, x: ir.Value, shape: Sequence[int]) -> ir.Value:
        """`x` in another shape (no 0 or -1 with a special meaning); `x` itself if that changes nothing."""
        if canon.shape(x) == tuple(shape):
            return x
        if math.prod(canon.shape(x)) != math.prod(shape):
            raise Opaque(f"shape {list(canon.shape(x))} cannot become {list(shape)}")
        return self.op("Reshape", x, self.ints(shape, "shape"), allowzero=int(0 in shape))

    def transpose(self, x: ir.Value, perm: Sequence[int]) -> ir.Value:
        """`x` with its axes reordered; `x` itself if that changes nothing."""
        return x if list(perm) == list(range(len(perm))) else self.op("Transpose", x, perm=tuple(perm))

    def cast(self, x: ir.Value, to: ir.DataType) -> ir.Value:
        """`x` in another (widened) element type; `x` itself if it has it."""
        to = widened(to)
        return x if canon.dtype(x) == to else self.op("Cast", x, to=int(to), saturate=1)

    def expand(self, x: ir.Value, shape: Sequence[int]) -> ir.Value:
        """`x` broadcast to exactly `shape`; `x` itself if it has it."""
        return x if canon.shape(x) == tuple(shape) else self.op("Expand", x, self.ints(shape, "shape"))

    def reduce(self, op_type: str, x: ir.Value, axes: Sequence[int], keepdims: bool) -> ir.Value:
        """A Reduce* over the given (positive) axes."""
        inputs = self.ints(axes, "axes")
        return self.op(op_type, x, inputs, keepdims=int(keepdims), noop_with_empty_axes=0)


def _attribute(name: str, value: Any) -> ir.Attr:
    if isinstance(value, np.ndarray):
        return ir.AttrTensor(name, ir.Tensor(value, name=name))
    if isinstance(value, str):
        return ir.AttrString(name, value)
    if isinstance(value, float):
        return ir.AttrFloat32(name, value)
    if isinstance(value, int):
        return ir.AttrInt64(name, value)
    kinds = {type(item) for item in value}
    if kinds == {str}:
        return ir.AttrStrings(name, value)
    return ir.AttrFloat32s(name, value) if float in kinds else ir.AttrInt64s(name, value)


def _foldable(types: Sequence[onnx.TypeProto], arrays: Sequence[Array | None]) -> bool:
    largest = max(FOLD_LIMIT, sum(a.nbytes for a in arrays if a is not None))
    for proto in types:
        if proto.HasField("tensor_type") and proto.tensor_type.HasField("shape"):
            dims = proto.tensor_type.shape.dim
            if math.prod(d.dim_value for d in dims) * ir.DataType(proto.tensor_type.elem_type).itemsize > largest:
                return False
    return True


def _static(proto: onnx.TypeProto) -> tuple[ir.DataType, Shape]:
    dims = proto.tensor_type.shape.dim
    if not proto.HasField("tensor_type") or not proto.tensor_type.HasField("shape"):
        raise Opaque("the type of its output depends on data")
    if not all(d.HasField("dim_value") for d in dims):
        raise Unsized("the shape of its output depends on data")
    shape = tuple(d.dim_value for d in dims)
    if min(shape, default=0) < 0:
        raise Opaque(f"its output would have the shape {list(shape)}")
    if (elements := math.prod(shape)) > canon.MOST_ELEMENTS:
        raise Opaque(f"its output would have {elements:,} elements; {canon.MOST_ELEMENTS:,} are the most")
    return ir.DataType(proto.tensor_type.elem_type), shape


def _type_proto(value: ir.Value) -> onnx.TypeProto:
    if value.shape is None or value.dtype is None or not all(isinstance(d, int) for d in value.shape):
        raise Opaque(f"its input {value.name!r} has no static shape")
    return helper.make_tensor_type_proto(value.dtype, canon.shape(value))


def infer(
    op_type: str,
    inputs: Sequence[ir.Value | None],
    outputs: int,
    attributes: Iterable[onnx.AttributeProto],
    version: int = canon.OPSET,
) -> list[onnx.TypeProto]:
    """The types of a node's outputs, by onnx's own inference (unknown ones are empty).

    Raises:
        Opaque: an input has no static shape, or the inputs do not fit the op.

    """
    names = ["" if v is None else f"i{i}" for i, v in enumerate(inputs)]
    results = [f"o{i}" for i in range(outputs)]
    node = onnx.NodeProto(op_type=op_type, input=names, output=results, attribute=attributes)
    types = {n: _type_proto(v) for n, v in zip(names, inputs, strict=True) if v is not None}
    data = {}
    for name, value in zip(names, inputs, strict=True):
        array = canon.const(value)
        if array is not None and array.size <= 4096 and (array.dtype == np.int64 or op_type in {"Range", "Resize"}):
            data[name] = numpy_helper.from_array(np.array(array))
    try:
        schema = onnx.defs.get_schema(op_type, version, "")
        found = shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=[helper.make_opsetid("", version)]
        )
    except (
        shape_inference.InferenceError,
        onnx.checker.ValidationError,
        onnx.defs.SchemaError,
        RuntimeError,
        ValueError,
    ) as error:
        raise Opaque(f"its inputs do not fit: {' '.join(str(error).split())}") from error
    if op_type in _LIKE_INPUT:
        return [types[names[0]]]
    if op_type == "MaxUnpool" and "i2" in data:  # onnx's inference does not look at a constant output_shape
        size = numpy_helper.to_array(data["i2"]).tolist()
        return [helper.make_tensor_type_proto(types["i0"].tensor_type.elem_type, size)]
    if op_type == "Resize" and "i2" in data and "i1" not in types:
        return [_resized(types["i0"], numpy_helper.to_array(data["i2"]))]
    return [found.get(name, onnx.TypeProto()) for name in results]


def _resized(data: onnx.TypeProto, scales: np.ndarray[Any, Any]) -> onnx.TypeProto:
    """The type of data resized by scales: the product is rounded down in float32, as onnxruntime does."""
    sizes = np.asarray([d.dim_value for d in data.tensor_type.shape.dim], np.float32)
    if not np.isfinite(scales).all():
        raise Opaque(f"its scales are {scales.tolist()}")
    return helper.make_tensor_type_proto(data.tensor_type.elem_type, np.floor(sizes * scales).astype(int).tolist())


def _proto(name: str, value: Any) -> onnx.AttributeProto:
    if isinstance(value, np.ndarray):
        value = numpy_helper.from_array(value, name)
    return helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS if value == () else None)
