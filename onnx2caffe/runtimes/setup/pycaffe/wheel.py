"""The package as a wheel: one file that installs into any environment of that Python version."""

from __future__ import annotations

import base64
import hashlib
import platform
import sys
import zipfile
from pathlib import Path

from onnx2caffe.runtimes.setup.pycaffe.recipe import RUN_PACKAGES, VERSION

__all__ = ["write_wheel"]

_INFO = f"caffe-{VERSION}.dist-info"
_DATE = (2020, 2, 13, 0, 0, 0)  # of the BVLC commit: the same build gives the same bytes


def write_wheel(package: Path, licence: Path, folder: Path) -> Path:
    """Pack the folder `package` as `caffe`, with the licence of its sources, into a wheel in `folder`."""
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    tag = f"cp{minor.replace('.', '')}"
    platform_tag = f"{tag}-{tag}-linux_{platform.machine()}"
    metadata = [
        "Metadata-Version: 2.1",
        "Name: caffe",
        f"Version: {VERSION}",
        "Summary: BVLC Caffe 1.0 (9b891540), CPU only, with layers of SSD and of NNIE's nets",
        "License: BSD-2-Clause",
        f"Requires-Python: =={minor}.*",
        *(f"Requires-Dist: {requirement}" for requirement in RUN_PACKAGES),
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: onnx2caffe", "Root-Is-Purelib: false", f"Tag: {platform_tag}"]
    files = {
        f"caffe/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file()
    }
    files[f"{_INFO}/METADATA"] = _lines(metadata)
    files[f"{_INFO}/WHEEL"] = _lines(wheel)
    files[f"{_INFO}/LICENSE"] = licence.read_bytes()
    records = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{_INFO}/RECORD"] = _lines([*records, f"{_INFO}/RECORD,,"])
    path = folder / f"caffe-{VERSION}-{platform_tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
            archive.writestr(entry, data)
    return path


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
