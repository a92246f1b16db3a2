"""The rules that look at a whole net: neighbours, names, segments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain

from onnx2caffe.caffe.layers import LAYERS, Layer
from onnx2caffe.caffe.site import Site, Sites
from onnx2caffe.targets.nnie.finish import PRODUCERS
from onnx2caffe.targets.nnie.rules import Rule
from onnx2caffe.targets.nnie.segments import CPU, segments

__all__ = ["NET_RULES", "NetRule"]

Seen = Iterator[tuple[Site | None, str]]
NetRule = Callable[[Rule, Sites], Seen]
NET_RULES: dict[str, NetRule] = {}
"""Rule id -> what is wrong: at which layer (None: the net as a whole), and the words for it."""

_PRODUCTS = frozenset({"Convolution", "Deconvolution", "DepthwiseConv", "InnerProduct", "BatchNorm"})


def _net_rule(id: str) -> Callable[[NetRule], NetRule]:
    def put(function: NetRule) -> NetRule:
        NET_RULES[id] = function
        return function

    return put


@_net_rule("E08")
def _cpu_marks(rule: Rule, net: Sites) -> Seen:
    when = rule.when
    makers = {top: site for site in net for top in site.tops}
    for site in net:
        before = [makers[b] for b in site.bottoms if b in makers and makers[b] is not site]
        if site.type == "Upsample" and any(maker.name.endswith(CPU) for maker in before):
            yield site, "Upsample right after a _cpu layer"
        if not site.name.endswith(when["suffix"]):
            continue
        if site.type in when["sources"]:
            yield site, "the data layer cannot run elsewhere"
        elif site.type in when["activations"] and set(site.bottoms) & set(site.tops):
            yield site, "an in-place activation"
        elif near := [m.type for m in before if m.type in {*when["sources"], *when["markers"]}]:
            yield site, f"right after {near[0]}"


@_net_rule("E09")
def _counts(rule: Rule, net: Sites) -> Seen:
    when, found = rule.when, segments(net)
    if len(found) > when["segments"]:
        yield None, f"{len(found)} segments, at most {when['segments']}"
    if not net.outputs:
        yield None, "no outputs"
    for number, segment in enumerate(found):
        where = f"segment {number}: " if len(found) > 1 else ""
        for what, blobs in (("inputs", segment.inputs), ("outputs", segment.outputs)):
            if len(blobs) > when[what]:
                yield None, f"{where}{len(blobs)} {what}, at most {when[what]}"
        regions = sum(site.type in when["roi_types"] for site in segment.layers)
        if regions > when["roi_per_segment"]:
            yield None, f"{where}{_roi_layers(regions)}, at most {when['roi_per_segment']}"
    regions = sum(site.type in when["roi_types"] for site in net)
    if regions > when["roi"]:
        yield None, f"{_roi_layers(regions)}, at most {when['roi']}"


def _roi_layers(number: int) -> str:
    return f"{number} ROI layer{'s' * (number != 1)}"


@_net_rule("W05")
def _colliding(rule: Rule, net: Sites) -> Seen:
    seen: dict[str, str] = {}
    for name, site in _border(net).items():
        short = name[: rule.when["length"]]
        if short in seen:
            yield site, f"{seen[short]!r} and {name!r} are both {short!r} in the .wk"
        seen.setdefault(short, name)


@_net_rule("W21")
def _long(rule: Rule, net: Sites) -> Seen:
    for name, site in _border(net).items():
        if len(name) > rule.when["length"]:
            yield site, f"{name!r} has {len(name)} characters"


@_net_rule("W30")
def _one_name_for_weights(rule: Rule, net: Sites) -> Seen:
    return _namesakes(net, weighted=True)


@_net_rule("W31")
def _one_name(rule: Rule, net: Sites) -> Seen:
    return _namesakes(net, weighted=False)


@_net_rule("W08")
def _followers(rule: Rule, net: Sites) -> Seen:
    for site in net:
        if site.type != "InnerProduct":
            continue
        others = [r.type for top in site.tops for r in net.readers(top) if r.type not in rule.when["followers"]]
        if others:
            yield site, f"followed by {', '.join(dict.fromkeys(others))}"


@_net_rule("W11")
def _slow(rule: Rule, net: Sites) -> Seen:
    """What is said to be in place or merged can be: nobody else reads the blob before it."""
    when = rule.when
    makers: dict[str, str] = {}
    for site in net:
        first = site.bottoms[0] if site.bottoms else ""
        maker, alone = makers.get(first, ""), first in site.tops or len(net.readers(first)) == 1
        if site.type in when["slow"]:
            yield site, f"type {site.type}"
        elif site.type in when["last"] and any(net.readers(top) for top in site.tops):
            yield site, f"{site.type} inside the net"
        elif site.type in when["activations"] and first not in site.tops and alone and maker in PRODUCERS:
            yield site, f"{site.type} after {maker} is not in place"
        elif site.type in when["merge"] and len(site.bottoms) == 1 and alone and maker in _PRODUCTS:
            yield site, f"{site.type} after {maker} is not merged"
        makers.update(dict.fromkeys(site.tops, site.type))


@_net_rule("W16")
def _characters(rule: Rule, net: Sites) -> Seen:
    for site in net:
        for name in dict.fromkeys([site.name, *site.tops]):
            if not re.fullmatch(rule.when["pattern"], name, re.ASCII):
                yield site, f"name {name!r}"


@_net_rule("W24")
def _memory(rule: Rule, net: Sites) -> Seen:
    """Rows that waste as much as they hold; a vector, and a map of 1x1 that may be stored as one, is one row."""
    when = rule.when
    for name, site in net.outputs.items():
        shape = net.shapes.get(name, ())
        if len(shape) not in {3, 4}:
            continue
        _, channels, height, width = (*shape, 1)[:4]
        rows, needed = channels * height if height * width > 1 else 1, width * when["word"]
        taken = -(-needed // when["stride"]) * when["stride"]
        if rows > 1 and needed <= when["full"] * taken:
            yield site, f"output {name!r} takes {rows * taken} bytes, {rows * (taken - needed)} of them empty"


def _namesakes(net: Sites, *, weighted: bool) -> Seen:
    """The layers that bear the name of one before, where any of that name has weights, or where none has."""
    by_name: dict[str, list[Site]] = {}
    for site in net:
        by_name.setdefault(site.name, []).append(site)
    for first, *others in by_name.values():
        if any(_has_weights(site) for site in (first, *others)) == weighted:
            yield from ((site, f"a layer of type {first.type} has this name too") for site in others)


def _has_weights(site: Site) -> bool:
    return site.type in LAYERS and LAYERS[site.type].blob_shapes is not Layer.blob_shapes


def _border(net: Sites) -> dict[str, Site]:
    """The blobs that a segment takes or gives, with a layer to show for each."""
    makers = {top: site for site in net for top in site.tops}
    parts = segments(net)
    names = chain.from_iterable((*part.inputs, *part.outputs) for part in parts)
    return {name: makers[name] for name in names if name in makers}
