"""What goes into a net as nnie_mapper's cfg lists it: calibration data for inputs that are no pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from onnx2caffe.mapfile import CaffeSegment
from onnx2caffe.runtimes.base import Feeds

__all__ = ["write_lists"]


def write_lists(folder: Path, segment: CaffeSegment, feeds: Sequence[Feeds]) -> None:
    """Write `<net>.<blob>.txt` for each input of a net: an [image_list] for [image_type] 0, one line per run."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in segment.inputs.values():
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", place.blob)
        rows = [values[place.blob].ravel() for values in feeds]
        np.savetxt(folder / f"{Path(segment.prototxt).stem}.{name}.txt", rows, fmt="%.8g")
