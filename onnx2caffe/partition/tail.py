"""Where the accelerator's part ends: what eight bits ruin belongs on the CPU.

That is the arithmetic by which a detector turns maps into boxes (nnie §18.8: a grid of coordinates up to 640 and sizes
of a few pixels share one range), and functions whose error grows above a tenth (recipes §19): exponentials, logarithms,
decisions near their threshold. Sigmoid, Softmax, the integral over bins, and whatever only moves values, are safe.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.partition.wiring import Wiring

__all__ = ["TAILS", "behind_weights", "decoding", "joining", "ruined"]

TAILS = ("auto", "none", "full")

_MOVERS = frozenset({"Reshape", "Transpose", "Slice", "Split", "Gather", "Cast", "Pad", "Expand", "Tile"})
_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Neg"})
_LOGARITHMS = frozenset({"Log", "LogSoftmax", "ReduceLogSum", "ReduceLogSumExp"})
_DECISIONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Sign"})
_ARRAYS = np.ndarray[Any, Any]


def behind_weights(wiring: Wiring, weights: Mapping[ir.Node, int]) -> set[ir.Node]:
    """The nodes without a layer with weights behind them; an integral over bins counts as none."""
    heavy = [node for node, weight in weights.items() if weight and not _is_integral(node)]
    return set(wiring.nodes) - wiring.ancestors(heavy)


def decoding(wiring: Wiring, tail: AbstractSet[ir.Node]) -> set[ir.Node]:
    """The first decode arithmetic on each path to an output, and all behind it.

    A node of `tail` begins a decode when it is an Exp, or adds or multiplies by numbers that differ from place to place
    (a grid). Arithmetic with constants that only leads there, such as `2 * x - 0.5` before a grid, belongs to it.
    """
    return _from(wiring, {node for node in tail if _decodes(node)}, tail)


def joining(wiring: Wiring, tail: AbstractSet[ir.Node]) -> set[ir.Node]:
    """The first Concat of unlike tensors (boxes with scores) on each path, arithmetic that leads there, all behind."""
    return _from(wiring, {n for n in tail if n.op_type == "Concat" and _joins_unlike(wiring, n, tail)}, tail)


def ruined(wiring: Wiring, tail: AbstractSet[ir.Node]) -> set[ir.Node]:
    """The first logarithm or decision of `tail` on each path, and all behind it (an Exp begins a decode)."""
    return wiring.closure(node for node in tail if node.op_type in _LOGARITHMS | _DECISIONS)


def _is_integral(node: ir.Node) -> bool:
    """Whether a product's weights are 0, 1, 2 …, or such a ramp times a constant: the mean of a distribution's bins."""
    array = canon.const(node.inputs[1]) if len(node.inputs) > 1 else None
    if array is None or array.size < 3 or max(array.shape) != array.size:
        return False
    steps = np.diff(array.reshape(-1).astype(np.float64))
    return bool(steps[0] != 0 and np.allclose(steps, steps[0]))


def _decodes(node: ir.Node) -> bool:
    return node.op_type == "Exp" or (node.op_type in _ARITHMETIC and any(map(_is_grid, _constants(node))))


def _constants(node: ir.Node) -> Iterator[_ARRAYS]:
    return (array for value in node.inputs if (array := canon.const(value)) is not None)


def _is_grid(array: _ARRAYS) -> bool:
    """Whether the numbers differ along more than one axis, as coordinates do: channel constants differ along one."""
    varying = [
        axis
        for axis in range(array.ndim)
        if array.shape[axis] > 1 and bool((array != np.take(array, [0], axis=axis)).any())
    ]
    return len(varying) > 1


def _from(wiring: Wiring, begin: AbstractSet[ir.Node], tail: AbstractSet[ir.Node]) -> set[ir.Node]:
    return wiring.closure(begin | _leading_to(wiring, begin, tail))


def _leading_to(wiring: Wiring, begin: Iterable[ir.Node], tail: AbstractSet[ir.Node]) -> set[ir.Node]:
    found: set[ir.Node] = set()
    seen: set[ir.Node] = set()
    stack = list(begin)
    while stack:
        for node in wiring.before(stack.pop()):
            arithmetic = node.op_type in _ARITHMETIC and any(True for _ in _constants(node))
            if node in seen or node not in tail or not (arithmetic or node.op_type in _MOVERS):
                continue
            seen.add(node)
            stack.append(node)
            if arithmetic:
                found.add(node)
    return found


def _joins_unlike(wiring: Wiring, node: ir.Node, tail: AbstractSet[ir.Node]) -> bool:
    """Whether a Concat joins tensors of different meaning: other last functions, or other channels at the same places.

    The levels of a pyramid are alike: their maps differ in size.
    """
    kinds = [_kind(wiring, value, tail) for value in wiring.reads[node]]
    if len({function for functions, _ in kinds for function in functions}) > 1:
        return True
    channels: dict[tuple[int, ...], set[int]] = {}
    for _, maps in kinds:
        for place, count in maps:
            channels.setdefault(place, set()).add(count)
    return any(len(counts) > 1 for counts in channels.values())


_Kind = tuple[frozenset[str], frozenset[tuple[tuple[int, ...], int]]]


def _kind(wiring: Wiring, value: ir.Value, tail: AbstractSet[ir.Node]) -> _Kind:
    """The last functions that made a value's numbers, movers aside, and the (places, channels) of the maps behind."""
    functions: set[str] = set()
    maps: set[tuple[tuple[int, ...], int]] = set()
    stack, seen = [(value, False)], set()
    while stack:
        one, known = stack.pop()
        maker = wiring.makers.get(one)
        if (one, known) in seen:
            continue
        seen.add((one, known))
        if maker is None or maker not in tail or _is_heavy(maker):
            functions |= set() if known else {"weights"}
            maps |= _map(one)
            continue
        moves = maker.op_type in _MOVERS or maker.op_type == "Concat"
        if not moves and not known:
            functions.add(maker.op_type)
        stack.extend((before, known or not moves) for before in wiring.reads[maker])
    return frozenset(functions), frozenset(maps)


def _is_heavy(node: ir.Node) -> bool:
    return node.op_type in {"Conv", "ConvTranspose", "Gemm", "MatMul"} and not _is_integral(node)


def _map(value: ir.Value) -> set[tuple[tuple[int, ...], int]]:
    try:
        shape = canon.shape(value)
    except ValueError:
        return set()
    return {(shape[2:], math.prod(shape[1:2]))} if shape else set()
