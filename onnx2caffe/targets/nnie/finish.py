"""Net to Net for the mapper: heads grouped, activations in place, real outputs, names that fit the `.wk`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from onnx2caffe.caffe.layers import Concat, Input, Reshape
from onnx2caffe.caffe.layers.base import Shape
from onnx2caffe.caffe.names import unlike
from onnx2caffe.caffe.net import Net, Placed
from onnx2caffe.caffe.rename import renamed
from onnx2caffe.targets.nnie.segments import MARKS

__all__ = ["NAME_LENGTH", "PRODUCERS", "for_mapper", "like_marks", "plain"]

NAME_LENGTH = 31
"""Characters of a segment's inputs and outputs that the `.wk` keeps (nnie W05)."""

_ACTIVATIONS = frozenset({"ReLU", "PReLU", "Sigmoid", "TanH", "ELU", "BNLL", "AbsVal"})
PRODUCERS = frozenset(
    {"Convolution", "DepthwiseConv", "Deconvolution", "InnerProduct", "BatchNorm", "Scale", "Bias", "Eltwise"}
)
"""Layers whose top is memory of its own: in place behind a Reshape, an activation would change what that shares."""

_UNKNOWN = re.compile(r"[^A-Za-z0-9_./:-]")
_WIDTH = 4096
"""Of a map (nnie W03)."""

_SHORT = 2
"""A row of so few values fills at most half of the memory it takes (nnie W24)."""


def for_mapper(net: Net, names: Mapping[str, str]) -> Net:
    """A finished net as the mapper likes it; `names`: output blob -> the name the user wants for it.

    `twins` and `moments` of the result say where the values of all blobs of `net` are.
    """
    result = _in_place(_grouped(_unread_outputs(_stored(_joined(net)))))
    wishes = {new: names.get(old, old) for old, new in zip(net.outputs, result.outputs, strict=True)}
    return _named(result, wishes)


def _stored(net: Net) -> Net:
    """Outputs whose rows fill the board's memory (nnie §18.11); who reads them reshapes anyway."""
    for blob in dict.fromkeys(net.outputs):
        if _is_thin(net.shapes[blob]):
            net = _filled(net, blob)
    return net


def _is_thin(shape: Shape) -> bool:
    """Whether rows of one element, each padded to the stride, hold the values: three axes, or columns."""
    return len(shape) == 3 or (len(shape) == 4 and shape[3] == 1 and shape[2] > 1)


def _filled(net: Net, output: str) -> Net:
    """The net with a thin output as a map or a vector: another Reshape, none, or one more."""
    if output in net.inputs:
        return _reshaped_input(net, output)
    makers = {top: placed for placed in net for top in placed.tops}
    functions = [output]
    while _is_function_of_one_reader(net, makers[functions[-1]]):
        functions.append(makers[functions[-1]].bottoms[0])
    maker = makers[functions[-1]]
    if not isinstance(maker.layer, Reshape) or net.readers(output):
        return _reshaped_behind(net, output)
    (source,) = maker.bottoms
    if _is_thin(net.shapes[source]):
        shape = _full(net.shapes[output])
        other = replace(maker, layer=Reshape(shape=(0, *shape[1:])))
        layers = [other if placed is maker else placed for placed in net]
        return replace(net, layers=layers, shapes=net.shapes | dict.fromkeys(functions, shape))
    return _without(net, maker, functions)


def _is_function_of_one_reader(net: Net, placed: Placed) -> bool:
    """Whether the layer computes element by element, and nobody else reads what it does."""
    return placed.layer.type in _ACTIVATIONS - {"PReLU"} and (
        len(net.readers(placed.bottoms[0])) == 1 and placed.bottoms[0] not in net.outputs
    )


