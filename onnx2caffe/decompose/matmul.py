"""The sizes in a matrix product of any ranks (ONNX MatMul, numpy.matmul)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnx2caffe.canon import Shape

__all__ = ["Product", "product"]


@dataclass(frozen=True)
class Product:
    """(*left, rows, inner) x (*right, inner, columns) -> (*batch, rows, columns) -> `result`.

    `left` and `right` have the rank of `batch`, padded in front with ones. A 1-D left operand is one row, a 1-D right
    one is one column; `result` is ONNX's output shape, without those.
    """

    left: Shape
    right: Shape
    batch: Shape
    rows: int
    inner: int
    columns: int
    result: Shape

    @property
    def multiplications(self) -> int:
        """Scalar multiplications in the product."""
        return math.prod(self.batch) * self.rows * self.inner * self.columns


def product(a: Sequence[int], b: Sequence[int]) -> Product:
    """The sizes of a @ b from the operands' shapes (rank 1 or more, inner sizes equal)."""
    left, right = tuple(a[:-2]), tuple(b[:-2])
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    batch = tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    return Product(
        left,
        right,
        batch,
        rows[0] if rows else 1,
        a[-1],
        columns[0] if columns else 1,
        (*batch, *rows, *columns),
    )
