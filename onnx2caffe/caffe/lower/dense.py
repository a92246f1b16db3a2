"""Matrix products: MatMul and Gemm with constants on either side, per head, or between two activations."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from onnx2caffe.caffe.layers import Convolution, InnerProduct, Scale
from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import Operand, affine, linear, operand, power
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.layout import expand, tile, transpose
from onnx2caffe.caffe.lower.maps import pointwise
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.registry import Refused, lowers, recipe
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.matmul import Product, product

__all__ = ["LARGEST_PRODUCT", "matmul"]

_DENSE = frozenset({"Elu", "Gemm", "LeakyRelu", "PRelu", "Relu", "Sigmoid", "Softmax", "Tanh"})

LARGEST_PRODUCT = 1 << 26
"""Floats of the largest intermediate blob that a product of two activations may make (256 MB)."""


def matmul(net: Emitter, a: Operand, b: Operand) -> Blob:
    """The product a @ b by ONNX's rules; at most one operand is an array (a constant).

    Raises:
        Refused: both are computed and the product needs more than `LARGEST_PRODUCT` floats.

    """
    sizes = product(a.shape, b.shape)
    if isinstance(b, np.ndarray):
        assert isinstance(a, Blob)
        return reshape(net, _times_constant(net, a, b, sizes), sizes.result)
    if isinstance(a, np.ndarray):
        return reshape(net, _constant_times(net, a, b, sizes), sizes.result)
    return reshape(net, _activations(net, a, b, sizes), sizes.result)


def _times_constant(net: Emitter, x: Blob, b: Array, sizes: Product) -> Blob:
    """Constant on the right: InnerProduct along the last axis (recipes 6.1), or one matrix per head (6.7)."""
    if math.prod(sizes.right) == 1:
        return _inner_product(net, x, b.reshape(sizes.inner, sizes.columns).T)
    if math.prod(sizes.left) == 1:
        return _one_times_many(net, x, b, sizes)
    rank = len(sizes.batch)
    swap = (*range(rank), rank + 1, rank)
    turned = transpose(net, x, swap, (*sizes.left, sizes.rows, sizes.inner))
    heads = b.reshape(*sizes.right, sizes.inner, sizes.columns).swapaxes(-1, -2)
    y = _heads(net, turned, heads, sizes.rows, sizes)
    return transpose(net, y, swap, (*sizes.batch, sizes.columns, sizes.rows))


def _constant_times(net: Emitter, a: Array, x: Blob, sizes: Product) -> Blob:
    """Constant on the left: a 1x1 Convolution with the inner axis as channels (recipes 6.5), or one per head (6.7)."""
    if math.prod(sizes.left) > 1:
        y = reshape(net, x, (*sizes.right, sizes.inner, sizes.columns))
        heads = a.reshape(*sizes.left, sizes.rows, sizes.inner)
        return _heads(net, y, heads, sizes.columns, sizes)
    matrix = a.reshape(sizes.rows, sizes.inner)
    if sizes.columns == 1:
        return _inner_product(net, reshape(net, x, (*sizes.right, sizes.inner)), matrix)
    return net.recipe("axis_map", reshape(net, x, (math.prod(sizes.right), sizes.inner, sizes.columns)), 1, matrix)


def _inner_product(net: Emitter, x: Blob, weights: Array, bias: Array | None = None, *, last: bool = False) -> Blob:
    """Rows of `x` times weights (out, in), along the last axis. `last`: dense layers and activations alone follow."""
    return net.recipe("inner_product", x, _float(weights), None if bias is None else _float(bias), last)


@recipe("inner_product", "InnerProduct")
def _inner_product_layer(net: Emitter, x: Blob, weights: Array, bias: Array | None, last: bool) -> Blob:
    """InnerProduct along the last axis (recipes 6.1)."""
    blobs = (weights,) if bias is None else (weights, bias)
    return net(InnerProduct(num_output=len(weights), axis=len(x.shape) - 1, bias_term=bias is not None, blobs=blobs), x)


@recipe("inner_product", "last")
def _inner_product_at_the_end(net: Emitter, x: Blob, weights: Array, bias: Array | None, last: bool) -> Blob:
    """InnerProduct on a vector where nothing else follows: the NNIE's neighbour rules (nnie §1 W08)."""
    if not last:
        raise Refused("other layers than dense ones and activations follow")
    return _inner_product_of_vector(net, x, weights, bias, last)


@recipe("inner_product", "vector")
def _inner_product_of_vector(net: Emitter, x: Blob, weights: Array, bias: Array | None, last: bool) -> Blob:
    """InnerProduct on a vector: the NNIE knows no other (recipes 6.1)."""
    if len(x.shape) != 2:
        raise Refused(f"shape {list(x.shape)} is no vector")
    return _inner_product_layer(net, x, weights, bias, last)


@recipe("inner_product", "conv")
def _inner_product_by_convolution(net: Emitter, x: Blob, weights: Array, bias: Array | None, last: bool) -> Blob:
    """A vector as a map of one place: Convolution 1×1, which may stand anywhere (nnie §1 W08)."""
    if len(x.shape) != 2:
        raise Refused(f"shape {list(x.shape)} is no vector")
    y = pointwise(net, reshape(net, x, (*x.shape, 1, 1)), weights, bias)
    return reshape(net, y, y.shape[:2])


