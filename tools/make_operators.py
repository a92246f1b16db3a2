#!/usr/bin/env python3
"""Measure what every ONNX op becomes and write onnx2caffe/operators.json and, for reading, docs/operators.md.

python -m tools.make_operators            write them
python -m tools.make_operators --check    exit 1 if one is not up to date

Nothing in the table is claimed: the rows of tests/ops are lowered, and their layers and refusals listed.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import onnx
import onnx_ir as ir
from onnx import defs

from onnx2caffe import canon, frontend
from onnx2caffe.caffe.finish import finish
from onnx2caffe.caffe.lower.families import load_families
from onnx2caffe.caffe.lower.lower import lower
from onnx2caffe.caffe.lower.registry import ALTERNATIVES
from onnx2caffe.caffe.net import Placed
from onnx2caffe.errors import NotConvertible
from onnx2caffe.frontend.structure import node_label
from onnx2caffe.frontend.upgrade import REASONS, UPGRADES
from onnx2caffe.operators import CUT, FILE, NOTHING, Operator, Operators, Recipe, Variant, is_words
from onnx2caffe.passes import pipeline
from onnx2caffe.targets import TARGETS
from onnx2caffe.tvm import stops
from onnx2caffe.tvm.emit import emit
from onnx2caffe.tvm.registry import DIALECTS
from tests.frontend.test_upgrade import PAIRS
from tests.frontend.test_upgrade import model as reading
from tests.ops.harness import all_cases, build, with_batch_of_one

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "operators.md"
DATA = ROOT / "onnx2caffe" / FILE
WHOLE = ("caffe", "bvlc")
"""Targets that refuse a model with an op they have not; `nnie` leaves the op to the CPU."""
MEASURED = (*WHOLE, "nnie")
COLUMNS = (*MEASURED, *DIALECTS)

LONGEST = 8
"""Runs of layers shown of one sequence."""

SOURCES = "nnie|recipes|ONNX|module text|AXM|BCAST|CMAP|CROP|KEEP|PICK|RED|STD|SWAP|ZPAD"
"""Words of the parts of docstrings that are for those who change the code."""

_Sorted = TypeVar("_Sorted", str, tuple[str, ...])

Key = tuple[str, str]
"""(domain, op type)."""


@dataclass
class Found:
    """What the rows of one op showed."""

    tests: int = 0
    readings: int = 0
    read: Counter[tuple[str, ...]] = field(default_factory=Counter)
    becomes: dict[str, Counter[Sequence[str]]] = field(
        default_factory=lambda: {column: Counter() for column in COLUMNS}
    )
    """Target or dialect -> how often its rows became which layers or calls; one of `NOTHING` stands for none."""
    limits: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Reason -> the targets of `WHOLE`, and the dialects, that gave it."""
    cpu: Counter[str] = field(default_factory=Counter)
    """How often which first reason left a row to the CPU on nnie."""


def measure() -> dict[Key, Found]:
    """Lower the rows of tests/ops; the rows of tests/frontend only for ops that have none there."""
    found: dict[Key, Found] = defaultdict(Found)
    for case in all_cases():
        key = (case.domain, case.op.partition("-")[0])
        found[key].tests += 1
        for target in (*WHOLE, "nnie"):
            row = with_batch_of_one(case) if target == "nnie" and "nnie" not in case.targets else case
            _lower(found[key], key[1], build(row), target, single=case.model is None)
        for dialect in DIALECTS:
            _emit(found[key], key[1], build(case), dialect, single=case.model is None)
    for case, version in PAIRS:
        key = (case.domain, case.op)
        found[key].readings += 1
        if not found[key].tests:
            for target in MEASURED:
                _lower(found[key], key[1], reading(case, version)[0], target, single=True)
            for dialect in DIALECTS:
                _emit(found[key], key[1], reading(case, version)[0], dialect, single=True)
    return found


