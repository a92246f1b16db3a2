"""The rules that look at one layer, its parameters and the shapes around it; shared by lowering and `check`."""

from __future__ import annotations

from collections.abc import Sequence

from onnx2caffe.caffe.layers import (
    Bias,
    Concat,
    Convolution,
    Deconvolution,
    DepthwiseConv,
    Eltwise,
    Flatten,
    InnerProduct,
    Input,
    PassThrough,
    Permute,
    Pooling,
    Reduction,
    Reshape,
    Scale,
    Slice,
    Softmax,
    Upsample,
)
from onnx2caffe.caffe.layers.base import Shape
from onnx2caffe.caffe.site import Site, is_blob
from onnx2caffe.targets.nnie.rules import Rule, layer_rule

__all__ = ["crops", "paints"]

_Axis = Concat | Slice | Softmax | InnerProduct | Reduction | Scale | Bias | Flatten


@layer_rule("E01")
def _permute(rule: Rule, site: Site) -> str | None:
    if not isinstance(site.layer, Permute):
        return None
    order, legal = list(site.layer.order), rule.when["order"]
    rank = len(site.shapes[0]) if site.shapes else len(legal)
    if rank != len(legal):
        return f"order {order} on a blob of {rank} axes"
    complete = [*order, *(a for a in range(rank) if a not in order)]
    return None if complete == legal else f"order {complete}"


@layer_rule("E02")
def _reshape(rule: Rule, site: Site) -> str | None:
    layer = site.layer
    if not isinstance(layer, Reshape):
        return None
    if layer.axis != 0 or layer.num_axes != -1:
        return f"axis {layer.axis} and num_axes {layer.num_axes}; no compiled net has them"
    if not layer.shape or layer.shape[0] != 0:
        return f"dims {list(layer.shape)}: the first is not 0"
    return None


@layer_rule("E03")
def _axes(rule: Rule, site: Site) -> str | None:
    dims = len(site.layer.shape) if isinstance(site.layer, Reshape) else 0
    most = max([dims, *map(len, site.top_shapes)], default=0)
    return f"{most} axes" if most > rule.when["max_axes"] else None


@layer_rule("E04")
def _batch(rule: Rule, site: Site) -> str | None:
    layer = site.layer
    if isinstance(layer, Input):
        if any(len(shape) < 2 for shape in layer.shape):
            return "an input without a batch axis"
        batches = [shape[0] for shape in layer.shape if len(shape) > 1 and shape[0] != 1]
        return f"batch {batches[0]}" if batches else None
    if not isinstance(layer, _Axis):
        return None
    spread = isinstance(layer, Scale | Bias) and len(site.shapes) == 2 and not site.shapes[1]
    rank = len(site.shapes[0]) if site.shapes else 0
    return "axis 0" if layer.axis in {0, -rank} and rank and not spread else None


@layer_rule("E05")
def _type(rule: Rule, site: Site) -> str | None:
    return None if site.type in rule.when["types"] else f"type {site.type or '(none)'}"


@layer_rule("E06")
def _eltwise(rule: Rule, site: Site) -> str | None:
    if site.type != "Eltwise" or len(set(site.shapes)) < 2:
        return None
    return f"bottoms {', '.join(_text(s) for s in site.shapes)}"


@layer_rule("E13")
def _groups(rule: Rule, site: Site) -> str | None:
    layer = site.layer
    if not isinstance(layer, Convolution | Deconvolution | DepthwiseConv) or layer.group is None:
        return None
    group = layer.group
    if group > rule.when["max_group"]:
        return f"group {group}"
    if group < 1 or layer.num_output % group:
        return f"group {group} does not divide num_output {layer.num_output}"
    channels = _channels(site)
    return f"group {group} does not divide {channels} channels" if channels % group else None


@layer_rule("E14")
def _pass_through(rule: Rule, site: Site) -> str | None:
    layer = site.layer
    if not isinstance(layer, PassThrough):
        return None
    low, high = rule.when["block"]
    height, width = layer.block_height, layer.block_width
    if not (low <= height <= high and low <= width <= high):
        return f"blocks of {height}x{width}"
    if not site.shapes or len(site.shapes[0]) != 4:
        return None
    _, c, h, w = site.shapes[0]
    if h % height or w % width:
        return f"blocks of {height}x{width} do not divide {h}x{w}"
    made = c * height * width
    return None if layer.num_output == made else f"num_output {layer.num_output} is not {made}"


