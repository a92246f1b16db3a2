"""Activation functions that exporters spell out become the ONNX op again.

HardSigmoid(α, β)(x) = clip(α·x + β, 0, 1), so clip(a·x + b, 0, h) = h·HardSigmoid(a/h, b/h)
HardSwish(x) = x·HardSigmoid(1/6, ½)(x)                   Gelu(x) = ½·x·(1 + erf(x/√2)),
its tanh form ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))    Mish(x) = x·tanh(Softplus(x))
Softplus(x) = log(1 + exp(x))     LogSoftmax = log(Softmax)     Sigmoid(x) = 1/(1 + exp(−x))
PRelu(x, s) = relu(x) − s·relu(−x)     LeakyRelu(α)(x) = max(x, α·x) for 0 ≤ α < 1
Clips of clips, with Relu, Max and Min by a constant as clips with one bound, are one clip.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.expressions import close, linear_form, polynomial, product
from onnx2caffe.passes.match import between, constant_operand, is_float, maker, only_reader, operands, scalar, source

__all__ = ["MergeClips", "RaiseActivations", "RaiseHardSigmoid"]

_TANH_CUBE = 0.044715
_TANH_SCALE = math.sqrt(2 / math.pi)


def _bounds(node: ir.Node) -> tuple[ir.Value, float, float] | None:
    """(x, lo, hi) of a node that clips x: Clip, Relu, or Max/Min with one number."""
    if node.op_type == "Relu":
        return source(node), 0.0, math.inf
    if node.op_type == "Clip":
        bounds = [node.inputs[i] if i < len(node.inputs) else None for i in (1, 2)]
        lo, hi = (None if bound is None else scalar(bound) for bound in bounds)
        known = all(number is not None or bound is None for bound, number in zip(bounds, (lo, hi), strict=True))
        return (source(node), -math.inf if lo is None else lo, math.inf if hi is None else hi) if known else None
    for x, other in operands(node) if len(node.inputs) == 2 else ():
        number = scalar(other)
        if number is not None and canon.shape(x) == canon.shape(node.outputs[0]):
            return (x, number, math.inf) if node.op_type == "Max" else (x, -math.inf, number)
    return None


class MergeClips(NodePass):
    """One clip for a chain of Clip, Relu, Max and Min by constants; Max and Min by a constant are clips."""

    claim = "clip[c,d](clip[a,b](x)) = clip[clip[c,d](a), clip[c,d](b)](x)"
    ops = frozenset({"Clip", "Max", "Min", "Relu"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Merge with the clips in front that only this node reads; respell Max, Min and Clip(0, ∞)."""
        found = _bounds(node)
        if found is None or not is_float(node.outputs[0]) or found[1] > found[2]:
            return False
        value, lo, hi = found
        inner_node = maker(value, *self.ops)
        inner = _bounds(inner_node) if inner_node is not None else None
        merged = []
        if inner_node is not None and inner is not None and only_reader(value) is not None and inner[1] <= inner[2]:
            value, *ends = inner
            lo, hi = (min(max(end, lo), hi) for end in ends)
            merged.append(inner_node)
        if lo == 0 and hi == math.inf:
            if node.op_type == "Relu" and not merged:
                return False
            edit.replace(node, "Relu", [value], merged=merged)
            return True
        if node.op_type == "Clip" and not merged:
            return False
        limits = [self._limit(number, name, node, edit) for number, name in ((lo, "min"), (hi, "max"))]
        edit.replace(node, "Clip", [value, *limits], merged=merged)
        return True

    @staticmethod
    def _limit(number: float, what: str, node: ir.Node, edit: Editor) -> ir.Value | None:
        if math.isinf(number):
            return None
        return edit.constant(np.array(number, dtype=np.float32), node.outputs[0], what)


