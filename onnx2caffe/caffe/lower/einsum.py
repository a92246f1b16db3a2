"""Einsum as transpositions, reductions and matrix products (recipes 6.13)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnx2caffe.caffe.layers.base import Array
from onnx2caffe.caffe.lower.arithmetic import operands, product
from onnx2caffe.caffe.lower.blocks import reshape
from onnx2caffe.caffe.lower.dense import matmul
from onnx2caffe.caffe.lower.emitter import Emitter
from onnx2caffe.caffe.lower.gather import move
from onnx2caffe.caffe.lower.layout import expand, transpose
from onnx2caffe.caffe.lower.op import Op
from onnx2caffe.caffe.lower.reduce import reduce
from onnx2caffe.caffe.lower.registry import Refused, lowers
from onnx2caffe.caffe.net import Blob
from onnx2caffe.decompose.einsum import Labels, Roles, diagonal, parse, roles

__all__: list[str] = []


@dataclass(frozen=True)
class _Term:
    """A tensor with a label per axis."""

    labels: Labels
    value: Blob | Array


@lowers("Einsum")
def _einsum(op: Op, net: Emitter) -> Blob:
    """Terms two by two, from the left; what nobody else reads is summed as early as possible (recipes 6.13)."""
    values = operands(op)
    try:
        equation = parse(str(op.attribute("equation")), [value.shape for value in values])
    except ValueError as problem:
        raise Refused(f"equation {op.attribute('equation')!r}: {problem}") from problem
    terms = [_plain(net, _Term(*pair), equation.sizes) for pair in zip(equation.terms, values, strict=True)]
    while len(terms) > 1:
        a, b, *others = terms
        kept = {*equation.result, *(label for term in others for label in term.labels)}
        a, b = (_summed(net, x, {*kept, *y.labels}) for x, y in ((a, b), (b, a)))
        terms = [_product(net, a, b, kept, equation.sizes), *others]
    last = _summed(net, terms[0], equation.result)
    assert isinstance(last.value, Blob)
    present = [label for label in equation.result if label in last.labels]
    y = _ordered(net, last, present)
    sizes = [equation.sizes[label] for label in equation.result]
    ones = [size if label in present else 1 for label, size in zip(equation.result, sizes, strict=True)]
    return expand(net, reshape(net, y, ones), sizes)


def _plain(net: Emitter, term: _Term, sizes: Mapping[str, int]) -> _Term:
    """Repeated labels to their diagonal; axes of size 1 that are broadcast, dropped."""
    labels, value = term.labels, term.value
    distinct = tuple(dict.fromkeys(labels))
    if distinct != labels:
        value = (
            move(net, value, diagonal(labels, value.shape))
            if isinstance(value, Blob)
            else value.ravel()[diagonal(labels, value.shape)]
        )
    own = zip(distinct, value.shape, strict=True)
    kept = tuple((label, size) for label, size in own if size == sizes[label])
    return _Term(tuple(label for label, _ in kept), _reshaped(net, value, [size for _, size in kept]))


def _reshaped(net: Emitter, value: Blob | Array, shape: Sequence[int]) -> Blob | Array:
    return value.reshape(tuple(shape)) if isinstance(value, np.ndarray) else reshape(net, value, shape)


def _summed(net: Emitter, term: _Term, kept: Collection[str]) -> _Term:
    """The term without the labels nobody reads."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in kept)
    labels = tuple(label for label in term.labels if label in kept)
    if not axes:
        return term
    if isinstance(term.value, np.ndarray):
        return _Term(labels, np.asarray(term.value.sum(axis=axes)))
    return _Term(labels, reduce(net, "SUM", term.value, axes, keepdims=False))


def _ordered(net: Emitter, term: _Term, labels: Sequence[str]) -> Blob:
    """A computed term with its axes in another order."""
    assert isinstance(term.value, Blob)
    return transpose(net, term.value, [term.labels.index(label) for label in labels])


