"""Targets `caffe` (the layer set of `onnx2caffe setup pycaffe`) and `bvlc` (stock BVLC Caffe 1.0 only)."""

from __future__ import annotations

from onnx2caffe.targets.base import Target

__all__ = ["BVLC", "CAFFE"]

_STOCK = frozenset(
    """AbsVal ArgMax BNLL BatchNorm BatchReindex Bias Concat Convolution Crop Deconvolution Dropout DummyData
    ELU Eltwise Embed Exp Flatten Im2col InnerProduct Input LRN LSTM Log MVN PReLU Parameter Pooling Power
    RNN ReLU Reduction Reshape SPP Scale Sigmoid Silence Slice Softmax Split TanH Threshold Tile""".split()
)
_LATER = frozenset({"Clip", "Swish"})
_EXTENSIONS = frozenset(
    """Axpy DepthwiseConv HardSigmoid HardSwish Interp Mish Normalize PSROIPooling PassThrough Permute ROIPooling ReLU6
    Reorg ShuffleChannel Upsample""".split()
)

CAFFE = Target("caffe", _STOCK | _LATER | _EXTENSIONS)

BVLC = Target("bvlc", _STOCK, unknown_fields=frozenset({("Pooling", "round_mode")}))