@layer_rule("E15")
def _marker(rule: Rule, site: Site) -> str | None:
    if site.type == "Proposal" and len(site.tops) != 1:
        return f"{len(site.tops)} tops"
    if site.type != "Custom":
        return None
    if surplus := sorted({name.partition(".")[0] for name in site.fields} - set(rule.when["fields"])):
        return f"field {surplus[0]}"
    if len(site.top_shapes) != len(site.tops):
        return f"{len(site.top_shapes)} shapes for {len(site.tops)} tops"
    odd = [_text(shape) for shape in site.top_shapes if not is_blob(shape)]
    return f"shape {odd[0]}" if odd else None


@layer_rule("E17")
def _training(rule: Rule, site: Site) -> str | None:
    if site.training:
        return "is left out for inference (include or exclude)"
    if site.type in rule.when["types"]:
        return f"type {site.type}"
    if site.type == "Reshape" and len(site.bottoms) > 1:
        return "takes its shape from a second bottom"
    return None


@layer_rule("E18")
def _caffe(rule: Rule, site: Site) -> str | None:
    return site.problem or None


@layer_rule("W01")
def _window(rule: Rule, site: Site) -> str | None:
    if not isinstance(site.layer, Pooling) or not site.top_shapes:
        return None
    _, _, height, width = site.shapes[0]
    kernel = height if site.layer.global_pooling else site.layer.kernel_size[0]
    product = kernel * width
    if product <= rule.when["max_product"]:
        return None
    return f"kernel height {kernel} times width {width} is {product}, more than {rule.when['max_product']}"


@layer_rule("W02")
def _floor(rule: Rule, site: Site) -> str | None:
    layer = site.layer
    if not isinstance(layer, Pooling) or layer.round_mode != "FLOOR" or not site.shapes or not site.top_shapes:
        return None
    (ceil, *_) = Pooling(
        pool=layer.pool,
        kernel_size=layer.kernel_size,
        stride=layer.stride,
        pad=layer.pad,
        global_pooling=layer.global_pooling,
    ).top_shapes(site.shapes)
    if ceil == site.top_shapes[0]:
        return None
    return f"asks for {_text(site.top_shapes[0])}, the mapper makes {_text(ceil)}"


@layer_rule("W03")
def _width(rule: Rule, site: Site) -> str | None:
    widths = [shape[3] for shape in site.top_shapes if len(shape) == 4]
    widest = max(widths, default=0)
    return f"width {widest}" if widest > rule.when["max_width"] else None


@layer_rule("W04")
def _small_integers(rule: Rule, site: Site) -> str | None:
    for name in rule.when["fields"]:
        values = getattr(site.layer, name, ())
        if values and max(values) > rule.when["max"]:
            return f"{name} {max(values)}"
    return None


@layer_rule("W06")
def _depthwise(rule: Rule, site: Site) -> str | None:
    group = _convolution_group(site)
    return f"group {group}, one per channel" if _is_depthwise(site) else None


@layer_rule("W07")
def _grouped(rule: Rule, site: Site) -> str | None:
    group = _convolution_group(site)
    if group < 2 or _is_depthwise(site):
        return None
    return f"group {group} of {_channels(site)} channels"


@layer_rule("W09")
def _branches(rule: Rule, site: Site) -> str | None:
    most, when = rule.when["max_branches"], rule.when
    if site.type in when["bottoms"] and max(len(site.shapes), len(site.bottoms)) > most:
        return f"{max(len(site.shapes), len(site.bottoms))} bottoms"
    if site.type in when["tops"] and max(len(site.top_shapes), len(site.tops)) > most:
        return f"{max(len(site.top_shapes), len(site.tops))} tops"
    return None


@layer_rule("W10")
def _nearest(rule: Rule, site: Site) -> str | None:
    return "one bottom: nearest" if site.type == "Upsample" and _bottoms(site) == 1 else None