def _product(net: Emitter, a: _Term, b: _Term, kept: Collection[str], sizes: Mapping[str, int]) -> _Term:
    if isinstance(a.value, np.ndarray):
        if isinstance(b.value, np.ndarray):
            return _folded(a, b, kept)
        a, b = b, a
    plan = roles(a.labels, b.labels, kept)
    if not plan.inner and not (plan.first and plan.second):
        return _element_wise(net, a, b, plan)
    if isinstance(b.value, np.ndarray) and not plan.batch:
        return _matrix(net, a, b, plan, sizes)
    return _batched(net, a, b, plan, sizes)


def _folded(a: _Term, b: _Term, kept: Collection[str]) -> _Term:
    """Two constants."""
    labels = tuple(label for label in dict.fromkeys((*a.labels, *b.labels)) if label in kept)
    number = {label: k for k, label in enumerate(dict.fromkeys((*a.labels, *b.labels)))}
    axes = ([number[label] for label in term] for term in (a.labels, b.labels, labels))
    first, second, result = axes
    return _Term(labels, np.einsum(np.asarray(a.value), first, np.asarray(b.value), second, result))


def _element_wise(net: Emitter, a: _Term, b: _Term, plan: Roles) -> _Term:
    """Nothing is summed and one term holds all labels of the other: a product with broadcasting."""
    big, small = (b, a) if plan.second else (a, b)
    order = [label for label in big.labels if label in small.labels]
    if isinstance(small.value, np.ndarray):
        value: Blob | Array = small.value.transpose([small.labels.index(label) for label in order])
    else:
        value = _ordered(net, small, order)
    own = dict(zip(order, value.shape, strict=True))
    return _Term(
        big.labels, product(net, [big.value, _reshaped(net, value, [own.get(label, 1) for label in big.labels])])
    )


def _matrix(net: Emitter, a: _Term, b: _Term, plan: Roles, sizes: Mapping[str, int]) -> _Term:
    """A constant matrix on a run of axes, which the result's own axes replace."""
    assert isinstance(b.value, np.ndarray)
    labels, start = a.labels, a.labels.index(plan.inner[0]) if plan.inner else len(a.labels)
    if labels[start : start + len(plan.inner)] != plan.inner:
        labels, start = (*plan.first, *plan.inner), len(plan.first)
    before, behind = labels[:start], labels[start + len(plan.inner) :]
    seen = [math.prod(sizes[label] for label in run) for run in (before, plan.inner, behind)]
    order = [b.labels.index(label) for label in (*plan.second, *plan.inner)]
    matrix = b.value.transpose(order).reshape(-1, seen[1])
    y = net.recipe("axis_map", reshape(net, _ordered(net, a, labels), seen), 1, matrix)
    result = (*before, *plan.second, *behind)
    return _Term(result, reshape(net, y, [sizes[label] for label in result]))


def _batched(net: Emitter, a: _Term, b: _Term, plan: Roles, sizes: Mapping[str, int]) -> _Term:
    """One matrix product per batch element; a constant goes to the left, where it needs no transposition."""
    if isinstance(b.value, np.ndarray):
        rows, columns = plan.second, plan.first
        left: Blob | Array = b.value.transpose([b.labels.index(label) for label in (*plan.batch, *rows, *plan.inner)])
        right = _ordered(net, a, (*plan.batch, *plan.inner, *columns))
    else:
        rows, columns = plan.first, plan.second
        left = _ordered(net, a, (*plan.batch, *rows, *plan.inner))
        right = _ordered(net, b, (*plan.batch, *plan.inner, *columns))
    batch, m, k, n = (math.prod(sizes[label] for label in run) for run in (plan.batch, rows, plan.inner, columns))
    y = matmul(net, _reshaped(net, left, (batch, m, k)), reshape(net, right, (batch, k, n)))
    result = (*plan.batch, *rows, *columns)
    return _Term(result, reshape(net, y, [sizes[label] for label in result]))
