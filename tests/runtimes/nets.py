"""Small nets for the pycaffe runtime's tests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from onnx2caffe.runtimes.base import NetFiles, Tap
from onnx2caffe.runtimes.pycaffe import PyCaffe


def input_layer(name: str, *shape: int) -> str:
    quoted = json.dumps(name, ensure_ascii=False)
    dims = " ".join(f"dim: {d}" for d in shape)
    return f'layer {{ name: {quoted} type: "Input" top: {quoted} input_param {{ shape {{ {dims} }} }} }}\n'


def layer(kind: str, name: str, bottoms: list[str], tops: list[str], params: str = "") -> str:
    quoted = [json.dumps(x, ensure_ascii=False) for x in (name, *bottoms, *tops)]
    bottom = " ".join(f"bottom: {q}" for q in quoted[1 : 1 + len(bottoms)])
    top = " ".join(f"top: {q}" for q in quoted[1 + len(bottoms) :])
    return f'layer {{ name: {quoted[0]} type: "{kind}" {bottom} {top} {params} }}\n'


def written(folder: Path, *layers: str) -> NetFiles:
    """The net's files; the caffemodel is empty, so weights come from fillers."""
    files = NetFiles(folder / "net.prototxt", folder / "net.caffemodel")
    files.prototxt.write_text("".join(layers), encoding="utf-8")
    files.caffemodel.write_bytes(b"")
    return files


def one_layer(
    caffe: PyCaffe, folder: Path, kind: str, params: str, *xs, tops: tuple[str, ...] = ("y",), in_place: bool = False
) -> list[np.ndarray]:
    """Run one layer on arrays, or on standard normal ones of the given shapes; its tops."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(x) if isinstance(x, tuple) else np.asarray(x) for x in xs]
    names = [f"x{n}" for n in range(len(xs))]
    tops = ("x0",) if in_place else tops
    files = written(
        folder,
        *(input_layer(n, *a.shape) for n, a in zip(names, arrays, strict=True)),
        layer(kind, "L", names, list(tops), params),
    )
    (results,) = caffe.run(files, [dict(zip(names, arrays, strict=True))], [Tap(t) for t in tops])
    return [results[Tap(t)] for t in tops]
