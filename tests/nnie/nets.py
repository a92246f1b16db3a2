"""Small prototxts for the rules: a head, and layers in short form."""

from __future__ import annotations

from pathlib import Path

from onnx2caffe.caffe.site import Sites, read_sites
from onnx2caffe.targets.nnie.segments import REPORT


def net(*layers: str, shape: tuple[int, ...] = (1, 4, 8, 8), name: str = "data") -> str:
    dims = " ".join(f"dim: {d}" for d in shape)
    head = f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}'
    return "\n".join([head, *layers, ""])


def layer(type: str, parameters: str = "", *, bottom: str = "data", top: str = "", name: str = "it") -> str:
    """One layer; several bottoms or tops are separated by commas."""
    bottoms = " ".join(f'bottom: "{b}"' for b in bottom.split(",") if b)
    tops = " ".join(f'top: "{t}"' for t in (top or name).split(",") if t)
    return f'layer {{ name: "{name}" type: "{type}" {bottoms} {tops} {parameters} }}'


def sites(text: str, folder: Path) -> Sites:
    path = folder / "net.prototxt"
    path.write_text(text, encoding="utf-8")
    return read_sites(path, REPORT)
