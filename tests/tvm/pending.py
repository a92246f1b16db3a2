"""Ops that nobody has written an emitter for yet: their rows may be refused. Empty in the end, and then gone."""

from __future__ import annotations

_BOTH = set(
    """
    Abs Acos Acosh And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BitShift BitwiseAnd BitwiseNot BitwiseOr
    BitwiseXor Cast CastLike Ceil Celu Clip Col2Im ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Det
    Einsum Elu Equal Erf Exp Expand Floor GRU Gather GatherElements GatherND Gelu GlobalLpPool GlobalMaxPool Greater
    GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization IsInf IsNaN LRN
    LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool Max MaxRoiPool
    MaxUnpool Mean MeanVarianceNormalization Min Mish Mod Neg NegativeLogLikelihoodLoss Not OneHot Or PRelu Pad Pow
    QuantizeLinear RMSNormalization RNN Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ReverseSequence RoiAlign Round ScatterElements
    ScatterND Selu Shrink Sign Sin Sinh Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split
    Sqrt Sum Swish Tan ThresholdedRelu Tile TopK Trilu Where Xor
    """.split()
)
_RELAY: set[str] = set()
_RELAX: set[str] = set()
PENDING = {"relay": _BOTH | _RELAY, "relax": _BOTH | _RELAX}
PARTIAL = {"MaxPool", "DeformConv"}
"""Ops of which something is still missing."""