def _lower(found: Found, op: str, proto: onnx.ModelProto, target: str, single: bool) -> None:
    """`single`: the row is one node, so everything in the net belongs to it."""
    rules = TARGETS[target]
    nodes = {node_label(node) for node in proto.graph.node if node.op_type == op}
    try:
        model = frontend.from_proto(proto).model
        found.read[tuple(node.op_type for node in model.graph if single or nodes & set(canon.sources(node)))] += 1
        if not len(model.graph):
            found.becomes[target][_nothing(model)] += 1
            return
        pipeline.run(model, pipeline.pipeline(rules.exit))
        net = finish(lower(model, rules).net, rules)
    except NotConvertible as problem:
        for blocked in problem.blocked:
            if target in WHOLE:
                found.limits[_limit(op, blocked.op, blocked.reasons)].add(target)
            elif blocked.op == op:
                found.cpu[_limit(op, op, blocked.reasons).partition("; or ")[0].removeprefix("nnie ")] += 1
        return
    own = [placed for placed in net.layers if single or nodes & set(placed.sources)]
    found.becomes[target][_layers(own)] += 1


def _emit(found: Found, op: str, proto: onnx.ModelProto, dialect: str, single: bool) -> None:
    """As `_lower`, in a dialect of TVM."""
    nodes = {node_label(node) for node in proto.graph.node if node.op_type == op}
    try:
        loaded = frontend.from_proto(proto)
        stops.check(loaded)
        if not len(loaded.model.graph):
            found.becomes[dialect][_nothing(loaded.model)] += 1
            return
        pipeline.run(loaded.model, pipeline.pipeline("tvm"))
        emitted = emit(loaded.model, dialect)
    except NotConvertible as problem:
        for blocked in problem.blocked:
            found.limits[_limit(op, blocked.op, blocked.reasons)].add(dialect)
        return
    own = [span for node, span in emitted.calls.items() if single or nodes & set(canon.sources(node))]
    calls = [call.fn for span in own for call in emitted.program.calls[slice(*span)]]
    found.becomes[dialect][tuple(calls) or NOTHING[0]] += 1


def _nothing(model: ir.Model) -> str:
    return NOTHING[any(canon.const(v) is not None for v in model.graph.outputs)]


def _limit(op: str, blocked: str, reasons: Sequence[str]) -> str:
    """A reason without the tensor names of the test, and with the op that gave it if that is another."""
    text = re.sub(r" \('[a-z]\w*'\)", "", "; or ".join(reasons))
    return text if blocked == op else f"{blocked}: {text}"


def _layers(layers: Sequence[Placed]) -> Sequence[str]:
    return tuple(placed.layer.type for placed in layers if placed.layer.type not in ("Input", "Silence")) or NOTHING[0]


def _shortest_first(counts: Counter[Sequence[str]]) -> tuple[str, ...]:
    """Distinct short forms, of equal length the commonest first; what leaves no layer last, because it says least."""
    found = sorted(counts, key=lambda types: (types in NOTHING, len(types), -counts[types], types))
    return tuple(dict.fromkeys(types if isinstance(types, str) else short(types) for types in found))


def short(types: Sequence[str]) -> str:
    """A sequence of types, repetitions counted: `Slice · Threshold ×8 · Eltwise`; the end of a long one is left out."""
    runs = [(kind, len(list(run))) for kind, run in itertools.groupby(types)]
    texts = [kind if count == 1 else f"{kind} ×{count}" for kind, count in runs]
    if len(texts) <= LONGEST:
        return " · ".join(texts)
    return f"{' · '.join(texts[: LONGEST - 2])} · {CUT} ({len(types)} in all)"


def collect() -> Operators:
    """The whole table."""
    found = measure()
    versions: dict[Key, list[int]] = defaultdict(list)
    for domain, op, version in UPGRADES:
        versions[domain, op].append(version)
    versions["", "If"] = [s.since_version for s in defs.get_all_schemas_with_history() if s.name == "If"]
    keys = {*versions, *(("", op) for op in REASONS), *found}
    operators = [entry(key, sorted(versions[key]), found[key]) for key in sorted(keys, key=_order)]
    opset = max(version for domain, _, version in UPGRADES if domain == "")
    return Operators(opset, MEASURED, DIALECTS, tuple(operators), tuple(recipes()))


def _order(key: Key) -> tuple[str, str]:
    return key[0], key[1].lower()


