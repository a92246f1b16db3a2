"""Einsum: terms two by two, from the left, as transpositions, sums and matrix products."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from onnx2caffe.decompose.einsum import Labels, diagonal, parse, roles
from onnx2caffe.nodeview import Refused
from onnx2caffe.tvm.net import Net, Op, Value
from onnx2caffe.tvm.registry import BOTH, emits

__all__: list[str] = []


@dataclass(frozen=True)
class _Term:
    """A tensor with a label per axis, none twice."""

    labels: Labels
    value: Value


@emits(BOTH, "Einsum")
def einsum(op: Op, net: Net) -> Value:
    """What nobody else reads is summed as early as possible."""
    try:
        equation = parse(op.attribute("equation"), [value.shape for value in op.values])
    except ValueError as problem:
        raise Refused(f"equation {op.attribute('equation')!r}: {problem}") from problem
    sizes = equation.sizes
    terms = [_plain(net, labels, value, sizes) for labels, value in zip(equation.terms, op.values, strict=True)]
    while len(terms) > 1:
        a, b, *others = terms
        kept = {*equation.result, *(label for term in others for label in term.labels)}
        terms = [_product(net, _summed(net, a, {*kept, *b.labels}), _summed(net, b, {*kept, *a.labels}), kept), *others]
    last = _summed(net, terms[0], equation.result)
    present = [label for label in equation.result if label in last.labels]
    ones = [sizes[label] if label in present else 1 for label in equation.result]
    return net.broadcast(net.reshape(_ordered(net, last, present), ones), op.outputs[0])


def _plain(net: Net, labels: Labels, value: Value, sizes: Mapping[str, int]) -> _Term:
    """Repeated labels to their diagonal; axes of size 1 that are broadcast, dropped."""
    distinct = tuple(dict.fromkeys(labels))
    if distinct != labels:
        places = net.const(diagonal(labels, value.shape))
        value = net.take(net.reshape(value, (math.prod(value.shape),)), places, 0)
    kept = {label: size for label, size in zip(distinct, value.shape, strict=True) if size == sizes[label]}
    return _Term(tuple(kept), net.reshape(value, list(kept.values())))


def _summed(net: Net, term: _Term, kept: Collection[str]) -> _Term:
    """The term without the labels nobody reads."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in kept]
    if not axes:
        return term
    shape = [size for axis, size in enumerate(term.value.shape) if axis not in axes]
    labels = tuple(label for label in term.labels if label in kept)
    return _Term(labels, net("sum", term.value, shape=shape, axis=axes, keepdims=False))


def _ordered(net: Net, term: _Term, labels: Sequence[str]) -> Value:
    return net.transpose(term.value, [term.labels.index(label) for label in labels])


def _product(net: Net, a: _Term, b: _Term, kept: Collection[str]) -> _Term:
    """A stack of matrix products over what both have and keep; with nothing to sum, a product with broadcasting."""
    plan = roles(a.labels, b.labels, kept)
    labels = (*plan.batch, *plan.first, *plan.second)
    if not plan.inner:
        return _Term(labels, net("multiply", _spread(net, a, labels), _spread(net, b, labels)))
    left = _ordered(net, a, (*plan.batch, *plan.first, *plan.inner))
    right = _ordered(net, b, (*plan.batch, *plan.inner, *plan.second))
    batch, rows = len(plan.batch), len(plan.first)
    outer, height, width = left.shape[:batch], left.shape[batch : batch + rows], right.shape[batch + len(plan.inner) :]
    inner = math.prod(left.shape[batch + rows :])
    y = net.matmul(
        net.reshape(left, (*outer, math.prod(height), inner)), net.reshape(right, (*outer, inner, math.prod(width)))
    )
    return _Term(labels, net.reshape(y, (*outer, *height, *width)))


def _spread(net: Net, term: _Term, labels: Sequence[str]) -> Value:
    """The term with an axis of size 1 for each label that it lacks."""
    value = _ordered(net, term, [label for label in labels if label in term.labels])
    own = dict(zip(term.labels, term.value.shape, strict=True))
    return net.reshape(value, [own.get(label, 1) for label in labels])
