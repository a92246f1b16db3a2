"""From a detector's outputs to scores and boxes (x1, y1, x2, y2), one per place of the grid; no suppression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Outputs = Mapping[str, np.ndarray]
Found = tuple[np.ndarray, np.ndarray]

_ANCHORS = (
    ((12.64, 19.39), (37.88, 51.48), (55.71, 138.31)),
    ((126.91, 78.23), (131.57, 214.55), (279.92, 258.87)),
)
"""Of Yolo-FastestV2 on COCO, per stride 16 and 32."""


def nanodet(outputs: Outputs) -> Found:
    """Scores, and sides as distributions over 8 bins, at the centres of cells of 8, 16 and 32 pixels."""
    scores, boxes = [], []
    for stride, (score, sides) in zip((8, 16, 32), (("792", "795"), ("814", "817"), ("836", "839")), strict=True):
        bins = outputs[sides].reshape(-1, 4, 8).astype(np.float64)
        weights = np.exp(bins - bins.max(-1, keepdims=True))
        distances = weights @ np.arange(8) / weights.sum(-1) * stride
        scores.append(outputs[score][0].max(-1))
        boxes.append(_around(_grid(int(len(bins) ** 0.5), stride, 0.5), distances))
    return np.concatenate(scores), np.concatenate(boxes)


def scrfd(outputs: Outputs) -> Found:
    """Scores and sides, two per cell of 8, 16 and 32 pixels, from the cell's corner."""
    scores, boxes = [], []
    for level, stride in enumerate((8, 16, 32)):
        distances = outputs[f"out{level + 3}"].reshape(-1, 4) * stride
        corners = np.repeat(_grid(int((len(distances) / 2) ** 0.5), stride, 0), 2, axis=0)
        scores.append(outputs[f"out{level}"].reshape(-1))
        boxes.append(_around(corners, distances))
    return np.concatenate(scores), np.concatenate(boxes)


def yolo_fastest(outputs: Outputs) -> Found:
    """Per cell of 16 and 32 pixels three anchors: 12 numbers of boxes, 3 of objects, then 80 classes for all three."""
    (rows,) = outputs.values()
    scores, boxes, start = [], [], 0
    for stride, anchors in zip((16, 32), _ANCHORS, strict=True):
        size = 352 // stride
        cells = rows[start : start + size * size]
        start += size * size
        grid = _grid(size, 1, 0)
        for number, anchor in enumerate(anchors):
            x, y, width, height = cells[:, 4 * number : 4 * number + 4].T
            centres = (np.stack([x, y], 1) * 2 - 0.5 + grid) * stride
            halves = (np.stack([width, height], 1) * 2) ** 2 * anchor / 2
            boxes.append(np.concatenate([centres - halves, centres + halves], 1))
            scores.append(cells[:, 12 + number] * cells[:, 15:].max(1))
    return np.concatenate(scores), np.concatenate(boxes)


def overlap(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Intersection over union of boxes, pair by pair."""
    low, high = np.maximum(left[:, :2], right[:, :2]), np.minimum(left[:, 2:], right[:, 2:])
    common = np.maximum(high - low, 0).prod(1)
    areas = [np.maximum(box[:, 2:] - box[:, :2], 0).prod(1) for box in (left, right)]
    return common / np.maximum(sum(areas) - common, 1e-9)


def _grid(size: int, stride: float, offset: float) -> np.ndarray:
    """The points of a square grid, row by row, as (x, y)."""
    y, x = np.mgrid[:size, :size]
    return (np.stack([x.ravel(), y.ravel()], 1) + offset) * stride


def _around(points: np.ndarray, distances: Sequence[Sequence[float]] | np.ndarray) -> np.ndarray:
    left_top, right_bottom = np.split(np.asarray(distances), 2, axis=1)
    return np.concatenate([points - left_top, points + right_bottom], 1)
