"""The parts of an export that stay ONNX, as C for the board's CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx2caffe import ccode
from onnx2caffe.canon import Note
from onnx2caffe.ccode import CCode
from onnx2caffe.errors import Unsupported, advised
from onnx2caffe.mapfile import OnnxSegment, Segment
from onnx2caffe.stages import sha256
from onnx2caffe.tvm_driver import CPart, part_as_c
from onnx2caffe.verify.report import summary
from onnx2caffe.verify.scores import Progress

__all__ = ["CpuParts", "as_c"]


@dataclass(frozen=True)
class CpuParts:
    """The segments, those of ONNX with their C; the files written, with their sha256; what the user should know."""

    segments: list[Segment]
    files: dict[str, str]
    notes: list[Note]


def as_c(segments: Sequence[Segment], folder: Path, name: str, compare: bool, progress: Progress) -> CpuParts:
    """Write every ONNX part in `folder` as C beside it, and what builds all of it.

    Raises:
        NotConvertible: Relay lacks what is named.
        Unsupported: an operator's C would call TVM's runtime.
        NumbersDiffer: the C computes something else than its part.
        RuntimeMissing: there is no TVM with Relay.

    """
    result: list[Segment] = []
    codes: list[CCode] = []
    notes: list[Note] = []
    for segment in segments:
        if not isinstance(segment, OnnxSegment):
            result.append(segment)
            continue
        progress(f"{segment.file} as C")
        with advised(Unsupported, f"without --cpu-c the export is written, and {segment.file} stays ONNX alone"):
            part = part_as_c(folder / segment.file, Path(segment.file).stem, compare, progress)
        codes.append(part.code)
        notes += [*part.notes, _told(segment.file, part)]
        result.append(replace(segment, c=part.code.to_json()))
    if not codes:
        return CpuParts(result, {}, [Note("note", "--cpu-c has no effect: nothing stays ONNX")])
    build = ccode.write_build_files(folder, f"{name}_cpu", codes)
    names = [*(file for code in codes for file in code.files.values()), *build.values()]
    return CpuParts(result, {file: sha256(folder / file) for file in names}, notes)


def _told(file: str, part: CPart) -> Note:
    proved = summary(part.proof) if part.proof else "not proved"
    return Note("note", f"{file} is {part.code.interface.function} of {part.code.files['header']} too; {proved}")
