"""Whole networks for boards, run under qemu and held against onnxruntime (`make arm`).

    python -m tests.tvm.arm.run            print and rewrite table.tsv

As plain C for every machine of tests/tvm/boards.py, and as libraries of Relay linked here. Columns: model, form,
target, machine, relative error of the worst output, least cosine, verdict (docs/architecture.md, "Equal").
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import onnx2caffe
from onnx2caffe import mapfile
from onnx2caffe.mapfile import TvmSegment
from onnx2caffe.tvm import csource
from onnx2caffe.tvm.program import Program, Type
from onnx2caffe.verify.inputs import structured
from onnx2caffe.verify.measure import Judgement, Verdict, judge
from onnx2caffe.verify.reference import UserModel
from tests.corpus.run import models
from tests.ops.harness import Array
from tests.tvm import boards
from tests.tvm.arm import runtime
from tests.tvm.boards import MACHINES

TABLE = Path(__file__).with_name("table.tsv")
HEADER = "model\tform\ttarget\tmachine\trelative\tcosine\tverdict"
MODELS = ("nanodet_m_416_op11", "mobilenetv2_op11")
LIBRARIES = {"hi3516dv300": "softfp", "armhf": "armhf", "hi3559av100": "aarch64"}
"""Target -> the machine that runs it."""


def main() -> int:
    if missing := [machine.missing for machine in MACHINES.values() if machine.missing]:
        print("\n".join(missing), file=sys.stderr)
        return 4
    lines = [HEADER]
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        apps = {name: _app(Path(scratch) / f"app-{name}", name) for name in LIBRARIES.values()}
        for path, entry in models(Path(scratch) / "corpus"):
            if entry["name"] not in MODELS:
                continue
            for form, target, machine, judgements in _judged(path, Path(scratch), apps):
                worst = max(judgements, key=lambda j: j.error)
                verdict = "equal" if all(j.verdict is Verdict.EQUAL for j in judgements) else "differs"
                bad += verdict != "equal"
                figures = f"{worst.error:.1e}\t{min(j.cosine for j in judgements):.6f}\t{verdict}"
                lines.append(f"{path.stem}\t{form}\t{target}\t{machine}\t{figures}")
                print(lines[-1], flush=True)
    TABLE.write_text("\n".join(lines) + "\n")
    return int(bad > 0)


def _app(folder: Path, machine: str) -> Path:
    folder.mkdir()
    return runtime.build(folder, runtime.package(), MACHINES[machine])


def _judged(path: Path, scratch: Path, apps: dict[str, Path]) -> Iterator[tuple[str, str, str, list[Judgement]]]:
    """Form, target, machine, and the judgement of every output."""
    folder = scratch / path.stem
    exported = onnx2caffe.export_tvm(path, folder, target="c")
    feeds = {port.name: structured(port.shape, 0) for port in exported.inputs}
    names = [port.name for port in exported.outputs]
    samples = UserModel(path, (), names).sample(feeds, names)

    def judged(values: list[Array]) -> list[Judgement]:
        return [judge(samples[name], value) for name, value in zip(names, values, strict=True)]

    face = csource.interface(
        path.stem,
        Program(outputs=[{"input": number} for number in range(len(names))]),
        [(port.name, Type("float32", port.shape)) for port in exported.inputs],
        [(port.name, Type("float32", port.shape)) for port in exported.outputs],
    )
    for name, machine in MACHINES.items():
        yield "C", "c", name, judged(boards.run(folder, face, feeds, machine, "-O1"))
    shutil.rmtree(folder)
    for target, name in LIBRARIES.items():
        cc = f"{MACHINES[name].cross}gcc"
        export = onnx2caffe.export_tvm(path, folder, target=target, cc=cc, compare=False)
        (segment,) = mapfile.read(export.map_file).segments
        assert isinstance(segment, TvmSegment)
        given = {place.blob: np.asarray(feeds[tensor]) for tensor, place in segment.inputs.items()}
        shapes = [port.shape for port in exported.outputs]
        yield (
            "library",
            target,
            name,
            judged(runtime.run(apps[name], export.files["library"], given, shapes, MACHINES[name])),
        )
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
