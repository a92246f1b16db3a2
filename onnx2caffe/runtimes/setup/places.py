"""Where things made by `onnx2caffe setup` lie: below the user's cache folder."""

from __future__ import annotations

from pathlib import Path

import platformdirs

__all__ = ["cache"]


def cache() -> Path:
    """The user's cache folder of this package; need not exist."""
    return Path(platformdirs.user_cache_dir("onnx2caffe"))
