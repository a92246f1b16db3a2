"""Ops that nobody has written an emitter for yet: their rows may be refused. Empty in the end, and then gone."""

from __future__ import annotations

_BOTH = set(
    """
    Abs AveragePool Cast CastLike Ceil Celu Clip Col2Im ConvTranspose DepthToSpace DequantizeLinear Det Einsum
    Elu Erf Exp Expand Floor GRU Gather Gelu GlobalLpPool GlobalMaxPool GridSample GroupNormalization
    HardSigmoid HardSwish Hardmax InstanceNormalization LRN LSTM LayerNormalization LeakyRelu Log LogSoftmax
    LpNormalization LpPool Max MaxRoiPool MaxUnpool Mean MeanVarianceNormalization Min Mish Neg
    NegativeLogLikelihoodLoss PRelu Pad Pow QuantizeLinear RMSNormalization RNN Reciprocal ReduceL1 ReduceL2
    ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RoiAlign
    Round Selu Shrink Sign Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split Sqrt Sum
    Swish ThresholdedRelu Tile Where
    """.split()
)
_RELAY: set[str] = set()
_RELAX: set[str] = set()
PENDING = {"relay": _BOTH | _RELAY, "relax": _BOTH | _RELAX}
PARTIAL = {"MaxPool", "DeformConv"}
"""Ops of which something is still missing."""
