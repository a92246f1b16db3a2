"""Which variants the NNIE gets first: what was seen compiled, then what loses least at 8 bits, then what costs least.

Facts: recipes §§17-19, nnie §§14, 16, 18. Variants that are not named follow in the order of registration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["PREFERRED"]

PREFERRED: Mapping[str, Sequence[str]] = {
    "DepthToSpace": ("dense", "groups"),
    "LpNormalization": ("Normalize_map", "reduce"),
    "RMSNormalization": ("reduce",),
    "Shrink": ("Threshold",),
    "Split": ("kept", "default"),
    "add": ("eltwise", "bias"),
    "affine": ("Scale", "vector", "map", "layer"),
    "ave_pool": ("pooling", "every", "cut", "conv"),
    "axis_map": ("map", "row", "rotation"),
    "broadcast": ("upsample", "concat", "deconv"),
    "clip": ("ReLU", "rectified"),
    "constant": ("Parameter",),
    "constant_pad": ("shift", "Parameter"),
    "crop": ("dw", "slice"),
    "depthwise": ("layer", "conv"),
    "gather": ("keep", "crop", "take", "view"),
    "inner_product": ("last", "conv", "axis_map", "vector"),
    "keep": ("map", "slice"),
    "multiply": ("eltwise", "scale"),
    "power": ("Scale", "Power", "steps"),
    "reduce": ("Pooling", "Convolution", "map", "Slice", "Reduction"),
    "reshape": ("keep_n",),
    "resize": ("broadcast", "repeat", "average", "stride", "deconvolution", "ratio", "rotation"),
    "scale_map": ("map", "scale"),
    "softmax": ("channels", "rows", "slices", "rotation"),
    "standardise": ("reduce",),
    "take": ("matrix", "slice"),
    "transpose": ("rotation", "slices", "dw"),
    "upsample": ("upsample", "deconv"),
    "weighted_sum": ("scaled",),
}