class RaiseHardSigmoid(NodePass):
    """clip(a·x + b, 0, h), times 1/h unless h is 1, becomes HardSigmoid."""

    claim = "clip(a·x + b, 0, h)/h = HardSigmoid(a/h, b/h)"
    ops = frozenset({"Clip", "Div", "Mul"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Match at the Clip when h = 1, at the multiplication behind it otherwise."""
        whole = node.outputs[0]
        if not is_float(whole):
            return False
        value, scale, shift = (whole, 1.0, 0.0) if node.op_type == "Clip" else linear_form(whole)
        clip = maker(value, "Clip")
        found = _bounds(clip) if clip is not None else None
        if clip is None or found is None or shift != 0 or found[1] != 0 or not close(scale * found[2], 1.0):
            return False
        x, a, b = linear_form(found[0])
        if x is found[0] or a <= 0 or canon.shape(x) != canon.shape(whole):
            return False
        attributes = {"alpha": a * scale, "beta": b * scale}
        edit.replace(node, "HardSigmoid", [x], attributes, merged=between(node, x))
        return True


def _gate(value: ir.Value) -> Iterator[tuple[ir.Value, ir.Value, float]]:
    """All readings (x, g, c) of value = c·x·g."""
    parts = product(value)
    if len(parts.factors) == 2:
        a, b = parts.factors
        yield a, b, parts.scale
        yield b, a, parts.scale


def _is_hard_sigmoid(gate: ir.Value, x: ir.Value, scale: float) -> bool:
    """Whether scale·gate is HardSigmoid(1/6, ½)(x)."""
    node = maker(gate, "Clip", "HardSigmoid")
    if node is None:
        return False
    if node.op_type == "HardSigmoid":
        alpha, beta = (float(canon.attribute(node, name)) for name in ("alpha", "beta"))
        return source(node) is x and close(scale, 1.0) and close(alpha, 1 / 6) and close(beta, 0.5)
    bounds = _bounds(node)
    if bounds is None or bounds[1] != 0 or not close(scale * bounds[2], 1.0):
        return False
    line = polynomial(bounds[0], x)
    return line is not None and len(line) == 2 and close(line[0] * scale, 0.5) and close(line[1] * scale, 1 / 6)


def _gelu_form(gate: ir.Value, x: ir.Value, scale: float) -> str | None:
    """Which Gelu scale·x·gate is: gate = a·(1 + erf or tanh of the right argument) with scale·a = ½."""
    inner, a, b = linear_form(gate)
    node = maker(inner, "Erf", "Tanh")
    if node is None or not close(a, b) or not close(scale * a, 0.5):
        return None
    argument = polynomial(source(node), x)
    if argument is None or argument[0] != 0:
        return None
    if node.op_type == "Erf":
        return "none" if len(argument) == 2 and close(argument[1], math.sqrt(0.5)) else None
    if len(argument) != 4 or argument[2] != 0:
        return None
    return "tanh" if close(argument[1], _TANH_SCALE) and close(argument[3], _TANH_SCALE * _TANH_CUBE) else None


def _is_mish(gate: ir.Value, x: ir.Value, scale: float) -> bool:
    tanh = maker(gate, "Tanh")
    softplus = maker(source(tanh), "Softplus") if tanh is not None else None
    return softplus is not None and source(softplus) is x and close(scale, 1.0)


class RaiseActivations(NodePass):
    """HardSwish, Gelu, Mish, Softplus, LogSoftmax, Sigmoid, PRelu and LeakyRelu from their definitions."""

    claim = "an activation written out by its definition is the ONNX op"
    ops = frozenset({"Add", "Div", "Log", "Max", "Mul", "Reciprocal"})

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Match the definition that ends in `node`."""
        if not is_float(node.outputs[0]):
            return False
        found = {
            "Add": _prelu,
            "Div": _sigmoid_or_gated,
            "Log": _log,
            "Max": _leaky,
            "Mul": _gated,
            "Reciprocal": _sigmoid_or_gated,
        }[node.op_type](node, edit)
        if found is None:
            return False
        op, inputs, attributes = found
        if canon.shape(inputs[0]) != canon.shape(node.outputs[0]):
            return False
        edit.replace(node, op, inputs, attributes, merged=between(node, inputs[0]))
        return True


_Found = tuple[str, list[ir.Value], dict[str, float | int | str]]


def _gated(node: ir.Node, edit: Editor) -> _Found | None:
    del edit
    for x, gate, scale in _gate(node.outputs[0]):
        if _is_hard_sigmoid(gate, x, scale):
            return "HardSwish", [x], {}
        form = _gelu_form(gate, x, scale)
        if form is not None:
            return "Gelu", [x], {"approximate": form}
        if _is_mish(gate, x, scale):
            return "Mish", [x], {}
    return None


def _sigmoid_or_gated(node: ir.Node, edit: Editor) -> _Found | None:
    """1/(1 + exp(−x)), or a gate whose last step is a division by a number."""
    if node.op_type == "Div" and scalar(source(node, 1)) is not None:
        return _gated(node, edit)
    if node.op_type == "Div" and scalar(source(node, 0)) != 1:
        return None
    power, a, b = linear_form(node.inputs[-1] or node.outputs[0])
    exp = maker(power, "Exp")
    if exp is None or a != 1 or b != 1:
        return None
    x, sign, shift = linear_form(source(exp))
    return ("Sigmoid", [x], {}) if sign == -1 and shift == 0 else None


def _log(node: ir.Node, edit: Editor) -> _Found | None:
    del edit
    softmax = maker(source(node), "Softmax")
    if softmax is not None:
        return "LogSoftmax", [source(softmax)], {"axis": int(canon.attribute(softmax, "axis"))}
    power, a, b = linear_form(source(node))
    exp = maker(power, "Exp")
    return ("Softplus", [source(exp)], {}) if exp is not None and a == 1 and b == 1 else None


def _leaky(node: ir.Node, edit: Editor) -> _Found | None:
    del edit
    for x, other in operands(node) if len(node.inputs) == 2 else ():
        line = polynomial(other, x)
        if line is not None and len(line) == 2 and line[0] == 0 and 0 <= line[1] < 1:
            return "LeakyRelu", [x], {"alpha": float(line[1])}
    return None


def _prelu(node: ir.Node, edit: Editor) -> _Found | None:
    for positive, negative in operands(node):
        relu, product_node = maker(positive, "Relu"), maker(negative, "Mul")
        found = constant_operand(product_node) if product_node is not None else None
        other = maker(found[0], "Relu") if found is not None else None
        if relu is None or found is None or other is None:
            continue
        x = source(relu)
        line = polynomial(source(other), x)
        if line is not None and len(line) == 2 and line[0] == 0 and line[1] == -1:
            return "PRelu", [x, edit.constant(-found[1], node.outputs[0], "slope")], {}
    return None
