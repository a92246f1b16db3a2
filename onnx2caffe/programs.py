"""A model as a program of a TVM dialect: read, emitted, made in a worker and held against the user's own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import Shape
from onnx2caffe.errors import NumbersDiffer
from onnx2caffe.frontend import Loaded, load
from onnx2caffe.passes import pipeline
from onnx2caffe.passes.base import Pass
from onnx2caffe.runtimes.base import Feeds
from onnx2caffe.runtimes.tvm import CallFault, Tvm
from onnx2caffe.stages import FAULT, blamed
from onnx2caffe.tvm import stops
from onnx2caffe.tvm.emit import Emitted, emit
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.scores import Progress, Proof
from onnx2caffe.verify.tvm import Port, Watched, prove_program

__all__ = ["Translation", "passes", "read", "translated"]


def passes() -> list[Pass]:
    """What is done to a model on its way to TVM."""
    return pipeline.pipeline("tvm")


def read(path: Path, input_shapes: Mapping[str, Shape], outputs: Sequence[str] = ()) -> Loaded:
    """A model that the source method does not stop at; errors as of `frontend.load` and `stops.check`."""
    loaded = load(path, input_shapes=input_shapes, outputs=outputs)
    stops.check(loaded)
    return loaded


def translated(
    loaded: Loaded,
    dialect: str,
    observe: Callable[[str, ir.Model], None] = lambda _, __: None,
    *,
    plain_c: bool = False,
) -> Translation:
    """Rewrite a model, which `observe` sees after each pass and at the end, and emit it; `plain_c` as for `emit`.

    Raises:
        NotConvertible: names what the dialect lacks.

    """
    with blamed(loaded):
        pipeline.run(loaded.model, passes(), observe)
        observe("final", loaded.model)
        return Translation(loaded, emit(loaded.model, dialect, plain_c=plain_c))


@dataclass(frozen=True)
class Translation:
    """A model in its canonical form, and its program."""

    loaded: Loaded
    emitted: Emitted

    @cached_property
    def tensors(self) -> dict[str, Watched]:
        """The user's tensors in the program; outputs also where they are constants or data decides their sizes."""
        held = [(t.name, t.shape, value) for value in self.emitted.values for t in canon.tensors(value)]
        ends = zip(self.loaded.outputs, self.loaded.model.graph.outputs, strict=False)
        held += [(end.name, end.shape, value) for end, value in ends if -1 in end.shape]
        computed = {
            name: Watched(inner.reference, self.emitted.maker(value), shape)
            for name, shape, value in held
            if (inner := self.emitted.values[value]).array is None
        }
        given = zip(self.loaded.outputs, self.emitted.program.outputs, strict=True)
        constants = {end.name: Watched(at, "constant", end.shape) for end, at in given if end.name not in computed}
        return computed | constants

    @property
    def outputs(self) -> list[str]:
        """The names of the user's outputs."""
        return [output.name for output in self.loaded.outputs]

    def user_model(self, path: Path) -> UserModel:
        """The user's file as the yardstick of all tensors."""
        return UserModel(path, [*self.tensors], self.outputs, self.loaded.half)

    def make(self, tvm: Tvm) -> None:
        """Make the module in TVM, which checks every type.

        Raises:
            NumbersDiffer: TVM refuses a call, or types it otherwise; its node is named.

        """
        program = self.emitted.program
        try:
            tvm.load(program.to_json(), program.arrays)
        except CallFault as fault:
            call = program.calls[fault.number]
            raise NumbersDiffer(f"node {call.node!r}: {call.fn}: {fault}", FAULT) from fault

    def proved(self, tvm: Tvm, model: UserModel, runs: Sequence[Feeds], progress: Progress) -> Proof:
        """The made module's tensors, judged; errors as of `prove_program`."""
        ports = [
            Port(value.name or "", given.type.dtype, given.type.shape)
            for value, given in zip(self.loaded.model.graph.inputs, self.emitted.program.inputs, strict=True)
        ]
        return prove_program(tvm, ports, self.tensors, model, runs=runs, outputs=self.outputs, progress=progress)
