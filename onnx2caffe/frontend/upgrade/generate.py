"""Ops that make values out of shapes and attributes: all of them constants here, except random ones."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.frontend.builder import RANDOM, Builder, Opaque, widened
from onnx2caffe.frontend.reader import Reader
from onnx2caffe.frontend.upgrade.registry import inlined, refused, unchanged, upgrades

__all__: list[str] = []

inlined("BlackmanWindow", 17)
inlined("HammingWindow", 17)
inlined("HannWindow", 17)
unchanged("MelWeightMatrix", 17)

refused("it draws random numbers", *RANDOM)


@upgrades("Constant", 1, 9, 11, 12, 13, 19, 21, 23, 24, 25)
def constant(node: Reader, build: Builder) -> ir.Value:
    """An initializer."""
    if node.given("value"):
        return build.const(node.tensor("value"), "value")
    if node.given("value_float"):
        return build.const(np.float32(node.number("value_float")), "value")
    if node.given("value_floats"):
        return build.const(np.asarray(node.numbers("value_floats"), np.float32), "value")
    if node.given("value_int"):
        return build.const(np.int64(node.integer("value_int")), "value")
    if node.given("value_ints"):
        return build.const(np.asarray(node.integers("value_ints"), np.int64), "value")
    raise Opaque("a Constant of strings or of sparse data")


@upgrades("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def constant_of_shape(node: Reader, build: Builder) -> ir.Value:
    """A filled tensor of a constant shape."""
    value = node.tensor("value") if node.given("value") else np.zeros(1, np.float32)
    if widened(ir.DataType.from_numpy(value.dtype)) == ir.DataType.FLOAT:
        value = value.astype(np.float32)
    shape = node.int_list(0, "shape") or []
    return build.op("ConstantOfShape", build.ints(shape, "shape"), value=value)


@upgrades("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
def shape(node: Reader, build: Builder) -> ir.Value:
    """The (static) shape, or the part from `start` to `end`."""
    dims = node.shape()
    start, end = node.integer("start", 0), node.integer("end", len(dims))
    return build.ints(dims[slice(*slice(start, end).indices(len(dims)))], "shape")


@upgrades("Size", 1, 13, 19, 21, 23, 24, 25)
def size(node: Reader, build: Builder) -> ir.Value:
    """The number of elements."""
    return build.const(np.asarray(np.prod(node.shape(), dtype=np.int64)), "size")


@upgrades("Range", 11, 27)
def range_(node: Reader, build: Builder) -> ir.Value:
    """Evenly spaced numbers between constants."""
    node.integer("stash_type", 1)
    for index, what in enumerate(("start", "limit", "step")):
        node.constant(index, what)
    return build.op("Range", *(build.reshape(value, ()) for value in node.present))


@upgrades("EyeLike", 9, 22)
def eye_like(node: Reader, build: Builder) -> ir.Value:
    """A diagonal of ones in the shape of the input."""
    dtype = ir.DataType(node.integer("dtype", int(canon.dtype(node.input()))))
    rows, columns = node.shape()
    eye = np.eye(rows, columns, k=node.integer("k", 0))
    return build.const(eye.astype(widened(dtype).numpy()), "eye")
