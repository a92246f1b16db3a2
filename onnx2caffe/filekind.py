"""Files that a user names: a folder, or a file of another kind, gets one error that says what to name instead."""

from __future__ import annotations

from pathlib import Path

from onnx2caffe.errors import UnreadableFile

__all__ = ["CAFFEMODEL", "ONNX", "PROTOTXT", "need"]

ONNX, PROTOTXT, CAFFEMODEL = "an ONNX file", "a prototxt", "a caffemodel"

_ENDINGS = {".onnx": ONNX, ".prototxt": PROTOTXT, ".caffemodel": CAFFEMODEL}
_USES = (
    "`check` takes NET.prototxt or MODEL.onnx, `compare` MODEL.onnx NET.prototxt NET.caffemodel in this order, "
    "every other command MODEL.onnx"
)
_SHOWN = 3


def need(path: Path, kind: str) -> None:
    """Refuse a folder, or a file that by its name is of another kind; whatever else is left to who reads it.

    Raises:
        UnreadableFile: it is such a path, or none at all.

    """
    try:
        inside = [*path.iterdir()] if path.is_dir() else None
        other = _ENDINGS.get(path.suffix.lower(), kind) if path.exists() else kind
    except OSError as problem:
        raise UnreadableFile(f"{str(path)!r} cannot be read: {problem.strerror}") from problem
    if inside is not None:
        fitting = sorted(entry.name for entry in inside if _ENDINGS.get(entry.suffix) == kind)
        named = ", ".join(fitting[:_SHOWN]) + (" …" if len(fitting) > _SHOWN else "")
        raise UnreadableFile(f"{path} is a folder, not {kind}", f"it holds {named}" if named else "name a file")
    if other != kind:
        raise UnreadableFile(f"{path} is {other}, not {kind}", _USES)
