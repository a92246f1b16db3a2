"""Target `nnie`: a layer is legal where no rule that forbids finds anything; the check uses the same rules."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx2caffe.caffe.layers.base import Layer, Shape
from onnx2caffe.caffe.net import Net
from onnx2caffe.caffe.rules import unfit
from onnx2caffe.caffe.site import Site, of_net
from onnx2caffe.canon import Note
from onnx2caffe.errors import UsageError
from onnx2caffe.targets.base import Target
from onnx2caffe.targets.nnie.examine import examine
from onnx2caffe.targets.nnie.finish import for_mapper, like_marks
from onnx2caffe.targets.nnie.preferred import PREFERRED
from onnx2caffe.targets.nnie.rules import Finding, Rule, load_rules, see_layer
from onnx2caffe.targets.nnie.segments import MARKS

__all__ = ["NNIE", "nnie"]


_COUNTS = "E09"
"""The rule of how many segments, inputs and outputs there may be."""
_SEQUENCES = "the mapper's LSTM and RNN layers ([net_type] 2) are not written, since no compiled net shows one"
_SHOWN = 5
"""Names that a note lists at most."""


@dataclass(frozen=True)
class _Nnie(Target):
    """The mapper's rules about single layers, and no batch anywhere."""

    rules: Mapping[str, Rule] = field(default_factory=dict)

    def refuses(self, layer: Layer, bottoms: Sequence[Shape], tops: Sequence[Shape]) -> str | None:
        """Why the mapper would stop at the layer or compute something else, with the rule's id; or None."""
        site = Site(layer.type, layer, tuple(bottoms), tuple(tops))
        for rule in self.rules.values():
            if rule.forbidden and (text := see_layer(rule, site)):
                return f"nnie {rule.id}, {rule.title}: {text}"
        batches = [shape[0] for shape in (*bottoms, *tops) if len(shape) > 1 and shape[0] != 1]
        if batches:
            return f"nnie E04, {self.rules['E04'].title}: batch {batches[0]}"
        return None

    def gist(self, op: str, shapes: Sequence[Shape], reasons: Sequence[str]) -> str:
        """A tensor that no blob of NNIE holds; else the rule that an alternative breaks, else why the best fails.

        A choice of the user's comes first. That a layer type is not there (E05) says least: it is some helper's.
        """
        unfits = (f"tensor {list(shape)}: {text}" for shape in shapes if (text := unfit(self, shape)))
        chosen = (reason for reason in reasons if reason.startswith("--recipe "))
        ruled = (reason for reason in reasons if reason.startswith("nnie ") and not reason.startswith("nnie E05"))
        found = next(itertools.chain(chosen, unfits, ruled, reasons))
        return f"{found}; {_SEQUENCES}" if op in ("LSTM", "GRU", "RNN") else found

    def dressed(self, net: Net, names: Mapping[str, str]) -> Net:
        """In place where that is the mapper's fast form, outputs and names as the `.wk` has them."""
        return for_mapper(net, names)

    def faults(self, net: Net) -> Sequence[tuple[str, str]]:
        """What the rules about neighbours and segments find in a finished net: layer ("" for the net) and reason."""
        findings = examine(of_net(net), {id: rule for id, rule in self.rules.items() if rule.forbidden})
        return [(finding.layer, f"nnie {finding.rule}: {finding.text}") for finding in findings]

    def remarks(self, nets: Sequence[Net]) -> Sequence[Note]:
        """What the nets hold that nobody has seen compiled, each kind once, and the names that are changed in them."""
        return [*self._unproven(nets), *_changed([*dict.fromkeys(name for net in nets for name in like_marks(net))])]

    def _unproven(self, nets: Sequence[Net]) -> list[Note]:
        """Each kind with its nodes, and the option that leads around it."""
        unproven = {id: rule for id, rule in self.rules.items() if rule.severity == "unproven"}
        kinds: dict[tuple[str, str, str], list[Finding]] = {}
        for found in (f for net in nets for f in examine(of_net(net), unproven)):
            kinds.setdefault((found.rule, found.text, found.option), []).append(found)
        return [self._remark(alike) for alike in kinds.values()]

    def _remark(self, alike: Sequence[Finding]) -> Note:
        rule, text, option = alike[0].rule, alike[0].text, alike[0].option
        count = f"{len(alike)} layer{'s' * (len(alike) > 1)}"
        way = f"; another way: {option}" if option else ""
        nodes = dict.fromkeys(node for found in alike for node in found.nodes)
        return Note("note", f"unproven on NNIE ({rule}, {self.rules[rule].title}): {text}, {count}{way}", tuple(nodes))


def _changed(names: Sequence[str]) -> list[Note]:
    """What is said of names that the mapper would read as marks."""
    shown = ", ".join(map(repr, names[:_SHOWN])) + (" …" if len(names) > _SHOWN else "")
    ends = ", ".join(MARKS)
    text = f"names that end like the mapper's marks ({ends}) are changed, see map.json: {shown}"
    return [Note("note", text)] if names else []


def nnie(rules: Mapping[str, Rule]) -> Target:
    """The target by these rules.

    Raises:
        UsageError: they leave no room for any net.

    """
    most = rules[_COUNTS].when
    for what in ("segments", "inputs", "outputs"):
        if most[what] < 1:
            raise UsageError(f"rule {_COUNTS}: {what} = {most[what]} leaves no room for any net", "1 is the least")
    return _Nnie(
        "nnie",
        frozenset({*rules["E05"].when["types"], *rules["E05"].exempt}),
        exit="nnie",
        partition=True,
        max_segments=most["segments"],
        max_inputs=most["inputs"],
        max_outputs=most["outputs"],
        preferred=PREFERRED,
        rules=rules,
    )


NNIE = nnie(load_rules())
