"""What the drivers of both exits share: names, folders, the look at every step, what an inconclusive proof says."""

from __future__ import annotations

import contextlib
import errno
import hashlib
from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir

from onnx2caffe import __version__
from onnx2caffe.canon import Note
from onnx2caffe.errors import Onnx2CaffeError, UsageError
from onnx2caffe.frontend import Loaded, invariants
from onnx2caffe.runtimes.ort import Reference
from onnx2caffe.verify.inputs import all_runs
from onnx2caffe.verify.scores import Proof, Row

__all__ = [
    "FAULT",
    "SEEDS",
    "TOOL",
    "Observer",
    "blamed",
    "complaint",
    "plain_name",
    "sha256",
    "unjudged_notes",
    "writing",
]

SEEDS = (0, 1, 2)
"""The structured inputs of every proof."""

FAULT = "this is a fault of onnx2caffe, not of the model"
TOOL = f"onnx2caffe {__version__}"


def plain_name(name: str) -> str:
    """A file name's stem that leads nowhere else.

    Raises:
        UsageError: it holds a path separator, or is empty or dots.

    """
    if not name.strip(".") or any(mark in name for mark in "/\\\0"):
        raise UsageError(f"{name!r} is no file name", "--name NAME, without path separators, names the files")
    return name


def sha256(path: Path) -> str:
    """The sha256 of a file, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A full disk or a folder without permission is the user's to mend."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        hint = "give a shorter --name" if problem.errno == errno.ENAMETOOLONG else "nothing was changed there"
        place = folder
        if isinstance(problem.filename, str) and not Path(problem.filename).is_relative_to(folder):
            place = Path(problem.filename)  # a temporary file
        raise UsageError(f"cannot write into {place}: {reason}", hint) from problem


@contextlib.contextmanager
def blamed(loaded: Loaded) -> Iterator[None]:
    """What goes wrong unexpectedly is the model's fault where onnxruntime does not run it either.

    Raises:
        NoReference: it does not; with onnxruntime's words.

    """
    try:
        yield
    except (Onnx2CaffeError, OSError, MemoryError):
        raise
    except Exception:  # of any kind: a broken model stops passes and lowerings wherever they first rely on it
        if loaded.path is not None:
            first = next(all_runs(loaded.inputs, SEEDS[:1]))
            Reference(loaded.path).run(first, [output.name for output in loaded.outputs])
        raise


class Observer:
    """Looks at the model after every step, as the user asked: saves it, checks that it is still canonical."""

    def __init__(self, folder: Path | None, check: bool) -> None:
        self._folder, self._check = folder, check
        self._count = 0

    def __call__(self, step: str, model: ir.Model) -> None:
        """Look at the model after a step."""
        if self._folder is not None:
            self._save(self._folder, f"{self._count:02d}-{step}", model)
            self._count += 1
        if self._check:
            try:
                invariants.check(model)
            except invariants.NotCanonical as problem:
                raise Onnx2CaffeError(f"after {step}: {problem.message}", FAULT) from problem

    @staticmethod
    def _save(folder: Path, stem: str, model: ir.Model) -> None:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            ir.save(model, folder / f"{stem}.onnx", external_data=f"{stem}.data")


def unjudged_notes(proof: Proof | None) -> list[Note]:
    """A warning for every output that no input could judge."""
    notes = []
    compared = {row.tensor for row in proof.rows} if proof else set()
    for name, before in (proof.unjudged if proof else {}).items():
        if name not in compared:
            notes.append(Note("warning", f"output {name!r} was not compared: it or its type cannot be read back here"))
            continue
        nearest = f"; the nearest tensors before it that were: {', '.join(before)}" if before else ""
        text = (
            f"output {name!r} could not be judged: on these inputs the model itself turns rounding into another answer "
            f"or answers NaN{nearest}. Give a picture or an array it answers to: --input NAME=FILE"
        )
        notes.append(Note("warning", text))
    return notes


def complaint(proof: Proof, broken: Row, step: str, unproved: str) -> tuple[str, str]:
    """Message and hint where the proof failed; `unproved` is the option that writes all the same."""
    j = broken.judgement
    different = len({row.tensor for row in proof.rows if row.judgement.verdict == j.verdict})
    lines = [
        f"tensor {broken.tensor!r} differs in {broken.runtime} on input {broken.run + 1}: "
        + (j.why or f"relative {j.error:.1e} where {j.allowed:.1e} is allowed, cosine {j.cosine:.6f}"),
        f"it stands in blob {broken.blob!r} after layer {broken.layer!r} and is the first of {different} that differ",
        step,
        "nothing was written",
    ]
    return "\n".join(lines), f"{FAULT}; {unproved} writes the files unproved"
