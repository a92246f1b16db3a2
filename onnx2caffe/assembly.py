"""A plan's pieces to files and to the map that says how they fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path

import onnx_ir as ir

from onnx2caffe import canon, mapfile
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.write import write_caffemodel, write_prototxt
from onnx2caffe.canon import Note
from onnx2caffe.frontend import Loaded
from onnx2caffe.frontend.names import names_of
from onnx2caffe.mapfile import CaffeSegment, OnnxSegment, Place, Promise
from onnx2caffe.partition.head import Prepared, prepared
from onnx2caffe.partition.onnx_part import write_part
from onnx2caffe.partition.plan import CHOSEN, HEAD, Piece, Plan
from onnx2caffe.targets.nnie.markers import Choice, Marks, chosen, marked, with_marked_names
from onnx2caffe.targets.nnie.rules import Rule
from onnx2caffe.targets.nnie.single import Link, joined

__all__ = ["Assembly", "Extras", "remarks", "summary"]


@dataclass(frozen=True)
class Extras:
    """What the mapper's user gets beside the plain nets: marks by the rules, and one prototxt of several nets.

    `names`: the user's tensor -> the blob name it shall have in that too.
    """

    marks: Marks = field(default_factory=Marks)
    single_wk: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, Rule] = field(default_factory=dict)


_RISKS = "in 8 bits on the NNIE, though better on the CPU, where --partition leaves it: {}"


class Assembly:
    """Writes the pieces of a plan and remembers what it wrote.

    `files`: name -> sha256. `segments`, `tensors`, `layers` and `single_wk` are those of the map.
    """

    def __init__(self, plan: Plan, loaded: Loaded, folder: Path, name: str, header: Sequence[str]) -> None:
        self._plan, self._loaded, self._folder, self._name, self._header = plan, loaded, folder, name, header
        self._keys = _Keys(loaded)
        self.files: dict[str, str] = {}
        self.segments: list[CaffeSegment | OnnxSegment] = []
        self.tensors: dict[str, Promise] = {}
        self.layers: dict[str, Sequence[str]] = {}
        self.single_wk: dict[str, str] = {}

    def write(self, extras: Extras) -> None:
        """Write all pieces, in order of execution, then what the mapper's user wants beside them.

        Raises:
            UsageError: a mark names nothing, or may not stand where it would, or there are too many.

        """
        stems = _stems(self._plan.pieces, self._name)
        choices = self._chosen(extras.marks)
        marks = iter([marked(net, one, extras.rules) for net, one in zip(self._plan.nets, choices, strict=True)])
        links: list[Link] = []
        for piece, stem in zip(self._plan.pieces, stems, strict=True):
            if piece.net is None:
                self._onnx(piece, stem)
            else:
                self._caffe(piece, piece.net, stem, next(marks))
            links.append(self._link(piece, stem, extras.names))
        if extras.single_wk and len(self._plan.nets) > 1:
            first, last = (order(n for n, link in enumerate(links) if link.net) for order in (min, max))
            self._single(links[first : last + 1], choices, extras.rules)

    def _chosen(self, marks: Marks) -> list[Choice]:
        """What the user wants marked in each net."""
        nets, tensors = self._plan.nets, []
        for piece in (piece for piece in self._plan.pieces if piece.lowered and piece.net):
            assert piece.lowered is not None
            assert piece.net is not None
            writers = {top: placed.name for placed in piece.net for top in placed.tops}
            found = mapfile.promises(piece.lowered.blobs, piece.net)
            tensors.append({name: (p.layer or writers[p.blob], p.blob) for name, p in found.items()})
        return chosen(nets, marks, tensors)

    def _single(self, links: Sequence[Link], choices: Sequence[Choice], rules: Mapping[str, Rule]) -> None:
        """Write the pieces as one net, and that one with its marks."""
        one = joined(self._name, links)
        there = (choice.renamed(*names) for choice, *names in zip(choices, one.blobs, one.layers, strict=True))
        with_marks = marked(one.net, reduce(or_, there), rules)
        self.single_wk = self._write_net(one.net, f"{self._name}.wk", with_marks)

    def _link(self, piece: Piece, stem: str, names: Mapping[str, str]) -> Link:
        """A piece as `joined` wants it, once it is written."""
        segment = self.segments[-1]
        shapes = {self._keys.of(value): _shape(value) for value in (*piece.part.inputs, *piece.part.outputs)}
        inputs, outputs = (
            {tensor: at.blob if isinstance(at, Place) else "" for tensor, at in ports.items()}
            for ports in (segment.inputs, segment.outputs)
        )
        made = zip(piece.part.outputs, piece.net.outputs, strict=True) if piece.net else ()
        kept = {blob for value, blob in made if any(tensor.name in names for tensor in canon.tensors(value))}
        return Link(piece.net, stem, inputs, outputs, shapes, kept)

    def _write_net(self, net: Net, stem: str, with_marks: Net) -> dict[str, str]:
        prototxt, caffemodel = f"{stem}.prototxt", f"{stem}.caffemodel"
        self.files[prototxt] = write_prototxt(net, self._folder / prototxt, self._header)
        self.files[caffemodel] = write_caffemodel(with_marked_names(net, with_marks), self._folder / caffemodel)
        if with_marks is not net:
            file = f"{stem}.marked.prototxt"
            self.files[file] = write_prototxt(with_marks, self._folder / file, self._header)
        return {"prototxt": prototxt, "caffemodel": caffemodel}

    def _onnx(self, piece: Piece, stem: str) -> None:
        file = f"{stem}.onnx"
        self.files[file] = write_part(piece.part, self._loaded.model, self._folder / file)
        inputs = {self._keys.of(value): value.name or "" for value in piece.part.inputs}
        outputs = {
            key: value.name or "" for value in piece.part.outputs for key, _ in self._keys.outgoing(value, piece)
        }
        self.segments.append(OnnxSegment(file, inputs, outputs))

    def _caffe(self, piece: Piece, net: Net, stem: str, with_marks: Net) -> None:
        assert piece.lowered is not None
        self._write_net(net, stem, with_marks)
        inputs = {
            self._keys.of(value): replace(_place(net, blob, canon.shape(value)), mean=self._mean(value))
            for value, blob in zip(piece.part.inputs, net.inputs, strict=True)
        }
        outputs: dict[str, Place] = {}
        for value, blob in zip(piece.part.outputs, net.outputs, strict=True):
            outputs |= {key: _place(net, blob, shape) for key, shape in self._keys.outgoing(value, piece)}
        promised = mapfile.promises(piece.lowered.blobs, net, len(self.segments))
        self.segments.append(CaffeSegment(f"{stem}.prototxt", f"{stem}.caffemodel", inputs, outputs))
        self.tensors = promised | self.tensors
        self.layers |= {placed.name: placed.sources for placed in net}

    def _mean(self, value: ir.Value) -> tuple[float, ...] | None:
        """What the mapper can subtract in the head's place."""
        found = _from_head(self._plan, value)
        return found[0].mapper_mean if found else None


