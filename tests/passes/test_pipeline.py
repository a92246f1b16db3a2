"""The whole pipeline: on random canonical graphs, on the pattern models, and its contract."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnx2caffe import canon, frontend
from onnx2caffe.errors import Onnx2CaffeError
from onnx2caffe.passes.pipeline import pipeline, run
from tests.passes.check import before_after, build, check_invariants, compare, i64, infer_all, noise
from tests.passes.test_affine import bn, conv

PATTERNS = Path(__file__).parents[3] / "shared" / "patterns"
UNARY = ["Relu", "Sigmoid", "Tanh", "HardSwish", "Abs", "Neg"]


class RandomGraph:
    """Rows for `build`, drawn op by op from what the passes rewrite."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.rows = []
        self.shapes = {"x": (draw(st.sampled_from([1, 2])), 4, 4, 6)}
        for _ in range(draw(st.integers(3, 12))):
            last = list(self.shapes)[-3:]
            getattr(self, self.one(*MAKERS))(self.one(*last, *[last[-1]] * 5))

    def one(self, *options):
        return self.draw(st.sampled_from(options))

    def add(self, op, inputs, shape, attributes=None):
        name = f"v{len(self.rows)}"
        self.rows.append((op, inputs, name, attributes or {}))
        self.shapes[name] = tuple(shape)
        return name

    def transpose(self, x):
        shape = self.shapes[x]
        perm = self.draw(st.permutations(range(len(shape))))
        self.add("Transpose", [x], [shape[i] for i in perm], {"perm": list(perm)})

    def nhwc(self, x):
        shape = self.shapes[x]
        if len(shape) == 4:
            perm = self.one([0, 2, 3, 1], [0, 3, 1, 2])
            self.add("Transpose", [x], [shape[i] for i in perm], {"perm": perm})

    def reshape(self, x):
        shape = list(self.shapes[x])
        at = self.draw(st.integers(0, len(shape) - 1))
        if len(shape) > 2 and self.one(True, False):
            at = min(at, len(shape) - 2)
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        elif shape[at] % 2 == 0 and len(shape) < 6:
            shape[at : at + 1] = self.one([2, shape[at] // 2], [shape[at] // 2, 2], [shape[at], 1])
        else:
            return
        self.add("Reshape", [x, i64(*shape)], shape, {"allowzero": 0})

    def unary(self, x):
        self.add(self.one(*UNARY), [x], self.shapes[x])

    def arithmetic(self, x):
        shape = self.shapes[x]
        keep = [self.one(True, False) for _ in shape]
        constant = noise(*(n if k else 1 for n, k in zip(shape, keep, strict=True)), seed=len(self.rows)) + 2
        constant = self.one(constant, np.array(1.5, np.float32))
        op = self.one("Add", "Mul", "Sub", "Div")
        inputs = [x, constant] if op == "Div" or self.one(True, False) else [constant, x]
        self.add(op, inputs, shape)

    def join(self, x):
        same = [name for name, shape in self.shapes.items() if shape == self.shapes[x]]
        self.add(self.one("Add", "Mul", "Max"), [x, self.one(*same)], self.shapes[x])

    def concat(self, x):
        shape = list(self.shapes[x])
        axis = self.draw(st.integers(0, len(shape) - 1))
        shape[axis] *= 2
        if np.prod(shape) < 2000:
            self.add("Concat", [x, x], shape, {"axis": axis})

    def cut(self, x):
        shape = list(self.shapes[x])
        axis = self.draw(st.integers(0, len(shape) - 1))
        start, step = self.one(0, 1), self.one(1, 2)
        if shape[axis] > 2:
            bounds = [i64(start), i64(shape[axis]), i64(axis), i64(step)]
            shape[axis] = len(range(start, shape[axis], step))
            self.add("Slice", [x, *bounds], shape)

    def gather(self, x):
        shape = list(self.shapes[x])
        axis = self.draw(st.integers(0, len(shape) - 1))
        indices = self.draw(st.permutations(range(shape[axis])))
        self.add("Gather", [x, i64(*indices)], shape, {"axis": axis})

    def reduce(self, x):
        shape = list(self.shapes[x])
        axis = self.draw(st.integers(0, len(shape) - 1))
        keep = self.one(1, 0) if len(shape) > 2 else 1
        shape[axis : axis + 1] = [1] * keep
        attributes = {"keepdims": keep, "noop_with_empty_axes": 0}
        self.add(self.one("ReduceMean", "ReduceMax", "ReduceSum"), [x, i64(axis)], shape, attributes)

    def softmax(self, x):
        axis = self.draw(st.integers(0, len(self.shapes[x]) - 1))
        self.add("Softmax", [x], self.shapes[x], {"axis": axis})

    def pad(self, x):
        shape = self.shapes[x]
        if len(shape) == 4:
            total = (*shape[:2], shape[2] + 1, shape[3] + 2)
            self.add("Pad", [x, i64(0, 0, 1, 0, 0, 0, 0, 2), np.zeros((), np.float32)], total, {"mode": "constant"})

    def convolution(self, x):
        shape = self.shapes[x]
        if len(shape) != 4 or shape[1] > 64:
            return
        group = self.one(*(g for g in (1, 2, shape[1]) if shape[1] % g == 0))
        kernel, pads = self.one((1, 0), (3, 1))
        weight = noise(shape[1], shape[1] // group, kernel, kernel, seed=len(self.rows)) / 2
        op, inputs, _, attributes = conv(x, weight, "", pads=pads, group=group)
        self.add(op, inputs, shape, attributes)

    def norm(self, x):
        if len(self.shapes[x]) > 1:
            op, inputs, _, attributes = bn(x, "", self.shapes[x][1])
            self.add(op, inputs, self.shapes[x], attributes)

    def dense(self, x):
        *rows, width = self.shapes[x]
        if width <= 64:
            self.add("MatMul", [x, noise(width, 4, seed=len(self.rows))], [*rows, 4])


MAKERS = [name for name in vars(RandomGraph) if not name.startswith("_") and name not in ("one", "add")]
# The folds need runs of these.
MAKERS += ["arithmetic", "convolution", "nhwc", "norm", "unary"] * 2


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_random_graphs(data):
    graph = RandomGraph(data.draw)
    if not graph.rows:
        return
    read = {i for _, inputs, _, _ in graph.rows for i in inputs if isinstance(i, str)}
    outputs = [name for _, _, name, _ in graph.rows if name not in read or data.draw(st.integers(0, 9)) == 0]
    model = build({"x": graph.shapes["x"]}, graph.rows, outputs)
    before_after(model, pipeline("caffe"), rtol=3e-5)


@pytest.mark.skipif(not PATTERNS.is_dir(), reason="the pattern models are not beside the repository")
def test_patterns():
    for name in json.loads((PATTERNS / "index.json").read_text()):
        try:
            loaded = frontend.load(PATTERNS / f"{name}.onnx")
        except Onnx2CaffeError:
            continue
        model = loaded.model
        if any(canon.is_opaque(node) for node in model.graph):
            continue
        generator = np.random.default_rng(0)
        feeds = {v.name: generator.standard_normal(canon.shape(v)).astype(v.dtype.numpy()) for v in model.graph.inputs}
        values = infer_all(model, feeds)
        produced = [*model.graph.inputs, *(v for node in model.graph for v in node.outputs if v.name)]
        before = {t.name: values[v.name].reshape(t.shape) for v in produced for t in canon.tensors(v)}
        run(model, pipeline("caffe"))
        check_invariants(model)
        compare(model, before, feeds, 1e-5)


def test_observer_hears_every_pass_that_changed_something():
    model = build({"x": [1, 4, 6, 6]}, [conv("x", noise(4, 4, 3, 3), "a"), bn("a", "b", 4), ("Relu", "b", "y")], ["y"])
    heard = []
    run(model, pipeline("caffe"), lambda name, now: heard.append((name, now.graph.num_nodes())))
    assert heard == [("FoldAffineBehind", 2)]


def test_keep_bn():
    model = build({"x": [1, 4, 6, 6]}, [conv("x", noise(4, 4, 3, 3), "a"), bn("a", "y", 4)], ["y"])
    before_after(model, pipeline("caffe", keep_bn=True), {"Conv": 1, "BatchNormalization": 1})


def test_unknown_exit():
    with pytest.raises(ValueError, match="no exit 'tflite'"):
        pipeline("tflite")
