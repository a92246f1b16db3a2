"""One row = one ONNX node (or small model): onnxruntime against builtin and pycaffe, on every target."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx2caffe import frontend
from onnx2caffe.caffe.finish import finish
from onnx2caffe.caffe.lower.lower import lower
from onnx2caffe.caffe.write import write_caffemodel, write_prototxt
from onnx2caffe.passes import pipeline
from onnx2caffe.runtimes import ort
from onnx2caffe.runtimes.base import NetFiles, Runtime, Tap
from onnx2caffe.targets.base import Target

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class In:
    """A computed input: normal(0, 1.5), or uniform in [low, high] (integers: high included)."""

    shape: Shape
    dtype: str = "float32"
    low: float | None = None
    high: float | None = None

    def sample(self, rng: np.random.Generator) -> Array:
        kind = np.dtype(self.dtype)
        if kind.kind == "b":
            return np.asarray(rng.random(self.shape) < 0.5)
        if kind.kind in "iu":
            low, high = int(self.low or 0), int(self.high or 9)
            return np.asarray(rng.integers(low, high + 1, self.shape), kind)
        if self.low is not None and self.high is not None:
            return np.asarray(rng.uniform(self.low, self.high, self.shape), kind)
        return np.asarray(1.5 * rng.standard_normal(self.shape), kind)


@dataclass(frozen=True)
class Case:
    """A node under test.

    `inputs`: a shape or `In` = computed, an array = initializer, None = absent. `refused`: target name -> text that the
    refusal must hold (instead of equal numbers). `tolerance`: largest e of design §6; a row that needs more says why in
    `because`. `model`: a whole model instead of one node. `outputs`: how many, or the names ("" = absent). `same_as`:
    what the node means, for ops that onnxruntime has no kernel for.
    """

    op: str
    opset: int
    inputs: tuple[Shape | In | Array | None, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int | Sequence[str] = 1
    id: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1e-5
    because: str = ""
    model: onnx.ModelProto | None = None
    targets: tuple[str, ...] = ("caffe", "bvlc")
    domain: str = ""
    same_as: onnx.ModelProto | None = None

    def name(self) -> str:
        shapes = "_".join("x".join(map(str, _shape(i))) if i is not None else "none" for i in self.inputs)
        attributes = "_".join(f"{k}{v}" for k, v in self.attributes.items())
        return self.id or f"{self.op}{self.opset}-{shapes}-{attributes}".replace(" ", "")


def all_cases() -> list[Case]:
    """The rows of every cases_*.py."""
    modules = sorted(path.stem for path in Path(__file__).parent.glob("cases_*.py"))
    return [case for name in modules for case in importlib.import_module(f"tests.ops.{name}").CASES]


def _shape(source: Shape | In | Array) -> Shape:
    return source if isinstance(source, tuple) else source.shape


def build(case: Case) -> onnx.ModelProto:
    """The case as an ONNX model."""
    if case.model is not None:
        return case.model
    inputs, initializers, names = [], [], []
    for number, source in enumerate(case.inputs):
        name = "" if source is None else f"x{number}"
        names.append(name)
        if isinstance(source, np.ndarray):
            initializers.append(numpy_helper.from_array(source, name))
        elif source is not None:
            computed = source if isinstance(source, In) else In(source)
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(computed.dtype))
            inputs.append(helper.make_tensor_value_info(name, kind, computed.shape))
    outputs = [f"y{i}" for i in range(case.outputs)] if isinstance(case.outputs, int) else list(case.outputs)
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(case.op, names, outputs, name="node", domain=case.domain, **case.attributes)
    graph = helper.make_graph([node], "case", inputs, [onnx.ValueInfoProto(name=o) for o in outputs if o], initializers)
    opsets = [helper.make_opsetid("", case.opset), *([helper.make_opsetid(case.domain, 1)] if case.domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def sample(case: Case, model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """Feeds for the model's inputs."""
    rng = np.random.default_rng(seed)
    if case.model is None:
        wanted = {
            f"x{i}": s if isinstance(s, In) else In(s)
            for i, s in enumerate(case.inputs)
            if s is not None and not isinstance(s, np.ndarray)
        }
        return {name: source.sample(rng) for name, source in wanted.items()}
    constants = {i.name for i in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name not in constants:
            kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            dims = tuple(d.dim_value or 1 for d in value.type.tensor_type.shape.dim)
            feeds[value.name] = In(dims, str(kind)).sample(rng)
    return feeds


@dataclass(frozen=True)
class Written:
    """A converted model on disk, with the blob of every input and output."""

    files: NetFiles
    inputs: dict[str, str]
    outputs: dict[str, str]
    types: list[str]


def with_batch_of_one(case: Case) -> Case:
    """The row with 1 for every leading 2 of its computed inputs; the row itself where that is no model."""
    if case.model is not None or case.same_as is not None or case.attributes.get("batch_dims"):
        return case
    inputs = tuple(_single(source) for source in case.inputs)
    if all(new is old for new, old in zip(inputs, case.inputs, strict=True)):
        return case
    single = replace(case, inputs=inputs, id=f"{case.name()}-batch1")
    model = build(single)
    try:
        results = reference(model, sample(single, model, 0))
        known = {output.name: output.shape for output in frontend.from_proto(model).outputs}
    except Exception:  # onnxruntime's own kinds, numpy's, ours
        return case
    return single if all(np.shape(result) == known[name] for name, result in results.items()) else case


def _single(source: Shape | In | Array | None) -> Shape | In | Array | None:
    if isinstance(source, In):
        shape = _single(source.shape)
        return source if shape is source.shape else replace(source, shape=shape)
    if isinstance(source, tuple) and len(source) > 1 and source[0] == 2:
        return (1, *source[1:])
    return source


def convert(
    model: onnx.ModelProto,
    target: Target,
    folder: Path,
    shapes: Mapping[str, Shape] | None = None,
    chosen: Mapping[str, str] | None = None,
) -> Written:
    """The product's own path, without proof and driver; `shapes` are those of the feeds, for free dimensions."""
    loaded = frontend.from_proto(model, input_shapes=free(model, shapes or {}))
    pipeline.run(loaded.model, pipeline.pipeline(target.exit))
    lowered = lower(loaded.model, target, chosen)
    graph = loaded.model.graph
    net = finish(lowered.net, target)
    assert not target.faults(net)
    fresh = Path(tempfile.mkdtemp(dir=folder))  # runtimes keep the last net by its path
    files = NetFiles(fresh / "net.prototxt", fresh / "net.caffemodel")
    write_prototxt(net, files.prototxt, [])
    write_caffemodel(net, files.caffemodel)
    outputs = zip(loaded.outputs, graph.outputs, strict=True)
    return Written(
        files,
        {str(v.name): lowered.blobs[v].name for v in graph.inputs},
        {o.name: lowered.blobs[v].name for o, v in outputs},
        [p.layer.type for p in net.layers],
    )


def free(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shapes of those inputs whose file leaves a dimension free."""
    free = {i.name for i in model.graph.input if any(d.dim_value <= 0 for d in i.type.tensor_type.shape.dim)}
    return {name: shape for name, shape in shapes.items() if name in free}


def reference(model: onnx.ModelProto, feeds: dict[str, Array]) -> dict[str, Array]:
    """The model in onnxruntime, optimisations off; float16 read as float32, as a right conversion computes."""
    runner = ort.Reference(model.SerializeToString(), widen=True)
    return runner.run(feeds, [o.name for o in model.graph.output])


INFINITE = 1e38


def difference(r: Array, c: Array) -> float:
    """e of design §6, where the reference is finite; onnxruntime masks with the least float32 instead of −inf."""
    r, c = np.asarray(r, np.float64), np.asarray(c, np.float64)
    assert r.size == c.size, f"{c.shape} for {r.shape}"
    c = c.reshape(r.shape)
    known = np.abs(r) < INFINITE
    assert np.isfinite(c[known]).all(), "not finite where the reference is"
    if not known.any():
        return 0.0
    scale = max(float(np.abs(r[known]).max()), 1e-6)
    return float(np.abs(c[known] - r[known]).max()) / scale


def check(
    case: Case,
    target: Target,
    folder: Path,
    runtimes: Sequence[Runtime],
    seeds: int = 2,
    chosen: Mapping[str, str] | None = None,
) -> Written:
    """Convert a case and hold every output against onnxruntime in every runtime."""
    model = build(case)
    written = convert(model, target, folder, chosen=chosen)
    feeds = [sample(case, model, seed) for seed in range(seeds)]
    expected = [reference(case.same_as or model, f) for f in feeds]
    blobs = [{written.inputs[k]: v.astype(np.float32) for k, v in f.items() if k in written.inputs} for f in feeds]
    taps = [Tap(b) for b in dict.fromkeys(written.outputs.values())]
    for runtime in runtimes:
        for values, results in zip(expected, runtime.run(written.files, blobs, taps), strict=True):
            for name, r in values.items():
                e = difference(r, results[Tap(written.outputs[name])])
                assert e <= case.tolerance, f"{runtime.name}: {name} e={e:.2e}; {written.types}"
    return written


def constant(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """A seeded float32 constant."""
    return np.asarray(scale * np.random.default_rng(seed).standard_normal(shape), np.float32)


def everywhere(text: str, *dialects: str) -> dict[str, str]:
    """`refused` of a row that says the same on every target, and in these dialects."""
    return dict.fromkeys(("caffe", "bvlc", *dialects), text)


def ints(*values: int) -> Array:
    """An int64 vector constant."""
    return np.array(values, np.int64)


FLOAT = TensorProto.FLOAT
