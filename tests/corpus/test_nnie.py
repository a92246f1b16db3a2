"""Real networks on the NNIE: how much of each is on nets, and that they are equal there.

`python -m tests.corpus.nnie` proves the whole corpus.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onnx2caffe.runtimes.base import Runtime
from tests.corpus.nnie import ENOUGH, TABLE, Row, behind, convert, table

FLOOR = 99.5
"""Per cent of the multiply-adds that one net must have, unless something in the model has no form on the NNIE."""

TORN = {
    "conv3d_control": "axes",
    "crnn_lstm_op11": "LSTM",
    "gru_tail_op13": "GRU",
    "mobilevit_block_op17": "attention",
    "qdq_mobilenet_op13": "QuantizeLinear",
    "siamrpn_dwxcorr": "weights from the net",
    "silero_vad_16k_control": "windows of 256",
    "swin_block_op17": "attention",
    "vit_tiny_op17": "attention",
    "yolov11n_op17": "attention",
}
"""The models that are no single net, and what in them has no form on the NNIE."""

PROVED = """
crnn_lstm_op11 instance_norm_style_op11 mobilevit_block_op17 nanodet_m_416_real picodet_s_op11 scrfd_500m_kps
swin_block_op17 unet_bilinear_op11 yolov5n_v61_op12""".split()


@pytest.mark.parametrize("name", sorted(table()))
def test_legal_and_no_less_than_before(name: str, corpus, tmp_path: Path) -> None:
    row = convert(*corpus[name], tmp_path, proof=False)
    assert behind([row]) == []
    if name not in TORN:
        assert (row.outcome, row.segments) == ("equal", 1)
        assert row.share >= FLOOR
    else:
        assert row.share >= ENOUGH or row.why


@pytest.mark.parametrize("name", PROVED)
def test_equal(name: str, corpus, tmp_path: Path, pycaffe: Runtime) -> None:
    row = convert(*corpus[name], tmp_path)
    assert row.outcome == "equal", row.why


WORSE = [
    {"outcome": "illegal"},
    {"segments": 2},
    {"share": 0.0},
    {"cpu_nodes": 999},
    {"layers": 9999},
    {"unproven": "W22 type Log (1)"},
]


@pytest.mark.parametrize("change", WORSE, ids=lambda change: next(iter(change)))
def test_table_only_gets_better(change) -> None:
    """A row that is worse than its line in the table is found."""
    row = table()["lenet_op11"]
    assert row == Row.read(row.line())
    assert not behind([row])
    assert behind([replace(row, **change)])


def test_table_knows_the_whole_corpus(corpus) -> None:
    assert set(table()) == set(corpus), f"run python -m tests.corpus.nnie, which writes {TABLE.name}"
