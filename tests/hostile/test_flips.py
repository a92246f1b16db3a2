"""Random damage: a byte or a few, anywhere, in a model and in what was written. Seeded, so a failure comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.hostile.conftest import whole_or_nothing
from tests.hostile.models import graph
from tests.verify.models import Builder

MUTATIONS = 200
PER_TEST = 25
SEEDS = [range(start, start + PER_TEST) for start in range(0, MUTATIONS, PER_TEST)]


ANY = bytes(range(256))
TEXT = b'0123456789-.:,e"{}[] #'
"""What does most harm to a text."""


def damaged(content: bytes, seed: int, alphabet: bytes = ANY) -> bytes:
    """One or two bytes changed (mostly: lengths stay right then), put in or taken out."""
    random = np.random.default_rng(seed)
    spoilt = bytearray(content)
    for _ in range(random.integers(1, 3)):
        place = int(random.integers(len(spoilt)))
        match random.integers(10):
            case 0:
                del spoilt[place]
            case 1:
                spoilt.insert(place, random.choice(list(alphabet)))
            case 2 | 3 | 4 | 5 if alphabet is ANY:
                spoilt[place] ^= 1 << int(random.integers(8))
            case _:
                spoilt[place] = random.choice(list(alphabet))
    return bytes(spoilt)


def small() -> onnx.ModelProto:
    """Mostly structure: few weights, so that most damage is to what is parsed."""
    b = Builder(0)
    b.conv("x", "c", 1, 2)
    b.node("Relu", ["c"], "r")
    b.node("MaxPool", ["r"], "p", kernel_shape=[2, 2], strides=[2, 2])
    b.node("Resize", ["p", "", b.const("scales", np.array([1, 1, 2, 2], np.float32))], "u", mode="nearest",
           coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    b.node("Reshape", ["u", b.const("shape", np.array([1, -1, 4], np.int64))], "f")
    b.node("Transpose", ["f"], "t", perm=[0, 2, 1])
    b.node("Softmax", ["t"], "y", axis=2)
    return b.model([1, 1, 4, 4], ["y"])


def clear(ran) -> None:
    assert ran.code in (0, 1, 2, 3)
    assert "internal error" not in ran.err
    assert "Traceback" not in ran.err
    assert ran.code == 0 or ran.err.startswith("error: ") or ran.out


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_models(seeds, cli, tmp_path):
    content = small().SerializeToString()
    for seed in seeds:
        (tmp_path / "m.onnx").write_bytes(damaged(content, seed))
        out = Path(f"out{seed}")
        ran = cli("convert", "m.onnx", "-o", out, "--name", "net", "--no-caffe-run")
        clear(ran)
        assert ran.code != 1, f"seed {seed}: {ran.err}"
        assert whole_or_nothing(out) == (ran.code == 0) == out.exists(), f"seed {seed}"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("which", ["prototxt", "caffemodel", "map.json"])
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_nets(seeds, which, cli, tmp_path):
    (tmp_path / "m.onnx").write_bytes(small().SerializeToString())
    assert cli("convert", "m.onnx", "-o", "out", "--name", "net", "--no-proof").code == 0
    path = tmp_path / "out" / f"net.{which}"
    content = path.read_bytes()
    for seed in seeds:
        path.write_bytes(damaged(content, seed, ANY if which == "caffemodel" else TEXT))
        ran = cli("compare", "m.onnx", "out/net.prototxt", "out/net.caffemodel", "--runs", 1, "--no-caffe-run")
        clear(ran)


def test_damage_is_the_same_every_time():
    content = graph("{ y = Relu(x) }").SerializeToString()
    assert damaged(content, 3) == damaged(content, 3) != damaged(content, 4)
