"""What the nets are run on: seeded structured fields, and the user's own pictures, arrays and numbers.

A structured field is 0.3 of noise plus bilinear enlargements of 2×2, 5×5 and 13×13 noise: structures of three sizes
excite a convolution net, where white noise averages out and hides errors. The streams of `RandomState` are frozen, so a
seed means the same numbers on every machine.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.errors import UsageError
from onnx2caffe.runtimes.base import Array

__all__ = ["InputInfo", "Pictures", "all_runs", "check_pictures", "feeds", "names_file", "structured"]

_GRIDS = (2, 5, 13)
_NOISE = 0.3
_PLAIN_SCALE = 1.2
_SEED_STEP = 1000
_BYTE_SCALE, _BYTE_OFFSET = 50.0, 128.0
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".bmp"})
_FILES = _PICTURES | {".npy"}


class InputInfo(Protocol):
    """An input of the user's model: its name, fixed shape and numpy dtype name."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def shape(self) -> Shape: ...  # noqa: D102
    @property
    def dtype(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class Pictures:
    """How pixels (0…255) become input values: `(pixel * scale - mean) / std`, one number or one per channel.

    Pixels come in the order B, G, R as Caffe's and OpenCV's readers give them, or R, G, B with `rgb`.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    scale: float = 1.0
    rgb: bool = False


def _bilinear(field: Array, size: int, axis: int) -> Array:
    """Enlarge one axis linearly: half-pixel centres, edges clamped."""
    have = field.shape[axis]
    position = np.clip((np.arange(size) + 0.5) * (have / size) - 0.5, 0, have - 1)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, have - 1)
    weight = (position - low).reshape([-1 if a == axis % field.ndim else 1 for a in range(field.ndim)])
    return np.asarray(np.take(field, low, axis) * (1 - weight) + np.take(field, high, axis) * weight)


def structured(shape: Shape, seed: int) -> Array:
    """A structured field as float64, mean 0, standard deviation about 1.2.

    Rank 3 is (N, C, L), rank 4 (N, C, H, W); of higher ranks the last two axes are planes; below 3 it is plain noise.
    """
    random = np.random.RandomState(seed)
    if len(shape) < 3:
        return np.asarray(random.standard_normal(shape) * _PLAIN_SCALE)
    *lead, height, width = shape if len(shape) > 3 else (*shape[:-1], 1, shape[-1])
    field = _NOISE * random.standard_normal((*lead, height, width))
    for grid in _GRIDS:
        small = random.standard_normal((*lead, min(grid, max(height, 1)), grid))
        field = field + _bilinear(_bilinear(small, height, -2), width, -1)
    return field.reshape(shape)


def _is_channels_last(shape: Shape) -> bool:
    return len(shape) == 4 and shape[3] <= 4 < min(shape[1], shape[2])


def _seeded(info: InputInfo, seed: int) -> Array:
    """One input's field in the input's own dtype: bytes around 128, integers not negative, booleans half and half."""
    if _is_channels_last(info.shape):
        n, h, w, c = info.shape
        values = structured((n, c, h, w), seed).transpose(0, 2, 3, 1)
    else:
        values = structured(info.shape, seed)
    dtype = np.dtype(info.dtype)
    if dtype.kind == "b":
        return np.asarray(values > 0, order="C")
    if dtype == np.uint8:
        values = values * _BYTE_SCALE + _BYTE_OFFSET
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = np.abs(np.clip(np.rint(values), limits.min, limits.max))
    return np.asarray(values.astype(dtype), order="C")


def feeds(infos: Sequence[InputInfo], seed: int, given: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """Values for every input: those given, and seeded fields (the n-th input has seed `seed + 1000·n`) for the rest."""
    given = given or {}
    return {
        info.name: given[info.name] if info.name in given else _seeded(info, seed + _SEED_STEP * number)
        for number, info in enumerate(infos)
    }


def names_file(text: str) -> bool:
    """Whether a `NAME=WHAT` option gives a file rather than a number."""
    return Path(text).suffix.lower() in _FILES


def check_pictures(texts: Sequence[str], pictures: Pictures) -> None:
    """Refuse words about pictures where no `NAME=FILE` option gives one: they would be about nothing.

    Raises:
        UsageError: they are.

    """
    if pictures != Pictures() and not any(Path(text).suffix.lower() in _PICTURES for text in texts):
        raise UsageError(
            "--mean, --std, --scale and --rgb say how a picture becomes an input of the comparison; no --input is one",
            "add --input NAME=PICTURE, or leave them out: they never go into the written files "
            "(nnie_mapper takes mean and scale in its cfg)",
        )


def _split(texts: Sequence[str], infos: Sequence[InputInfo]) -> list[tuple[InputInfo, str]]:
    """Split `NAME=WHAT` options; names may hold `=`, so the model's own input names decide where a name ends.

    Raises:
        UsageError: no such input, or no `=`.

    """
    found = []
    for text in texts:
        fitting = [i for i in infos if text.startswith(f"{i.name}=")]
        if not fitting:
            hint = f"write NAME=FILE or NAME=VALUE; inputs: {', '.join(repr(i.name) for i in infos)}"
            raise UsageError(f"--input {text!r} names no input of the model", hint)
        info = max(fitting, key=lambda i: len(i.name))
        found.append((info, text[len(info.name) + 1 :]))
    return found


def _given(
    texts: Sequence[str], infos: Sequence[InputInfo], pictures: Pictures
) -> tuple[dict[str, Array], list[dict[str, Array]]]:
    """The user's `--input` options as (numbers that hold in every run, one dict per run that files ask for).

    The n-th file given for an input belongs to the n-th of those runs.

    Raises:
        UsageError: an unknown input, an unreadable file, a wrong shape, or pictures without pillow.

    """
    fixed: dict[str, Array] = {}
    runs: list[dict[str, Array]] = []
    for info, what in _split(texts, infos):
        path = Path(what)
        if not names_file(what):
            fixed[info.name] = _numbers(what, info)
            continue
        value = _array(path, info) if path.suffix.lower() == ".npy" else _picture(path, info, pictures)
        free = next((run for run in runs if info.name not in run), None)
        if free is None:
            runs.append(free := {})
        free[info.name] = value
    return fixed, runs


def _numbers(text: str, info: InputInfo) -> Array:
    """`text` as one number for the whole input, or one number per element, separated by commas."""
    try:
        values = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise UsageError(
            f"--input {info.name}={text}: neither a number nor a .npy, .png or .jpg file",
            "give a file by its name with the ending, a number, or numbers separated by commas",
        ) from None
    if values.size == 1:
        return np.full(info.shape, values[0]).astype(info.dtype)
    return _fitted(values, info, f"--input {info.name}={text}")


def _fitted(values: Array, info: InputInfo, what: str) -> Array:
    """`values` in the input's shape; axes of size 1 may be missing or too many, nothing else."""
    meant = [d for d in info.shape if d != 1]
    if values.size != int(np.prod(info.shape)) or (values.ndim > 1 and [d for d in values.shape if d != 1] != meant):
        raise UsageError(f"{what}: shape {list(values.shape)}, but input {info.name!r} has shape {list(info.shape)}")
    return np.asarray(values.reshape(info.shape).astype(info.dtype), order="C")


def _array(path: Path, info: InputInfo) -> Array:
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as problem:
        raise UsageError(f"cannot read {path}: {problem}") from problem
    return _fitted(values, info, str(path))


def _picture(path: Path, info: InputInfo, how: Pictures) -> Array:
    """A picture, enlarged or shrunk to the input's height and width, in the input's layout and number of channels."""
    shape = info.shape
    if len(shape) != 4:
        raise UsageError(f"{path}: a picture fits inputs of 4 axes; {info.name!r} has shape {list(shape)}")
    last = _is_channels_last(shape) or (shape[1] not in (1, 3) and shape[3] in (1, 3))
    channels, height, width = (shape[3], shape[1], shape[2]) if last else shape[1:]
    if channels not in (1, 3):
        raise UsageError(f"{path}: a picture has 1 or 3 channels; input {info.name!r} has {channels}")
    pixels = _pixels(path, channels, height, width)
    if channels == 3 and not how.rgb:
        pixels = pixels[..., ::-1]
    for option, numbers in (("--mean", how.mean), ("--std", how.std)):
        if len(numbers) not in (1, channels):
            takes = f"1 number or {channels}" if channels > 1 else "1 number"
            raise UsageError(f"{option} has {len(numbers)} numbers; input {info.name!r} takes {takes}")
    values = (pixels * how.scale - np.asarray(how.mean)) / np.asarray(how.std)
    if not _holds(np.dtype(info.dtype), values):
        what = (
            f"input {info.name!r} is {info.dtype}; --scale, --mean and --std make other numbers of the pixels of {path}"
        )
        raise UsageError(what, "leave them out: what such a model does with pixels is in it")
    values = values[None] if last else values.transpose(2, 0, 1)[None]
    return np.asarray(np.broadcast_to(values, shape).astype(info.dtype), order="C")


def _holds(dtype: np.dtype[Any], values: Array) -> bool:
    """Whether a dtype has these numbers; of fractions any float has enough."""
    if dtype.kind not in "iu":
        return True
    limits = np.iinfo(dtype)
    return bool(np.all((values == np.rint(values)) & (values >= limits.min) & (values <= limits.max)))


def _pixels(path: Path, channels: int, height: int, width: int) -> Array:
    if not path.is_file():
        raise UsageError(f"cannot read {path}: no such file")
    try:
        from PIL import Image
    except ImportError as problem:
        raise UsageError(
            f"reading {path.name} needs pillow", "pip install pillow, or give the input as a .npy file"
        ) from problem
    try:
        with Image.open(path) as image:
            fitted = image.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)
    except (OSError, Image.DecompressionBombError) as problem:
        raise UsageError(f"cannot read {path}: {problem}") from problem
    return np.asarray(fitted, np.float64).reshape(height, width, channels)


def all_runs(
    infos: Sequence[InputInfo], seeds: Sequence[int], texts: Sequence[str] = (), pictures: Pictures | None = None
) -> Iterator[dict[str, Array]]:
    """The feeds of every run: one per seed, then one per set of files."""
    fixed, runs = _given(texts, infos, pictures or Pictures())
    for seed in seeds:
        yield feeds(infos, seed, fixed)
    for run in runs:
        yield feeds(infos, 0, fixed | run)
