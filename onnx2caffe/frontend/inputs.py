"""Fix the shapes of the graph's inputs: given ones, the batch, or an error that says what to pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx
import onnx_ir as ir

from onnx2caffe.canon import Note, Shape
from onnx2caffe.errors import FreeDimension, UnreadableFile, Unsupported, UsageError

__all__ = ["dims_of", "fix_inputs"]


_NO_NUMBERS: Mapping[int, str] = {
    onnx.TensorProto.STRING: "strings",
    onnx.TensorProto.COMPLEX64: "complex numbers",
    onnx.TensorProto.COMPLEX128: "complex numbers",
}


def fix_inputs(
    inputs: Sequence[onnx.ValueInfoProto], given: Mapping[str, Shape], needed: Iterable[str]
) -> tuple[dict[str, tuple[ir.DataType, Shape]], list[Note]]:
    """The element type and static shape of each input, with notes on what was assumed.

    A shape given for one input fixes dimensions of the same symbolic name in all. A free first dimension is a batch of
    1. The free dimensions of inputs that are not `needed` are 1.

    Raises:
        UsageError: a given shape names no input, or contradicts the file.
        FreeDimension: a dimension stays free; all inputs concerned and the options to pass are named.
        Unsupported: an input is no tensor.
        UnreadableFile: an input has no element type.

    """
    unknown = [name for name in given if name not in {i.name for i in inputs}]
    if unknown:
        raise UsageError(
            f"the model has no input {unknown[0]!r}", f"its inputs: {', '.join(repr(i.name) for i in inputs)}"
        )
    symbols: dict[str, int] = {}
    for proto in inputs:
        if proto.name in given:
            symbols.update(_matched(proto, given[proto.name]))
    live = set(needed)
    fixed: dict[str, tuple[ir.DataType, Shape]] = {}
    free: dict[str, str] = {}
    batched: list[str] = []
    for proto in inputs:
        dtype = _dtype(proto)
        dims = list(given.get(proto.name, ())) or dims_of(proto)
        if dims is None:
            free[proto.name] = f"--input-shape {proto.name}:D0,D1,…  (the file gives no rank)"
            continue
        dims = [symbols.get(d, d) if isinstance(d, str) else d for d in dims]
        if proto.name not in live:
            dims = [1 if isinstance(d, str) else d for d in dims]
        if dims and isinstance(dims[0], str):
            batched.append(proto.name)
            dims[0] = 1
        if any(isinstance(d, str) for d in dims):
            free[proto.name] = f"--input-shape {proto.name}:{','.join(str(d) for d in dims)}"
            continue
        fixed[proto.name] = (dtype, tuple(int(d) for d in dims))
    if free:
        raise FreeDimension(
            "; ".join(_complaint(proto) for proto in inputs if proto.name in free),
            "fix them with numbers in place of the names: " + " ".join(free.values()),
        )
    notes = (
        [Note("note", f"free batch dimension of input {', '.join(map(repr, batched))} taken as 1")] if batched else []
    )
    return fixed, notes


def _tensor(proto: onnx.ValueInfoProto) -> onnx.TypeProto.Tensor:
    """The type of a tensor, or of what an optional holds: a net is always given its inputs."""
    given = proto.type.optional_type.elem_type if proto.type.HasField("optional_type") else proto.type
    if not given.HasField("tensor_type"):
        kind = (proto.type.WhichOneof("value") or "value without a type").removesuffix("_type")
        raise Unsupported(f"input {proto.name!r} is a {kind}, not a tensor")
    return given.tensor_type


def _dtype(proto: onnx.ValueInfoProto) -> ir.DataType:
    kind = _tensor(proto).elem_type
    if kind == onnx.TensorProto.UNDEFINED or kind not in onnx.TensorProto.DataType.values():
        raise UnreadableFile(f"input {proto.name!r} has no element type that is known ({kind})")
    if kind in _NO_NUMBERS:
        raise Unsupported(f"input {proto.name!r} holds {_NO_NUMBERS[kind]}, not real numbers")
    return ir.DataType(kind)


def dims_of(proto: onnx.ValueInfoProto) -> list[int | str] | None:
    """A tensor's sizes as the file declares them, free ones by name; None where it gives no rank."""
    tensor = _tensor(proto)
    if not tensor.HasField("shape"):
        return None
    return [
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or f"D{i}"
        for i, d in enumerate(tensor.shape.dim)
    ]


def _complaint(proto: onnx.ValueInfoProto) -> str:
    dims = dims_of(proto)
    if dims is None:
        return f"input {proto.name!r} has no shape"
    names = [f"{i} ({d})" for i, d in enumerate(dims) if isinstance(d, str) and i > 0]
    return f"input {proto.name!r} has free dimensions {', '.join(names)} in [{', '.join(map(str, dims))}]"


def _matched(proto: onnx.ValueInfoProto, shape: Shape) -> dict[str, int]:
    """What a given shape says about the file's symbolic dimensions."""
    dims = dims_of(proto)
    if any(d < 0 for d in shape):
        raise UsageError(f"input {proto.name!r}: no negative sizes in {list(shape)}")
    if dims is None:
        return {}
    if len(dims) != len(shape) or any(isinstance(d, int) and d != s for d, s in zip(dims, shape, strict=True)):
        raise UsageError(f"input {proto.name!r} has shape [{', '.join(map(str, dims))}], not {list(shape)}")
    return {d: s for d, s in zip(dims, shape, strict=True) if isinstance(d, str) and not d.startswith("D")}
