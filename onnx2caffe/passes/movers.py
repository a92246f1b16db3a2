"""Chains of Reshape and Transpose become their shortest spelling.

A chain does exactly what its block normal form says (`decompose.transpose`): chains that move nothing are one Reshape
or nothing, a Transpose that only moves size-1 axes is a Reshape, inverse Transposes cancel through any Reshapes between
them. A chain is respelled when that takes fewer Transposes, or as many and fewer nodes; values inside it that others
read stay, and count.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnx2caffe import canon
from onnx2caffe.decompose.transpose import Blocks, Step, spell
from onnx2caffe.passes.base import NodePass
from onnx2caffe.passes.editor import Editor
from onnx2caffe.passes.match import maker, only_reader, source

__all__ = ["Chain", "MergeMovers", "chain_above"]

_MOVERS = ("Reshape", "Transpose")


@dataclass(frozen=True)
class Chain:
    """Movers from `root` down to a value: what they do together, the nodes, and those nobody else needs."""

    root: ir.Value
    blocks: Blocks
    nodes: tuple[ir.Node, ...]
    private: int
    """How many of `nodes`, counted from the last, die when the last one's output no longer needs them."""


def _step(node: ir.Node) -> Blocks:
    if node.op_type == "Reshape":
        return Blocks((), ())
    return Blocks.of(canon.shape(source(node)), canon.attribute(node, "perm"))


def chain_above(node: ir.Node) -> list[Chain]:
    """The mover chains that end in the mover `node`, shortest first."""
    chains: list[Chain] = []
    nodes: tuple[ir.Node, ...] = ()
    below = Blocks((), ())
    above: ir.Node | None = node
    private, alone = 0, True
    while above is not None and 0 not in canon.shape(above.outputs[0]):
        blocks = _step(above).then(below)
        if blocks is None:
            break
        below, nodes = blocks, (above, *nodes)
        alone = alone and (above is node or only_reader(above.outputs[0]) is not None)
        private += alone
        root = source(above)
        chains.append(Chain(root, blocks, nodes, private))
        above = maker(root, *_MOVERS)
    return chains


def _transposes(steps: tuple[Step, ...]) -> int:
    return sum(op == "Transpose" for op, _ in steps)


class MergeMovers(NodePass):
    """Reshape/Transpose chains are respelled by their block normal form where that is shorter."""

    claim = "a chain of Reshapes and Transposes equals the shortest chain with the same block normal form"
    ops = frozenset(_MOVERS)

    def rewrite(self, node: ir.Node, edit: Editor) -> bool:
        """Respell the chain that ends here from the root that saves most."""
        target = canon.shape(node.outputs[0])
        best: tuple[tuple[int, int, int], Chain, tuple[Step, ...]] | None = None
        for chain in chain_above(node):
            steps = spell(chain.blocks, canon.shape(chain.root), target)
            dying = chain.nodes[-chain.private :]
            gain = (
                sum(one.op_type == "Transpose" for one in dying) - _transposes(steps),
                len(dying) - len(steps),
                0 if chain.blocks.moves else len(chain.nodes) - 1,
            )
            if gain > (0, 0, 0) and (best is None or gain > best[0]):
                best = gain, chain, steps
        if best is None:
            return False
        _respell(node, best[1], best[2], edit)
        return True


def _respell(node: ir.Node, chain: Chain, steps: tuple[Step, ...], edit: Editor) -> None:
    if not steps:
        edit.forward(node.outputs[0], chain.root)
        return
    value = chain.root
    for op, numbers in steps[:-1]:
        if op == "Reshape":
            value = edit.reshape(node, value, numbers)
        else:
            shape = tuple(canon.shape(value)[axis] for axis in numbers)
            value = edit.add(node, "Transpose", [value], {"perm": numbers}, shape=shape, what="transposed")
    op, numbers = steps[-1]
    if op == "Reshape":
        edit.replace_by_reshape(node, value, merged=chain.nodes[:-1])
    else:
        edit.replace(node, "Transpose", [value], {"perm": numbers}, merged=chain.nodes[:-1])