def _without(net: Net, reshape: Placed, functions: Sequence[str]) -> Net:
    """The net without a Reshape; `functions`: the blobs from the output back to the Reshape's top."""
    (source,), (top,) = reshape.bottoms, reshape.tops
    shapes = net.shapes | dict.fromkeys(functions, net.shapes[source])
    del shapes[top]
    layers = [
        replace(placed, bottoms=tuple(source if blob == top else blob for blob in placed.bottoms))
        for placed in net
        if placed is not reshape
    ]
    outputs = [source if blob == top else blob for blob in net.outputs]
    twins = {old: source if blob == top else blob for old, blob in net.twins.items()} | {top: source}
    return replace(net, layers=layers, shapes=shapes, outputs=outputs, twins=twins)


def _reshaped_behind(net: Net, output: str) -> Net:
    """The net with a Reshape that bears the output's name; the blob before gets another."""
    inner = unlike(f"{output}__thin", net.shapes)
    shape = _full(net.shapes[output])
    layers = [
        replace(
            placed,
            bottoms=tuple(inner if blob == output else blob for blob in placed.bottoms),
            tops=tuple(inner if blob == output else blob for blob in placed.tops),
        )
        for placed in net
    ]
    name = unlike(f"{output}__stored", {placed.name for placed in net})
    layers.append(Placed(name, Reshape(shape=(0, *shape[1:])), (inner,), (output,)))
    return replace(net, layers=layers, shapes=net.shapes | {inner: net.shapes[output], output: shape})


def _reshaped_input(net: Net, output: str) -> Net:
    """The net with a Reshape of an input that is an output too: the input keeps its name."""
    top, shape = unlike(f"{output}__stored", net.shapes), _full(net.shapes[output])
    layers = [*net, Placed(top, Reshape(shape=(0, *shape[1:])), (output,), (top,))]
    outputs = [top if blob == output else blob for blob in net.outputs]
    return replace(net, layers=layers, shapes=net.shapes | {top: shape}, outputs=outputs)


