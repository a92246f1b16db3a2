"""Which pass or layer did it: the way from the user's file to the written one, walked again and run at every step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.caffe.read import read_net
from onnx2caffe.passes import pipeline
from onnx2caffe.passes.base import Pass
from onnx2caffe.runtimes import ort
from onnx2caffe.runtimes.base import Array, Feeds, NetFiles, Runtime, Tap
from onnx2caffe.verify.measure import LIMIT, Verdict, distance, judge
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.scores import Row

__all__ = ["culprit", "first_disagreement"]


@dataclass(frozen=True)
class _Culprit:
    """The first step after which a tensor of the user's differs: `step` says which, `tensor` which one."""

    step: str
    tensor: str


def culprit(load: Callable[[], ir.Model], passes: Sequence[Pass], model: UserModel, feeds: Feeds, broken: Row) -> str:
    """A sentence on the step that did it: of load, passes and lowering, all done again.

    Args:
        load: gives the canonical model as the frontend makes it, anew.
        passes: as the conversion ran them.
        model: the user's file.
        feeds: the run on which `broken` differed.
        broken: the first row of the proof that differed.

    """
    try:
        found = _find(load, passes, model, feeds, broken)
    except Exception as problem:  # whatever stops the replay, the difference is what must be told
        return f"the replay that looks for the step that did it stopped: {problem}"
    return f"replayed, the first step that breaks a tensor is: {found.step} ({found.tensor!r})"


def _find(
    load: Callable[[], ir.Model], passes: Sequence[Pass], model: UserModel, feeds: Feeds, broken: Row
) -> _Culprit:
    """Compare after the load and after each pass; what survives all passes is the lowering's."""
    found: list[_Culprit] = []

    def observe(step: str, now: ir.Model) -> None:
        if not found and (tensor := _first_different(now, model, feeds)):
            found.append(_Culprit(step, tensor))

    canonical = load()
    observe("reading the file (frontend)", canonical)
    if not found:
        pipeline.run(canonical, passes, lambda name, now: observe(f"pass {name}", now))
    return found[0] if found else _Culprit(_lowering(canonical, broken), broken.tensor)


def _lowering(canonical: ir.Model, broken: Row) -> str:
    for node in canonical.graph:
        if any(broken.tensor in _held(value) for value in node.outputs):
            return f"lowering of {node.op_type} {canon.label(node)!r}"
    return "the lowering"


def _held(value: ir.Value) -> set[str | None]:
    """The names of the user's tensors in a value; one whose size depends on data stands for itself."""
    return {value.name, *(tensor.name for tensor in canon.tensors(value))}


def _first_different(canonical: ir.Model, model: UserModel, feeds: Feeds) -> str | None:
    """The first tensor in the user's order whose values in the canonical model differ."""
    places = {
        tensor.name: (value, tensor.shape)
        for value in _values(canonical)
        for tensor in canon.tensors(value)
        if tensor.name in model.known
    }
    if not places:
        return None
    names = sorted(places, key=lambda name: model.order.get(name, 0))
    samples = model.sample(feeds, names)
    found = _run(canonical, feeds, {value.name or "" for value, _ in places.values()})
    for name in names:
        value, shape = places[name]
        candidate = found[value.name or ""]
        if candidate.size == np.prod(shape, dtype=np.int64):
            candidate = candidate.reshape(shape)
        if judge(samples[name], candidate).verdict is Verdict.DIFFERS:
            return name
    return None


def _values(canonical: ir.Model) -> Iterable[ir.Value]:
    for node in canonical.graph:
        yield from (value for value in node.outputs if value.name)


def _run(canonical: ir.Model, feeds: Feeds, wanted: Iterable[str]) -> Mapping[str, Array]:
    """Values of a canonical model; its weights go through a file, so that their size does not matter."""
    names = sorted(wanted)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        ir.save(canonical, path, external_data="model.data")
        proto = onnx.load(str(path), "protobuf", load_external_data=False)
        del proto.graph.output[:]  # one value may stand for several outputs, which onnxruntime would refuse
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        session = ort.session(proto.SerializeToString(), folder=path.parent)
        inputs = {i.name: ort.DTYPES[i.type] for i in session.get_inputs()}
        values = session.run(names, {name: feeds[name].astype(dtype) for name, dtype in inputs.items()})
    return dict(zip(names, values, strict=True))


def first_disagreement(files: NetFiles, feeds: Feeds, one: Runtime, other: Runtime) -> tuple[str, float] | None:
    """The first layer, in the net's order, after which two runtimes hold different values, and the relative error.

    `feeds`: blob name -> array.
    """
    net = read_net(files.prototxt, None)
    taps = [Tap(top, placed.name) for placed in net for top in placed.tops]
    (left,), (right,) = one.run(files, [feeds], taps), other.run(files, [feeds], taps)
    for tap in taps:
        error = distance(left[tap], right[tap]).relative
        if error > LIMIT:
            return tap.layer, error
    return None
