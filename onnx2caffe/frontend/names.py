"""Names and provenance: which of the user's tensors a value holds, which of the user's nodes a node stands for.

`value.meta["tensors"]` and `node.meta["sources"]` (see `canon`) are written only here.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.canon import UserTensor

__all__ = ["Names", "add_sources", "add_tensors", "detach", "names_of", "replace_value"]


class Names:
    """Makes names that are not taken; what it hands out is taken from then on."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def new(self, origin: str, what: str) -> str:
        """`<origin>__<what>`, with a number behind it when that is taken."""
        return self.unique(f"{origin}__{what}")

    def unique(self, name: str) -> str:
        """`name`, or `name__2`, `name__3`, … when it is taken."""
        candidate = name
        count = self._counts.get(name, 1)
        while candidate in self._taken:
            count += 1
            candidate = f"{name}__{count}"
        self._counts[name] = count
        self._taken.add(candidate)
        return candidate


def names_of(graph: ir.Graph) -> Names:
    """A name maker that knows every value and node of `graph` and every user tensor its values hold."""
    taken: set[str] = set()
    values = [*graph.inputs, *graph.initializers.values()]
    for node in graph:
        taken.add(node.name or "")
        values.extend(node.outputs)
    for value in values:
        taken.add(value.name or "")
        taken.update(tensor.name for tensor in canon.tensors(value))
    return Names(taken)


def add_tensors(value: ir.Value, tensors: Iterable[UserTensor]) -> None:
    """Record that `value` also holds these user tensors, in C order."""
    known = canon.tensors(value)
    value.meta["tensors"] = known + tuple(t for t in tensors if t not in known)


def add_sources(node: ir.Node, sources: Iterable[str]) -> None:
    """Record that `node` also stands for these user nodes."""
    known = canon.sources(node)
    node.meta["sources"] = known + tuple(dict.fromkeys(s for s in sources if s not in known))


def replace_value(old: ir.Value, new: ir.Value) -> None:
    """Let `new`, which holds the same values as `old` in C order, take `old`'s readers, graph outputs and user tensors.

    The user's name moves along when `new` has none of its own: it still names the same tensor.
    """
    if not canon.tensors(new) and canon.tensors(old) and not new.is_graph_input() and not new.is_initializer():
        new.name, old.name = old.name, new.name
    add_tensors(new, canon.tensors(old))
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def detach(node: ir.Node) -> None:
    """Take a node that is in no graph out of its inputs' lists of readers."""
    for index in range(len(node.inputs)):
        node.replace_input_with(index, None)
