"""Real networks, proved in builtin and pycaffe. `python -m tests.corpus.run` does the whole corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx2caffe.runtimes.base import Runtime
from tests.corpus.run import TABLE, Row, behind, convert

NETWORKS = """lenet_op11 mnist_cntk mobilenetv2_dynamo18 nanodet_m_320_integral_op11 nanodet_m_416_op11
nanodet_m_416_real
pfld_106_lite resnet18_dynamo20 resnet18_keepbn_op9 scrfd_500m_kps shufflenetv2_op11 squeezenet11_op11 subpixel_cnn_x3
ultraface_rfb_320_simplified unet_bilinear_op11 unet_convtranspose_op11 yolo_fastestv2 yolov3_tiny_op11
yunet_n_320 efficientnet_b0_se_silu_op13 ppocr_cls_mobile vit_tiny_op17 crnn_lstm_op11 swin_block_op17""".split()


@pytest.mark.parametrize("target", ["caffe", "bvlc"])
@pytest.mark.parametrize("name", NETWORKS)
def test_network(name: str, target: str, corpus, tmp_path: Path, pycaffe: Runtime) -> None:
    row = convert(*corpus[name], target, tmp_path)
    assert row.outcome == "equal", row.why
    assert behind([row]) == []


def test_table_only_gets_better() -> None:
    """A row that is worse than its line in the table is found."""
    line = next(line for line in TABLE.read_text().splitlines() if "\tequal\t" in line).split("\t")
    assert behind([Row(line[0], line[1], "refused")])
    assert behind([Row(line[0], line[1], "equal", layers=int(line[4]) + 1)])
    assert not behind([Row(line[0], line[1], "equal", layers=int(line[4]))])
