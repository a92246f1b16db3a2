"""The comparison of the source method: a program, built so that it gives every tensor, against the user's model."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnx2caffe.canon import Shape
from onnx2caffe.runtimes.base import Array, Feeds
from onnx2caffe.runtimes.tvm import Tvm
from onnx2caffe.verify.reference import UserModel
from onnx2caffe.verify.rounds import rounds
from onnx2caffe.verify.scores import Progress, Proof, Scores

__all__ = ["Port", "Watched", "prove_program"]

_ROUND = 128 * 2**20
"""How many values a build may give; more tensors are built and run in further rounds."""


@dataclass(frozen=True)
class Port:
    """An input of the program: the user's tensor it holds, and the type it takes."""

    tensor: str
    dtype: str
    shape: Shape


@dataclass(frozen=True)
class Watched:
    """A value of the program in which a tensor of the user's stands: where, and the operators that compute it.

    A size of -1 depends on data.
    """

    reference: Mapping[str, int]
    maker: str
    shape: Shape


def prove_program(
    tvm: Tvm,
    inputs: Sequence[Port],
    tensors: Mapping[str, Watched],
    model: UserModel,
    *,
    runs: Sequence[Feeds],
    outputs: Collection[str],
    progress: Progress = lambda _: None,
) -> Proof:
    """Build the loaded program for this machine without optimisation, run it, and judge every tensor.

    All in one build, unless the tensors are too many for memory.

    Args:
        tvm: holds the program.
        inputs: of the program, in order.
        tensors: by the user's names.
        model: the user's file in onnxruntime.
        runs: feeds by the user's input names.
        outputs: the names of the user's outputs.
        progress: told what happens, in a few words.

    Raises:
        RuntimeCrash: TVM fails.
        NoReference: onnxruntime cannot run the user's file.

    """
    known = {name: watched for name, watched in tensors.items() if name in model.known}
    scores = Scores(model, runs, outputs, progress)
    where = {name: (watched.maker, str(number)) for number, (name, watched) in enumerate(known.items())}
    for names in rounds({name: watched.shape for name, watched in known.items()}, model.order, _ROUND):
        some = {name: known[name] for name in names}
        places = list(dict.fromkeys(tuple(watched.reference.items()) for watched in some.values()))
        progress(f"building for this machine in {tvm.name}")
        tvm.build_quickly([dict(place) for place in places])
        for run, feeds in enumerate(runs):
            progress(f"running in {tvm.name}")
            values = tvm.run([_fed(port, feeds) for port in inputs])
            by_place = dict(zip(places, values, strict=True))
            found = {name: _shaped(by_place[tuple(w.reference.items())], w.shape) for name, w in some.items()}
            scores.add(run, {tvm.name: found}, {name: where[name] for name in names})
    return scores.proof({tvm.name: tvm.version()})


def _fed(port: Port, feeds: Feeds) -> Array:
    return np.asarray(feeds[port.tensor], port.dtype).reshape(port.shape)


def _shaped(value: Array, shape: Shape) -> Array:
    """A value in the tensor's own shape; as it is where sizes depend on data, or differ, for the measure to say so."""
    return value.reshape(shape) if -1 not in shape and value.size == math.prod(shape) else value