def entry(key: Key, versions: Sequence[int], found: Found) -> Operator:
    """The table's row of an op; `versions`: those that are read."""
    domain, op = key
    limits = [REASONS[op]] if op in REASONS and not domain else []
    limits += (_on_targets(limit, found.limits[limit]) for limit in _widest_first(found.limits) if limit not in limits)
    if found.becomes["caffe"] and not found.becomes["nnie"]:
        limits += (f"on nnie: {reason}" for reason in _commonest_first(found.cpu)[:1])
    return Operator(
        op,
        domain,
        tuple(versions),
        None if domain else _until(op),
        _read_as(op, found),
        {target: _shortest_first(counts) for target, counts in found.becomes.items()},
        tuple(limits),
        found.tests,
        found.readings,
    )


def _commonest_first(counts: Counter[_Sorted]) -> list[_Sorted]:
    """By how often, then by themselves: the order of the rows says nothing."""
    return sorted(counts, key=lambda one: (-counts[one], one))


def _widest_first(limits: Mapping[str, set[str]]) -> list[str]:
    """Reasons that hold for Caffe before those of TVM alone, in the order of the alphabet."""
    return sorted(limits, key=lambda limit: (limits[limit].isdisjoint(WHOLE), limit))


def _on_targets(limit: str, targets: set[str]) -> str:
    """A reason with the targets and dialects that give it, unless `WHOLE` do: then the columns say the rest."""
    places = ", ".join(column for column in COLUMNS if column in targets)
    return limit if targets.issuperset(WHOLE) else f"on {places}: {limit}"


def _read_as(op: str, found: Found) -> str:
    """The ops that take this one's place, unless some row keeps it (or, as `If`, it holds graphs of its own)."""
    forms = [form for form in _commonest_first(found.read) if form]
    return "" if not forms or op == "If" or any(op in form for form in forms) else short(forms[0])


def _until(op: str) -> int | None:
    """The last opset before ONNX withdrew the op."""
    newest = defs.get_schema(op)
    return newest.since_version - 1 if newest.deprecated else None


def recipes() -> Iterator[Recipe]:
    """Every ONNX op that has a lowering, then every recipe (lower-case keys)."""
    load_families()
    for key in sorted(ALTERNATIVES, key=lambda key: (key[0].islower(), key)):
        known = ALTERNATIVES[key]
        variants = (Variant(name, _does(way.function), way.approximate) for name, way in known.items())
        yield Recipe(key, tuple(variants), {target: _order_on(target, key) for target in MEASURED})


def _does(function: Callable[..., object]) -> str:
    """The first line of a docstring without its source, which is for those who change the code."""
    line = (inspect.getdoc(function) or "").partition("\n")[0]
    return re.sub(rf" \([^()]*\b(?:{SOURCES})\b[^()]*\)", "", line)


def _order_on(target: str, key: str) -> tuple[str, ...]:
    known = ALTERNATIVES[key]
    first = [variant for variant in TARGETS[target].order(key) if variant in known]
    return tuple(dict.fromkeys([*first, *known]))


HEAD = """# Operators

Will a model convert? `onnx2caffe inspect model.onnx` answers for a model, this page for a single op: `onnx2caffe ops`
lists them in short, `onnx2caffe ops Resize` prints the lines about one op.

Nothing here is claimed: each row of `tests/ops` is an ONNX node (or a few) that is lowered for every target, and the
table lists what the rows became, or why they were refused: of {ops} ops {converted} convert on targets `caffe` and
`bvlc`, {legal} have a form that nnie_mapper takes, both dialects of TVM take {emitted}. Made by `make docs`; do not
edit.

- **op**: with the ops it is *read as* where reading puts others in its place.
- **opsets**: the versions of the op that are read. Each holds until the next one, the last up to opset {opset}; a
  version newer than that is refused by name.
- **caffe**, **bvlc**, **nnie**: the layers that a node becomes, depending on its shapes and attributes, the fewest
  first. *nothing*: no layer is needed; *a constant*: computed while converting; *refused*: no row converts; *on the
  CPU*: none has a form inside the mapper's rules, so target `nnie` leaves the node to an ONNX part. Inside a model it
  is often less: BatchNorm, scales, pads and constants are folded into their neighbours, data movers are merged. For
  nnie the rows have a batch of 1, and forms that were seen compiled come first (`--recipe` picks others).
- **relay**, **relax**: the operators of TVM that a node becomes, below `tvm.relay` and `tvm.relax.op`.
- **limits**: the reasons of refused rows, with their sizes and types; of those that `caffe` and `bvlc` take, with the
  column that refuses. *Must be constant* and *must not depend on data*
  mean: computable while converting, from initializers and shapes. What the mapper's rules refuse of an op that has a
  form is not listed: `onnx2caffe check model.onnx` names it for a model.
- **tests**: rows that are run in the builtin runtime and in a real Caffe, on all targets, and in both dialects of TVM,
  and held against onnxruntime, + rows that check how each version is read.

For every op:

- Shapes are static once the inputs' are given (`--input-shape`); what depends on a computed shape is refused.
- Caffe has float32 only: float16, bfloat16 and float64 are computed as float32, integers are exact up to 2^24, booleans
  are 0 and 1, strings have no form. A tensor has at least one element and at most 32 axes.
- `If` needs a condition known while converting. Loops, training modes and random numbers are refused.
- A model's own functions are taken apart. Any other op that is not listed is refused by name.

## ONNX ops
"""

