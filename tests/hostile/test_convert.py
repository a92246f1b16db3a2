"""Every row of cases.py: the exit code, the message, and nothing half-written."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from tests.hostile.cases import ATTACKS, Attack
from tests.hostile.conftest import whole_or_nothing
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
    ran = within_limits(cli, made, "--target", "caffe")
    assert ran.code == row.code, ran.err
    assert row.says in ran.err
    assert ran.err.startswith("error: ") or row.code == 0
    assert (tmp_path / "out").exists() == (row.code == 0)
    if row.code == 0:
        files = {path.name for path in Path("out").iterdir()}
        assert files == {"net.prototxt", "net.caffemodel", "net.map.json"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what.replace(" ", "-"))
def test_ends_cleanly_where_parts_stay_onnx(row: Attack, cli, tmp_path):
    """What stops other targets may go to the CPU; what is no model stops this one too."""
    source = tmp_path / "source"
    source.mkdir()
    ran = within_limits(cli, row.make(source), "--target", "nnie")
    assert ran.code in ({2} if row.code == 2 else {0, 3}), ran.err
    assert ran.code == 0 or ran.err.startswith("error: ")
    assert whole_or_nothing(Path("out")) == (ran.code == 0) == Path("out").exists()


def within_limits(cli, made: Path | list, *words: str):
    """Convert what an attack made, and see that it neither takes all time or memory nor surprises the command line."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    models = made if isinstance(made, list) else [made]
    ran = cli("convert", *models, "-o", "out", "--name", "net", "--no-caffe-run", *words)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert "internal error" not in ran.err
    assert "Traceback" not in ran.err
    assert time.monotonic() - start < MOST_SECONDS
    assert grown < MOST_MEMORY
    return ran


@pytest.mark.parametrize("name", ["c_conv_0_split_0", "n_n_0_split_1", "a\nb", "a\0b", "\"'`", "../🦙"])
def test_names_in_a_real_caffe(name: str, cli, pycaffe, tmp_path):
    """Caffe's own parser reads them, and its own copies (`…_split_…`) do not meet them."""
    model = save(with_names(name), tmp_path)
    ran = cli("convert", model, "--caffe-python", pycaffe.python)
    assert ran.code == 0, ran.err
    assert "pycaffe" in ran.out
