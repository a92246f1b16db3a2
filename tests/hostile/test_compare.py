"""Every row of nets.py, and maps that lie."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import pytest

from tests.hostile.models import graph, save
from tests.hostile.nets import NETS, NetAttack

ROWS = [row for rows in NETS.values() for row in rows]
MOST_MEMORY = 1 << 30
MOST_SECONDS = 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what.replace(" ", "-"))
def test_ends_as_the_table_says(row: NetAttack, cli, tmp_path):
    model = save(graph("{ y = Relu(x) }"), tmp_path)
    row.make(tmp_path)
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = cli("compare", model, "net.prototxt", "net.caffemodel", "--runs", 1, "--no-caffe-run")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert ran.code == row.code, ran.err + ran.out
    assert "internal error" not in ran.err
    assert row.says in ran.err
    assert time.monotonic() - start < MOST_SECONDS
    assert grown < MOST_MEMORY


def _set(document: dict, path: str, value: object) -> None:
    *above, last = path.split("/")
    for key in above:
        document = document[int(key)] if isinstance(document, list) else document[key]
    if isinstance(document, list):
        document[int(last)] = value
    else:
        document[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", 99),
        ("format", None),
        ("files", []),
        ("inputs", {}),
        ("inputs/0/name", 7),
        ("inputs/0/shape", "many"),
        ("inputs/0/shape", [-1, 3, 8, 8]),
        ("inputs/0/shape", [1 << 40, 3, 8, 8]),
        ("inputs/0/dtype", "object"),
        ("outputs/0/name", "nothing"),
        ("segments", []),
        ("segments/0/kind", "evil"),
        ("segments/0/prototxt", "../../etc/passwd"),
        ("segments/0/caffemodel", "/etc/passwd"),
        ("segments/0/prototxt", 7),
        ("segments/0/inputs/x/blob", "nothing"),
        ("segments/0/inputs", {"y": {"blob": "x", "shape": [1, 3, 8, 8]}}),
        ("segments/0/outputs/y/blob", "nothing"),
        ("segments/0/outputs/y/shape", [7]),
        ("tensors/y/blob", "nothing"),
        ("tensors/y/layer", "nothing"),
        ("tensors/y/segment", 9),
        ("tensors/y/segment", "first"),
        ("tensors/y/shape", [1, 3, 64]),
        ("tensors", {"z": {"segment": 0, "blob": "y", "shape": [1, 3, 8, 8]}}),
        ("notes", 7),
    ],
)
def test_maps_that_lie(path, value, cli, tmp_path):
    model = save(graph("{ y = Relu(x) }"), tmp_path)
    assert cli("convert", model, "-o", "out", "--name", "net", "--no-proof").code == 0
    file = Path("out/net.map.json")
    document = json.loads(file.read_text())
    _set(document, path, value)
    file.write_text(json.dumps(document))
    ran = cli("compare", model, "out/net.prototxt", "out/net.caffemodel", "--runs", 1, "--no-caffe-run")
    assert "internal error" not in ran.err
    assert "passwd" not in ran.out
    assert ran.code in (0, 1, 2)
    assert (ran.code == 2) == ran.err.startswith("error: ")