def _place(net: Net, blob: str, shape: canon.Shape) -> Place:
    return Place(blob, shape, net.shapes[blob] if net.shapes[blob] != shape else None)


def _stems(pieces: Sequence[Piece], name: str) -> list[str]:
    """File names without their endings."""
    nets = [number for number, piece in enumerate(pieces) if piece.net is not None]
    between = 0
    stems = []
    for number, piece in enumerate(pieces):
        if piece.net is not None:
            stems.append(name if len(nets) == 1 else f"{name}.seg{nets.index(number) + 1}")
        elif number < nets[0]:
            stems.append(f"{name}.head")
        elif number > nets[-1]:
            stems.append(f"{name}.tail")
        else:
            between += 1
            stems.append(f"{name}.cpu{between}")
    return stems


class _Keys:
    """The names of tensors in the environment that the segments share."""

    def __init__(self, loaded: Loaded) -> None:
        self._outputs: dict[ir.Value, list[tuple[str, canon.Shape]]] = {}
        for info, value in zip(loaded.outputs, loaded.model.graph.outputs, strict=True):
            self._outputs.setdefault(value, []).append((info.name, info.shape))
        self._names = names_of(loaded.model.graph)
        self._known: dict[ir.Value, str] = {}

    def of(self, value: ir.Value) -> str:
        """The key of a value: a user's tensor that it holds in that very shape, else a new name."""
        if value not in self._known:
            self._known[value] = self._chosen(value)
        return self._known[value]

    def outgoing(self, value: ir.Value, piece: Piece) -> list[tuple[str, canon.Shape]]:
        """The keys under which a piece hands on a value, each with its shape: the model's outputs, and `of`."""
        keys = list(self._outputs.get(value, ()))
        nodes = set(piece.part.nodes)
        crosses = any(node not in nodes for node, _ in value.uses())
        if crosses and self.of(value) not in dict(keys):
            keys.append((self.of(value), _shape(value)))
        return keys

    def _chosen(self, value: ir.Value) -> str:
        shape = _shape(value)
        same = [tensor.name for tensor in canon.tensors(value) if tensor.shape == shape]
        if value.name in same or not canon.tensors(value):
            return value.name or ""
        return same[0] if same else self._names.new(value.name or "", "cut")