def _full(shape: Shape) -> Shape:
    """A shape for as many values: the longest rows that fit the NNIE, or a vector where there are only short ones."""
    batch, *rest = shape
    inner = [size for size in rest if size > 1]
    if len(inner) < 2:
        return batch, math.prod(inner)
    *outer, last = inner
    if last <= _SHORT:
        last *= outer.pop()
    width = max(size for size in range(1, _WIDTH + 1) if last % size == 0)
    if width == 1:
        return batch, math.prod(inner)
    if last > width:
        outer.append(last // width)
    *planes, rows = outer or [1]
    return batch, math.prod(planes), rows, width


def _joined(net: Net) -> Net:
    """Tops that nobody reads count as outputs: those of one Slice become a single one."""
    read = {blob for placed in net for blob in placed.bottoms} | set(net.outputs)
    layers: list[Placed] = []
    shapes = dict(net.shapes)
    for placed in net:
        layers.append(placed)
        stray = [top for top in placed.tops if top not in read]
        axis = getattr(placed.layer, "axis", None)
        if len(stray) < 2 or axis is None:
            continue
        join = Concat(axis=axis)
        top = unlike(f"{placed.name}__unread", shapes)
        (shapes[top],) = join.infer([net.shapes[blob] for blob in stray])
        layers.append(Placed(top, join, tuple(stray), (top,), placed.sources))
    return replace(net, layers=layers, shapes=shapes)


def _unread_outputs(net: Net) -> Net:
    """An output that is also read inside is none to the mapper: a Concat of one blob, seen compiled, copies it."""
    read = {blob for placed in net for blob in placed.bottoms}
    inner = {blob for blob in net.outputs if blob in read or blob in net.inputs}
    copied = [blob for blob in dict.fromkeys(net.outputs) if blob in inner and len(net.shapes[blob]) > 1]
    layers, shapes, copies = list(net.layers), dict(net.shapes), dict[str, str]()
    for blob in copied:
        copies[blob] = unlike(f"{blob}__out", shapes)
        shapes[copies[blob]] = shapes[blob]
        layers.append(Placed(copies[blob], Concat(axis=1), (blob,), (copies[blob],)))
    return replace(net, layers=layers, shapes=shapes, outputs=[copies.get(blob, blob) for blob in net.outputs])


def _grouped(net: Net) -> Net:
    """Layers in the order in which the outputs need them, output by output: the mapper's outputs come in file order."""
    makers = {top: placed for placed in net for top in placed.tops}
    order = {placed.name: None for placed in net if isinstance(placed.layer, Input)}
    read = {blob for placed in net for blob in placed.bottoms}
    ends = [*net.outputs, *(top for placed in net for top in placed.tops if top not in read)]
    stack = [(makers[blob], False) for blob in reversed(ends)]
    while stack:
        placed, ready = stack.pop()
        if placed.name in order:
            continue
        if ready:
            order[placed.name] = None
            continue
        stack.append((placed, True))
        stack.extend((makers[blob], False) for blob in reversed(placed.bottoms))
    by_name = {placed.name: placed for placed in net}
    return replace(net, layers=[by_name[name] for name in order])


def _in_place(net: Net) -> Net:
    """Activations on the blob of their own producer where nobody else reads the value in between."""
    makers = {top: placed for placed in net for top in placed.tops}
    readers = Counter(blob for placed in net for blob in placed.bottoms)
    moved: dict[str, str] = {}
    moments: dict[str, str] = {}
    for placed in net:
        if placed.layer.type not in _ACTIVATIONS or not placed.layer.in_place:
            continue
        blob = placed.bottoms[0]
        maker = makers[blob]
        if maker.layer.type in PRODUCERS and readers[blob] == 1 and blob not in net.outputs:
            moved[blob] = placed.tops[0]
            moments[blob] = maker.name
    layers = [
        replace(
            placed,
            bottoms=tuple(moved.get(blob, blob) for blob in placed.bottoms),
            tops=tuple(moved.get(blob, blob) for blob in placed.tops),
        )
        for placed in net
    ]
    twins = {old: moved.get(blob, blob) for old, blob in net.twins.items()}
    moments |= {old: moments[blob] for old, blob in net.twins.items() if blob in moments}
    return replace(
        net,
        layers=layers,
        shapes={blob: shape for blob, shape in net.shapes.items() if blob not in moved},
        twins=twins | moved,
        moments=net.moments | moments,
    )


def _named(net: Net, wishes: Mapping[str, str]) -> Net:
    """Names of known characters; those of inputs and outputs, unread ones too, short enough and unlike every other."""
    read = {blob for placed in net for blob in placed.bottoms}
    ports = dict.fromkeys([*net.inputs, *net.outputs, *(blob for blob in net.shapes if blob not in read)])
    blobs: dict[str, str] = {}
    for blob in chain(ports, (blob for blob in net.shapes if blob not in ports)):
        length = NAME_LENGTH if blob in ports else 0
        blobs[blob] = unlike(plain(wishes.get(blob, blob)), blobs.values(), length)
    layers: dict[str, str] = {}
    for placed in net:
        layers[placed.name] = unlike(plain(placed.name), layers.values())
    return renamed(replace(net, name=plain(net.name)), blobs, layers)


def plain(name: str) -> str:
    """A name of characters that are known to work (nnie W16), no mark of the mapper at its end (nnie §5)."""
    known = _UNKNOWN.sub("_", name)
    mark = next((mark for mark in MARKS if known.endswith(mark)), "")
    return known.removesuffix(mark) + mark.replace("_", ".")


def like_marks(net: Net) -> list[str]:
    """The user's names that the mapper would read as marks; the net has others for them."""
    layers = [source for placed in net for source in placed.sources if placed.name.startswith(plain(source))]
    blobs = [old for old, new in net.twins.items() if new and old not in net.moments]
    return [name for name in dict.fromkeys([*blobs, *layers]) if name.endswith(MARKS)]
