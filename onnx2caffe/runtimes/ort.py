"""onnxruntime: the reference, always the user's own file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onnx2caffe.errors import NoReference
from onnx2caffe.runtimes.base import Array, Feeds

if TYPE_CHECKING:
    import onnx
    import onnxruntime

__all__ = ["DTYPES", "Reference", "session", "version"]

DTYPES = {
    "tensor(bool)": "bool",
    "tensor(double)": "float64",
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(int16)": "int16",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(int8)": "int8",
    "tensor(uint16)": "uint16",
    "tensor(uint32)": "uint32",
    "tensor(uint64)": "uint64",
    "tensor(uint8)": "uint8",
}
"""onnxruntime's type texts that numpy has, by numpy name."""

_DTYPE_ATTRIBUTES = {"to", "dtype", "output_datatype"}
_EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"


def version() -> str:
    """E.g. "onnxruntime 1.32.0"."""
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}"


def session(
    model: bytes | str | os.PathLike[str],
    optimise: bool = False,
    *,
    threads: int = 0,
    folder: Path | None = None,
) -> onnxruntime.InferenceSession:
    """A CPU session of a model's bytes or file.

    `threads`: of one operator, 0 = onnxruntime's choice. `folder`: where external data of a model given as bytes lies.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its errors come as exceptions
    options.intra_op_num_threads = threads
    options.enable_cpu_mem_arena = False  # it never gives back what one big run took; a third of a proof's memory
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    if folder is not None:
        options.add_session_config_entry(_EXTERNAL_FOLDER, str(folder))
    source = model if isinstance(model, bytes) else os.fspath(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


class Reference:
    """The user's model as it is, with tensors of its top-level graph, inner ones or inputs, as further outputs.

    `wanted` names those tensors; names the graph does not have are left out. With `widen`, float16 and
    bfloat16 are read as float32: what a right conversion of a half model computes. `rewrite` changes the model before
    it is run. `threads` as for `session`.

    Sessions (graph optimisations off and on) are made when first used, and kept.
    """

    def __init__(
        self,
        source: Path | bytes,
        wanted: Sequence[str] = (),
        *,
        widen: bool = False,
        rewrite: Callable[[onnx.ModelProto], None] = lambda _: None,
        threads: int = 0,
    ) -> None:
        self._source = source
        self._wanted = tuple(wanted)
        self._widen = widen
        self._rewrite = rewrite
        self._threads = threads
        self._sessions: dict[bool, onnxruntime.InferenceSession] = {}

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names `run` can give: the model's outputs and the wanted tensors, as far as they are arrays."""
        return tuple(o.name for o in self._session(False).get_outputs() if o.type in DTYPES)

    def run(self, feeds: Feeds, wanted: Sequence[str], optimise: bool = False) -> dict[str, Array]:
        """The wanted tensors (names out of `tensors`) on one set of feeds (input name -> array, cast to its dtype).

        Raises:
            NoReference: onnxruntime cannot load or run the model; with its own words.

        """
        runner = self._session(optimise)
        dtypes = {i.name: DTYPES[i.type] for i in runner.get_inputs() if i.type in DTYPES}
        values = {name: np.asarray(value, dtypes[name]) for name, value in feeds.items() if name in dtypes}
        if not wanted:  # which onnxruntime would take for all outputs
            return {}
        try:
            results = runner.run(list(wanted), values)
        except Exception as problem:  # onnxruntime's exceptions have no base of their own
            raise self._refused(problem) from problem
        return dict(zip(wanted, results, strict=True))

    def _session(self, optimise: bool) -> onnxruntime.InferenceSession:
        if optimise not in self._sessions:
            folder = self._source.absolute().parent if isinstance(self._source, Path) else None
            try:
                self._sessions[optimise] = session(self._model(), optimise, threads=self._threads, folder=folder)
            except Exception as problem:  # onnxruntime's exceptions have no base of their own
                raise self._refused(problem) from problem
        return self._sessions[optimise]

    def _model(self) -> bytes:
        """The bytes to run. External data stays where it is, except for a widened model, whose values change."""
        import onnx

        if isinstance(self._source, bytes):
            proto = onnx.load_from_string(self._source)
        else:
            proto = onnx.load(self._source, "protobuf", load_external_data=self._widen)
        if self._widen:
            _widen(proto)
        _name_once(proto.graph)
        self._rewrite(proto)
        _add_outputs(proto.graph, self._wanted)
        serialized: bytes = proto.SerializeToString()
        return serialized

    def _refused(self, problem: Exception) -> NoReference:
        name = "the model" if isinstance(self._source, bytes) else self._source
        return NoReference(f"onnxruntime cannot run {name}, so nothing can be proved: {problem}")


def _add_outputs(graph: onnx.GraphProto, names: Sequence[str]) -> None:
    """Make tensors of the graph its outputs; the types of inner ones are for onnxruntime to infer."""
    given = {value.name for value in (*graph.input, *graph.initializer)}
    produced = {name for node in graph.node for name in node.output if name} | given
    have = {output.name for output in graph.output}
    for name in dict.fromkeys(names):
        if name in produced - have:
            graph.output.add().name = name


def _name_once(whole: onnx.GraphProto) -> None:
    """Two nodes of one name are legal in ONNX and refused by onnxruntime; the first keeps it for messages."""
    taken: set[str] = set()
    for graph in _graphs(whole):
        for node in graph.node:
            if node.name in taken:
                node.ClearField("name")
            taken.add(node.name)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and all graphs inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == attribute.GRAPH:
                yield from _graphs(attribute.g)


def _widen(proto: onnx.ModelProto) -> None:
    """Read float16 and bfloat16 as float32: constants, casts and declared types."""
    for graph in _graphs(proto.graph):
        for tensor in graph.initializer:
            _widen_tensor(tensor)
        for value in (*graph.input, *graph.output, *graph.value_info):
            tensor_type = value.type.tensor_type
            if tensor_type.elem_type:  # setting 0 would declare an undefined type where none was declared
                tensor_type.elem_type = _wider(tensor_type.elem_type)
        _widen_attributes(graph.node)
    for function in proto.functions:
        _widen_attributes(function.node)


def _widen_attributes(nodes: Sequence[onnx.NodeProto]) -> None:
    for attribute in (a for node in nodes for a in node.attribute):
        if attribute.name in _DTYPE_ATTRIBUTES:
            attribute.i = _wider(attribute.i)
        elif attribute.type == attribute.TENSOR:
            _widen_tensor(attribute.t)


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    from onnx import numpy_helper

    if _wider(tensor.data_type) != tensor.data_type:
        values = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _wider(data_type: int) -> int:
    from onnx import TensorProto

    return TensorProto.FLOAT if data_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16) else data_type
