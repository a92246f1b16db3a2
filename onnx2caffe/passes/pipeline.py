"""The passes of each exit, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from onnx2caffe.passes.activations import MergeClips, RaiseActivations, RaiseHardSigmoid
from onnx2caffe.passes.affine import ComposeAffine, FoldAffineBefore, FoldAffineBehind, NormalizeArithmetic
from onnx2caffe.passes.base import Pass, Repeat
from onnx2caffe.passes.branches import SumBranches
from onnx2caffe.passes.channels import AbsorbChannelOrder, MergeGathers
from onnx2caffe.passes.dense import AbsorbMoversIntoDense, NormalizeGemm
from onnx2caffe.passes.islands import CancelTransposes
from onnx2caffe.passes.mean import InputsFirst, is_input
from onnx2caffe.passes.movers import MergeMovers
from onnx2caffe.passes.nnie_concat import TurnBeforeConcat
from onnx2caffe.passes.nnie_dense import KeepDenseOnChannels
from onnx2caffe.passes.nnie_slices import JoinSlices
from onnx2caffe.passes.noop import DropExpand, DropNoOps, ShareEqualNodes
from onnx2caffe.passes.norms import FoldAffineIntoNorm, RaiseGroupNorm, RaiseNorm, SimplifyRoots
from onnx2caffe.passes.pad import FoldPad, MergePads
from onnx2caffe.passes.reduce import MergeReductions, RaiseGlobalPooling
from onnx2caffe.passes.selections import HoistSelections
from onnx2caffe.passes.space import FoldSpaceToDepthIntoConv, RaiseChannelMovers, RaiseConcatOfSlices

__all__ = ["Observer", "pipeline", "run"]

_EXITS = ("caffe", "nnie", "tvm")
Observer = Callable[[str, ir.Model], None]


def pipeline(exit: str, *, keep_bn: bool = False) -> list[Pass]:
    """The passes for an exit ("caffe", "nnie", "tvm"), in order.

    `keep_bn` leaves BatchNormalization nodes as they are.

    Raises:
        ValueError: there is no such exit.

    """
    if exit not in _EXITS:
        raise ValueError(f"no exit {exit!r}; there are: {', '.join(_EXITS)}")
    nnie = exit == "nnie"
    return [
        DropNoOps(),
        DropExpand(),
        ShareEqualNodes(),
        # Before MergeMovers: it would join a shuffle's Reshapes with their neighbours.
        RaiseChannelMovers(),
        RaiseConcatOfSlices(),
        MergeMovers(),
        # After MergeMovers: a shuffle's last Reshape has met the Reshape in front of the selections.
        HoistSelections(),
        # Before FoldAffineBehind takes their constants, and HardSigmoid before HardSwish, which is made of it.
        MergeClips(),
        RaiseHardSigmoid(),
        RaiseActivations(),
        # Norms before reductions: they are made of means.
        RaiseNorm(),
        RaiseGroupNorm(),
        SimplifyRoots(),
        MergeReductions(),
        RaiseGlobalPooling(),
        NormalizeArithmetic(),
        NormalizeGemm(),
        # Before CancelTransposes: what it moves to the channels needs no Transposes any more.
        *([JoinSlices(), KeepDenseOnChannels()] if nnie else []),
        # After RaiseNorm: relaid means would no longer be over trailing axes. Before the folds: it makes Convs.
        Repeat([CancelTransposes(), MergeMovers(), DropNoOps()]),
        # After CancelTransposes, which turns joined maps at once.
        *([TurnBeforeConcat(), MergeMovers()] if nnie else []),
        MergePads(),
        FoldPad(),
        Repeat(
            [
                ComposeAffine(),
                FoldAffineIntoNorm(keep_bn=keep_bn),
                FoldAffineBehind(keep_bn=keep_bn),
                # Before the fold that takes the factor it moves; AbsorbChannelOrder takes the order.
                *([InputsFirst()] if nnie else []),
                FoldAffineBefore(keep_bn=keep_bn, stays=is_input if nnie else lambda _: False),
                # After the folds of each round: they make the branches bare Convs.
                SumBranches(keep_bn=keep_bn),
            ]
        ),
        AbsorbMoversIntoDense(),
        MergeGathers(),
        AbsorbChannelOrder(),
        # After AbsorbChannelOrder: it takes the Gather away that stands between.
        FoldSpaceToDepthIntoConv(),
    ]


def run(model: ir.Model, passes: Sequence[Pass], observe: Observer | None = None) -> None:
    """Run `passes` over `model` in place; `observe(name, model)` is called after each one that changed something."""
    for one in passes:
        if isinstance(one, Repeat):
            _run_group(model, one, observe)
        else:
            _run_one(model, one, observe)


def _run_one(model: ir.Model, one: Pass, observe: Observer | None) -> bool:
    modified = one.call(model).modified
    if modified and observe is not None:
        observe(type(one).__name__, model)
    return modified


def _run_group(model: ir.Model, group: Repeat, observe: Observer | None) -> None:
    for _ in range(group.limit):
        modified = [_run_one(model, one, observe) for one in group.passes]
        if not any(modified):
            break