RECIPES = """## Variants and recipes

The ways to express an op, and the recipes that several ops share (in lower case). A target takes the first variant
whose layers its rules accept, in the order that its column numbers; `--recipe KEY=VARIANT` picks another. Where no
variant applies, the refusal says why, for each.
"""


def data(table: Operators) -> str:
    """JSON with a line for every op and recipe, so that changes are seen."""
    parts = []
    for name, value in asdict(table).items():
        lines = (json.dumps(v, ensure_ascii=False) for v in value) if isinstance(value, tuple) else [json.dumps(value)]
        text = ",\n".join(lines)
        parts.append(f'"{name}": ' + (f"[\n{text}\n]" if isinstance(value, tuple) else text))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def page(table: Operators) -> str:
    """The whole page."""
    operators = _table(["op", "opsets", *COLUMNS, "limits", "tests"], map(_cells, table.operators))
    variants = _table(
        ["op or recipe", "variant", "what it does", *MEASURED],
        itertools.chain.from_iterable(map(_variant_cells, table.recipes)),
    )
    converted = sum(all(entry.becomes[target] for target in WHOLE) for entry in table.operators)
    legal = sum(bool(entry.becomes["nnie"]) for entry in table.operators)
    emitted = sum(all(entry.becomes[dialect] for dialect in DIALECTS) for entry in table.operators)
    head = HEAD.format(opset=table.opset, ops=len(table.operators), converted=converted, legal=legal, emitted=emitted)
    return "\n".join([head, *operators, "", RECIPES, *variants, ""])


def _cells(entry: Operator) -> list[str]:
    name = f"`{entry.name}`" + (f" read as `{entry.read_as}`" if entry.read_as else "")
    becomes = ("<br>".join(map(_marked, shown)) for shown in entry.columns(COLUMNS))
    return [name, entry.opsets, *becomes, "<br>".join(entry.limits), entry.rows]


def _marked(text: str) -> str:
    """Layers and calls as code, words as they are."""
    return text if is_words(text) else f"`{text}`"


def _variant_cells(recipe: Recipe) -> Iterator[list[str]]:
    for variant in recipe.variants:
        does = variant.does + (" (approximate: only where asked for)" if variant.approximate else "")
        places = [str(recipe.order[target].index(variant.name) + 1) for target in MEASURED]
        yield [f"`{recipe.key}`", f"`{variant.name}`", does, *places]


def _table(header: Sequence[str], rows: Iterable[list[str]]) -> list[str]:
    return [_row(cells) for cells in ([*header], ["---"] * len(header), *rows)]


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def stale(table: Operators) -> list[str]:
    """The files that do not hold the table."""
    return [p.name for p, text in _texts(table).items() if not p.exists() or p.read_text(encoding="utf-8") != text]


def _texts(table: Operators) -> dict[Path, str]:
    return {DATA: data(table), PAGE: page(table)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the files are up to date")
    only_check = parser.parse_args().check
    table = collect()
    if only_check:
        return int(bool(stale(table)))
    for path, text in _texts(table).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
