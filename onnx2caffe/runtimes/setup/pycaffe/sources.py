"""Caffe's sources: fetched from PyPI, checked, unpacked, patched."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

from onnx2caffe.errors import RuntimeMissing
from onnx2caffe.runtimes import interpreter
from onnx2caffe.runtimes.setup.commands import run
from onnx2caffe.runtimes.setup.pycaffe.recipe import INSTEAD, SDIST, SOURCES

__all__ = ["fetch", "unpack"]

_KEPT = ("src/caffe/", "include/caffe/", "python/caffe/", "LICENSE")

_PATCHES = (
    # The sdist lowered the size limit of a caffemodel to 512 MiB; BVLC Caffe has 2 GiB less one byte.
    (
        "src/caffe/util/io.cpp",
        "SetTotalBytesLimit(536870912)",
        "SetTotalBytesLimit(kProtoReadBytesLimit)",
    ),
    # scikit-image and scipy only load and resize pictures.
    (
        "python/caffe/io.py",
        "import skimage.io\nfrom scipy.ndimage import zoom\nfrom skimage.transform import resize\n",
        "try:\n    import skimage.io\n    from scipy.ndimage import zoom\n    from skimage.transform import resize\n"
        "except ImportError:\n    skimage = zoom = resize = None\n",
    ),
    # ceil_mode: what vendors' nets call round_mode.
    (
        "src/caffe/layers/pooling_layer.cpp",
        "  round_mode_ = pool_param.round_mode();\n",
        "  round_mode_ = pool_param.round_mode();\n"
        "  if (pool_param.has_ceil_mode()) {\n"
        "    round_mode_ = pool_param.ceil_mode() ?\n"
        "        PoolingParameter_RoundMode_CEIL :\n"
        "        PoolingParameter_RoundMode_FLOOR;\n"
        "  }\n",
    ),
)

_OWN_NAMES = "\nfrom ._caffe import set_check_raises, check_raises, set_log_level\n"
"""Names of our binding that Caffe's own `__init__.py` does not know."""


def fetch(python: Path, folder: Path) -> Path:
    """Download the sdist with pip; the archive.

    Raises:
        RuntimeMissing: pip failed, or what came is not the pinned archive.

    """
    name, version, digest = SDIST
    # Without isolation pip takes setuptools and wheel from the environment when it asks the sdist for its metadata.
    options = ["-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", str(folder)]
    run([python, "-m", "pip", "download", *options, f"{name}=={version}"], interpreter.environment(), INSTEAD)
    archive = next(folder.glob(f"*{version}.tar.gz"))
    got = hashlib.sha256(archive.read_bytes()).hexdigest()
    if got != digest:
        raise RuntimeMissing(f"{archive} has sha256 {got}, expected {digest}", INSTEAD)
    return archive


def unpack(archive: Path, destination: Path) -> None:
    """Unpack what is needed of the archive and patch it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            name = member.name.partition("/")[2]
            content = tar.extractfile(member) if name.startswith(_KEPT) else None
            if content is not None:
                path = destination / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
    _patch(destination)


def _patch(source: Path) -> None:
    for name, old, new in _PATCHES:
        _replace(source / name, old, new)
    with (source / "python/caffe/__init__.py").open("a", encoding="utf-8") as file:
        file.write(_OWN_NAMES)
    proto = source / "src/caffe/proto/caffe.proto"
    parts = _proto_parts()
    for message in ("LayerParameter", "PoolingParameter"):
        head = f"\nmessage {message} {{\n"
        _replace(proto, head, head + parts[message])
    with proto.open("a", encoding="utf-8") as file:
        file.write("\n" + parts["messages"])


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise RuntimeMissing(f"cannot patch {path}: {old!r} is not in it", INSTEAD)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def _proto_parts() -> dict[str, str]:
    """The fields and messages of our layers; a line `@@NAME` begins the part that goes into message NAME."""
    sections = (SOURCES / "extra_layers.proto.txt").read_text(encoding="utf-8").split("@@")[1:]
    return {name.strip(): body for name, _, body in (section.partition("\n") for section in sections)}
