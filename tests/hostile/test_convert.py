"""Every row of cases.py: the exit code, the message, and nothing half-written."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from tests.hostile.cases import ATTACKS, Attack
from tests.hostile.models import save, with_names

ROWS = [row for rows in ATTACKS.values() for row in rows]
MOST_MEMORY = 1 << 30
MOST_SECONDS = 30


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what.replace(" ", "-"))
def test_ends_as_the_table_says(row: Attack, cli, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    made = row.make(source)
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = cli("convert", *(made if isinstance(made, list) else [made]), "-o", "out", "--name", "net", "--no-caffe-run")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert ran.code == row.code, ran.err
    assert "internal error" not in ran.err
    assert "Traceback" not in ran.err
    assert row.says in ran.err
    assert ran.err.startswith("error: ") or row.code == 0
    assert (tmp_path / "out").exists() == (row.code == 0)
    if row.code == 0:
        files = {path.name for path in Path("out").iterdir()}
        assert files == {"net.prototxt", "net.caffemodel", "net.map.json"}
    assert time.monotonic() - start < MOST_SECONDS
    assert grown < MOST_MEMORY


@pytest.mark.parametrize("name", ["c_conv_0_split_0", "n_n_0_split_1", "a\nb", "a\0b", "\"'`", "../🦙"])
def test_names_in_a_real_caffe(name: str, cli, pycaffe, tmp_path):
    """Caffe's own parser reads them, and its own copies (`…_split_…`) do not meet them."""
    model = save(with_names(name), tmp_path)
    ran = cli("convert", model, "--caffe-python", pycaffe.python)
    assert ran.code == 0, ran.err
    assert "pycaffe" in ran.out