def _shape(value: ir.Value) -> canon.Shape:
    try:
        return canon.shape(value)
    except ValueError:
        return ()


def summary(plan: Plan, target: str) -> str:
    """One line: what runs where, and why not all of it on nets."""
    nets = plan.nets
    figures = [_count(sum(len(net.layers) for net in nets), "layer"), _count(len(nets), "segment")]
    if plan.macs:
        figures.insert(0, f"{100 * plan.share:.1f} % of MACs")
    name = target.upper() if target == "nnie" else target
    return f"{name}: {', '.join(figures)}" + (f" · CPU: {_rest(plan.reasons)}" if plan.reasons else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _rest(reasons: Mapping[ir.Node, str]) -> str:
    """How many nodes, and per kind of reason the commonest ops."""
    kinds: dict[str, Counter[str]] = {}
    for node, reason in reasons.items():
        kind = reason if reason in CHOSEN else "not legal"
        kinds.setdefault(kind, Counter())[node.op_type] += 1
    texts = [f"{_commonest(ops)}: {kind}" for kind, ops in kinds.items()]
    return f"{_count(len(reasons), 'node')} ({'; '.join(texts)})"


def _commonest(ops: Counter[str]) -> str:
    return ", ".join(op for op, _ in ops.most_common(3)) + (" …" if len(ops) > 3 else "")


def remarks(plan: Plan) -> list[Note]:
    """What the mapper can do for the head, and why nodes are on no net although they might be, one note per reason."""
    by_reason: dict[str, list[str]] = {}
    for node, reason in plan.reasons.items():
        if reason not in CHOSEN:
            by_reason.setdefault(reason, []).extend(_sources([node]))
    notes = [Note("note", f"stays ONNX: {reason}", tuple(nodes)) for reason, nodes in by_reason.items()]
    if plan.macs and f"{100 * plan.share:.1f}" == "0.0":
        notes.append(Note("warning", "next to none of the multiply-accumulates run on a net"))
    if plan.risks:
        notes.append(Note("warning", _RISKS.format(_rest(plan.risks)), _sources(plan.risks)))
    return [*_advice(plan), *notes]


def _sources(nodes: Iterable[ir.Node]) -> tuple[str, ...]:
    """The user's nodes behind some."""
    return tuple(dict.fromkeys(name for n in nodes for name in canon.sources(n) or (n.name or n.op_type,)))


def _advice(plan: Plan) -> Iterator[Note]:
    for piece in plan.pieces:
        for value, blob in zip(piece.part.inputs, piece.net.inputs if piece.net else (), strict=bool(piece.net)):
            found = _from_head(plan, value)
            if found is not None and (text := found[0].advice(blob)):
                yield Note("note", text, canon.sources(found[1]))


def _from_head(plan: Plan, value: ir.Value) -> tuple[Prepared, ir.Node] | None:
    """How the head, and nothing else, makes a value of an input, and its last node."""
    node, how = value.producer(), prepared(value)
    return (how, node) if how is not None and node is not None and plan.reasons.get(node) == HEAD else None
