"""Tensors in groups that fit into memory: what is compared is run once per group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from onnx2caffe.canon import Shape

__all__ = ["rounds"]


def rounds(shapes: Mapping[str, Shape], order: Mapping[str, int], limit: int) -> Iterator[list[str]]:
    """The names in order, in groups of at most `limit` elements; a tensor larger than that is alone.

    A size of -1 depends on data and counts as 1.
    """
    group: list[str] = []
    size = 0
    for name in sorted(shapes, key=lambda name: order.get(name, len(order))):
        elements = abs(math.prod(shapes[name]))
        if group and size + elements > limit:
            yield group
            group, size = [], 0
        group.append(name)
        size += elements
    if group:
        yield group