@layer_rule("W14")
def _softmax(rule: Rule, site: Site) -> str | None:
    if not isinstance(site.layer, Softmax) or not site.shapes:
        return None
    rank = len(site.shapes[0])
    axis = site.layer.axis % rank if rank else 0
    return None if rule.when["axes"].get(str(rank)) == axis else f"axis {axis} of {rank}"


@layer_rule("W15")
def _two_bottoms(rule: Rule, site: Site) -> str | None:
    return "two bottoms" if site.type in {"Scale", "Bias"} and _bottoms(site) == 2 else None


@layer_rule("W18")
def _factor(rule: Rule, site: Site) -> str | None:
    if not isinstance(site.layer, Upsample) or _bottoms(site) != 1 or not site.top_shapes or not site.shapes:
        return None
    old, new = site.shapes[0][2:], site.top_shapes[0][2:]
    if all(n == rule.when["factor"] * o for o, n in zip(old, new, strict=True)):
        return None
    return f"{old[0]}x{old[1]} to {new[0]}x{new[1]}"


@layer_rule("W19")
def _rounding(rule: Rule, site: Site) -> str | None:
    if not isinstance(site.layer, Pooling):
        return None
    for name in rule.when["fields"]:
        if f"pooling_param.{name}" in site.fields:
            return f"{name} is written"
    return "round_mode" if not site.fields and site.layer.round_mode is not None else None


@layer_rule("W22")
def _unseen(rule: Rule, site: Site) -> str | None:
    layer, when = site.layer, rule.when
    if site.type in when["types"]:
        return f"type {site.type}{' that crops' if crops(site) else ''}"
    if isinstance(layer, Eltwise) and (layer.operation not in when["operations"] or layer.coeff):
        return f"Eltwise {layer.operation}{' with coeff' if layer.coeff else ''}"
    if isinstance(layer, Concat) and site.shapes and layer.axis % len(site.shapes[0]) != when["concat_axis"]:
        return f"Concat on axis {layer.axis}"
    if isinstance(layer, Pooling) and layer.pool == "AVE" and any(layer.pad):
        return "AVE pooling with pad"
    if isinstance(layer, Deconvolution) and {*layer.kernel_size, *layer.stride} != {when["kernel"]}:
        source = " from one value" if paints(site) else ""
        return f"Deconvolution of kernel {_both(layer.kernel_size)}, stride {_both(layer.stride)}{source}"
    return None


@layer_rule("W23")
def _unknown(rule: Rule, site: Site) -> str | None:
    return ", ".join(site.unknown) or None


@layer_rule("W25")
def _planes(rule: Rule, site: Site) -> str | None:
    if site.type not in rule.when["types"] or not site.shapes or len(site.shapes[0]) == rule.when["axes"]:
        return None
    return f"bottom {_text(site.shapes[0])}"


def crops(site: Site) -> bool:
    """Whether a layer, as far as its weights are known, only cuts off what lies around a map."""
    layer = site.layer
    if not isinstance(layer, DepthwiseConv) or len(layer.blobs) != 1 or any(layer.pad) or max(layer.stride) > 1:
        return False
    taps = layer.blobs[0].reshape(layer.num_output, -1)
    return bool((taps == taps[0]).all() and sorted(taps[0])[-2:] == [0, 1] and not taps[0].min())


def paints(site: Site) -> bool:
    """Whether a layer only makes a constant map: a Deconvolution of one value."""
    return isinstance(site.layer, Deconvolution) and bool(site.shapes) and tuple(site.shapes[0][1:]) == (1, 1, 1)


def _convolution_group(site: Site) -> int:
    return site.layer.group if isinstance(site.layer, Convolution) and site.shapes else 1


def _is_depthwise(site: Site) -> bool:
    """Whether a Convolution could be a DepthwiseConv: as many groups as channels, and one filter for each."""
    group = _convolution_group(site)
    return isinstance(site.layer, Convolution) and 1 < group == _channels(site) == site.layer.num_output


def _channels(site: Site) -> int:
    """The channels of the first bottom; 0 where unknown."""
    return site.shapes[0][1] if site.shapes and len(site.shapes[0]) > 1 else 0


def _bottoms(site: Site) -> int:
    return max(len(site.bottoms), len(site.shapes))


def _both(sizes: Sequence[int]) -> str:
    """Height and width, which may be one number for both."""
    return _text((sizes[0], sizes[-1]))


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "scalar"
