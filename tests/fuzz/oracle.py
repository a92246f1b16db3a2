"""What a random model must do: be equal in every runtime on a target, or be refused by name."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx2caffe.errors import NoReference, NotConvertible, Unsupported
from onnx2caffe.runtimes import ort
from onnx2caffe.runtimes.base import Runtime, Tap
from onnx2caffe.targets.base import Target
from onnx2caffe.verify.measure import Sample, Verdict, distance, judge, shaken
from onnx2caffe.verify.rounding import round_otherwise
from tests.ops.harness import Written, convert

__all__ = ["Feeds", "Samples", "check_refusal", "examine", "feeds_of", "sample"]

Samples = dict[str, Sample]
_HALF, _REACH = "__half", "__reach"
_REACHES = (np.float32(0.5 - 2.0**-22), np.float32(0.5 + 2.0**-22))
Feeds = dict[str, np.ndarray]


def feeds_of(model: onnx.ModelProto) -> Feeds:
    """Seeded values for every input."""
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: (1.5 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}


def sample(model: onnx.ModelProto, inner_too: bool = False) -> Samples:
    """The outputs (or all tensors) in onnxruntime with their noise; none if it cannot run the model, or not finitely.

    The noise is that of inputs off by 1e-6 and of every float tensor rounded otherwise.
    """
    feeds, inner = feeds_of(model), sorted(_floats(model))
    reference = ort.Reference(model.SerializeToString(), inner, widen=True, threads=1)
    names = sorted({o.name for o in model.graph.output} | {*(inner if inner_too else ())})
    try:
        values = reference.run(feeds, inner)
        if not all(np.isfinite(v).all() for v in values.values()):
            return {}
        rounded = [
            ort.Reference(_rounded_otherwise(model, mirrored).SerializeToString(), inner, widen=True, threads=1)
            for mirrored in (False, True)
        ]
        if not all(np.isfinite(v).all() for v in rounded[0].run(feeds | {_REACH: _REACHES[0]}, inner).values()):
            return {}
        plain, optimised = reference.run(feeds, names), reference.run(feeds, names, optimise=True)
        near = shaken(feeds, 1e-6)
        moved = [run.run(near | {_REACH: reach}, names) for run, reach in zip(rounded, _REACHES, strict=True)]
        rough = reference.run(shaken(feeds, 1e-4), names)
    except NoReference:
        return {}
    return {n: Sample(plain[n], optimised[n], _farthest(plain[n], [run[n] for run in moved]), rough[n]) for n in names}


def _farthest(reference: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    return max(others, key=lambda other: distance(reference, other).relative)


def _rounded_otherwise(model: onnx.ModelProto, mirrored: bool) -> onnx.ModelProto:
    """The model with every element of computed float tensors a few units in the last place off, Sigmoid by Tanh.

    Without it x - f(x) would seem free of noise where f(x) = x: only an exact zero stays one when x is shaken, and the
    equal scores of a saturated Sigmoid would seem a tie that ArgMax may rely on. Caffe's Sigmoid is ½ tanh(½ x) + ½, so
    close to 0 it has the absolute precision of ½, and where one is 0 or 1 the other may not be, which Ceil shows.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    round_otherwise(result, mirrored)
    nodes = [made for node in result.graph.node for made in (_by_tanh(node) if node.op_type == "Sigmoid" else [node])]
    result.graph.ClearField("node")
    result.graph.node.extend(nodes)
    result.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), _HALF))
    result.graph.input.append(helper.make_tensor_value_info(_REACH, onnx.TensorProto.FLOAT, []))
    return result


def _by_tanh(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """½ tanh(½ x) + ½; an input of the model says how much ½ is, so that the ends 0 and 1 are missed or passed."""
    (x,), (y,) = node.input, node.output
    return [
        helper.make_node("Mul", [x, _HALF], [f"{y}__inner"]),
        helper.make_node("Tanh", [f"{y}__inner"], [f"{y}__tanh"]),
        helper.make_node("Mul", [f"{y}__tanh", _REACH], [f"{y}__outer"]),
        helper.make_node("Add", [f"{y}__outer", _HALF], [y]),
    ]


def _floats(model: onnx.ModelProto) -> set[str]:
    typed = onnx.shape_inference.infer_shapes(model).graph
    values = (*typed.value_info, *typed.output)
    return {v.name for v in values if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}


def examine(model: onnx.ModelProto, samples: Samples, target: Target, runtimes: Sequence[Runtime]) -> str:
    """Convert the model and hold it against its samples: "" when equal, else the reason why the target refuses it.

    Raises:
        AssertionError: it differs, or the refusal names no node or no reason.
        RuntimeCrash: a runtime does not run what was written.

    """
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        try:
            written = convert(model, target, Path(folder))
        except Unsupported as refusal:
            check_refusal(refusal, model)
            return str(refusal)
        for runtime in runtimes:
            _compare(written, samples, feeds_of(model), runtime)
    return ""


def check_refusal(refusal: Unsupported, model: onnx.ModelProto) -> set[str]:
    """The nodes (or tensors) that a refusal names: the model's own, each with a reason."""
    assert isinstance(refusal, NotConvertible), refusal
    known = {node.name for node in model.graph.node} | {i.name for i in model.graph.input}
    known |= {tensor for node in model.graph.node for tensor in node.output}
    named: set[str] = set()
    for blocked in refusal.blocked:
        nodes = set(blocked.node.split(", "))
        assert nodes <= known, f"names no node of the model: {blocked}"
        assert blocked.reasons, f"no reason: {blocked}"
        assert all(blocked.reasons), f"an empty reason: {blocked}"
        named |= nodes
    return named


def _compare(written: Written, samples: Samples, feeds: Feeds, runtime: Runtime) -> None:
    blobs = {written.inputs[name]: value for name, value in feeds.items() if name in written.inputs}
    taps = [Tap(blob) for blob in dict.fromkeys(written.outputs.values())]
    (results,) = runtime.run(written.files, [blobs], taps)
    for name, wanted in samples.items():
        found = results[Tap(written.outputs[name])]
        assert found.size == wanted.plain.size, f"{runtime.name}: {name} {found.shape} for {wanted.plain.shape}"
        judgement = judge(wanted, found.reshape(wanted.plain.shape))
        assert judgement.verdict != Verdict.DIFFERS, f"{runtime.name}: {name} {judgement}; {written.types}"
