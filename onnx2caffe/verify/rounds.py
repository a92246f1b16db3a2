"""Tensors in groups that fit into memory: what is compared is run once per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from onnx2caffe.canon import Shape

__all__ = ["rounds"]


def rounds(shapes: Mapping[str, Shape], order: Mapping[str, int], limit: int) -> Iterator[list[str]]:
    """The names in order, in groups of at most `limit` elements; a tensor larger than that is alone."""
    group: list[str] = []
    size = 0
    for name in sorted(shapes, key=lambda name: order.get(name, len(order))):
        elements = int(np.prod(shapes[name], dtype=np.int64))
        if group and size + elements > limit:
            yield group
            group, size = [], 0
        group.append(name)
        size += elements
    if group:
        yield group