@recipe("inner_product", "axis_map")
def _inner_product_by_map(net: Emitter, x: Blob, weights: Array, bias: Array | None, last: bool) -> Blob:
    """The recipe "axis_map" on the last axis, then the bias (recipes 6.2)."""
    y = net.recipe("axis_map", x, len(x.shape) - 1, weights)
    return y if bias is None else affine(net, y, 1.0, bias)


def _one_times_many(net: Emitter, x: Blob, b: Array, sizes: Product) -> Blob:
    """The same rows times every matrix of a constant batch: one InnerProduct, then the batch axis in front."""
    batch = math.prod(sizes.right)
    weights = b.reshape(batch, sizes.inner, sizes.columns).swapaxes(1, 2).reshape(-1, sizes.inner)
    y = _inner_product(net, reshape(net, x, (sizes.rows, sizes.inner)), weights)
    return transpose(net, y, (1, 0, 2), (sizes.rows, batch, sizes.columns))


def _heads(net: Emitter, x: Blob, matrices: Array, width: int, sizes: Product) -> Blob:
    """Constant matrices (*batch', out, inner) times x (*batch', inner, width): a 1x1 Convolution with a group per head.

    Leading batch axes that the constant does not have stay Caffe's batch.
    """
    outputs, inner = matrices.shape[-2:]
    rank = len(sizes.batch)
    shared = next(i for i, size in enumerate(matrices.shape) if size != 1)
    x = expand(net, x, (*sizes.batch, inner, width))
    heads = np.broadcast_to(matrices, (*matrices.shape[:shared], *sizes.batch[shared:], outputs, inner))
    group = math.prod(sizes.batch[shared:])
    layer = Convolution(
        num_output=group * outputs,
        kernel_size=(1, 1),
        group=group,
        bias_term=False,
        blobs=(_float(heads).reshape(group * outputs, inner, 1, 1),),
    )
    y = net(layer, reshape(net, x, (math.prod(sizes.batch[:shared]), group * inner, width, 1)))
    return reshape(net, y, (*sizes.batch[:rank], outputs, width))


def _activations(net: Emitter, a: Blob, b: Blob, sizes: Product) -> Blob:
    """Both computed: b repeated for every row, scaled by a's elements, summed over the inner axis (recipes 6.8).

    Scale with two bottoms broadcasts a (B, rows, inner) over the columns of b (B, rows, inner, columns).
    """
    if sizes.multiplications > LARGEST_PRODUCT:
        raise Refused(
            f"the product of two activations {list(a.shape)} x {list(b.shape)} needs {sizes.multiplications} floats"
            f" (at most {LARGEST_PRODUCT})"
        )
    try:
        return _repeated_and_scaled(net, a, b, sizes)
    except Refused as problem:
        raise Refused(f"the product of two activations {list(a.shape)} x {list(b.shape)}: {problem}") from problem


def _repeated_and_scaled(net: Emitter, a: Blob, b: Blob, sizes: Product) -> Blob:
    batch, rows, inner, columns = math.prod(sizes.batch), sizes.rows, sizes.inner, sizes.columns
    left = expand(net, reshape(net, a, (*sizes.left, rows, inner)), (*sizes.batch, rows, inner))
    right = expand(net, reshape(net, b, (*sizes.right, inner, columns)), (*sizes.batch, inner, columns))
    copies = tile(net, reshape(net, right, (batch, 1, inner, columns)), 1, rows)
    terms = net(Scale(axis=0, num_axes=3), copies, reshape(net, left, (batch, rows, inner)))
    if inner == 1:
        return terms
    return net.recipe("axis_map", reshape(net, terms, (batch * rows, inner, columns)), 1, np.ones((1, inner)))


def _float(array: Array) -> Array:
    return array.astype(np.float32, copy=False)


@lowers("MatMul")
def _matmul(op: Op, net: Emitter) -> Blob:
    """InnerProduct or 1×1 Convolution; two activations by Tile, Scale and a sum (recipes 6.1–6.9)."""
    return matmul(net, operand(op, 0), operand(op, 1))


@lowers("Gemm")
def _gemm(op: Op, net: Emitter) -> Blob:
    """InnerProduct with alpha in its weights and beta * C in its bias where they are constant (recipes 6.11, 6.12)."""
    a, b = (_turned(net, operand(op, i), op.attribute(name, 0)) for i, name in enumerate(("transA", "transB")))
    alpha, beta = float(op.attribute("alpha", 1.0)), float(op.attribute("beta", 1.0))
    columns = op.outputs[0][1]
    c = op.const(2)
    if isinstance(b, np.ndarray):
        assert isinstance(a, Blob)
        weights = b.T if alpha == 1 else np.float32(alpha) * b.T
        if c is not None and beta and (c.size == 1 or c.size == columns == c.shape[-1]):
            bias = np.broadcast_to(np.float32(beta) * c.reshape(-1), (columns,))
            return _inner_product(net, a, weights, bias, last=_ends(op.node))
        y = _inner_product(net, a, weights, last=not (op.has(2) and beta) and _ends(op.node))
    else:
        y = power(net, matmul(net, a, b), scale=alpha)
    return linear(net, [(y, 1.0), (operand(op, 2), beta)]) if op.has(2) and beta else y


def _ends(node: ir.Node) -> bool:
    """Whether nothing but dense layers and activations follow a node."""
    return all(use.node.op_type in _DENSE and _ends(use.node) for use in node.outputs[0].uses())


def _turned(net: Emitter, operand: Operand, flag: int) -> Operand:
    if not flag:
        return operand
    return operand.T if isinstance(operand, np.ndarray) else transpose(net, operand, (1, 0))
