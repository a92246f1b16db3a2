"""A net held against the rules of a target: any prototxt, a model converted in memory, or the mapper's own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx_ir as ir

from onnx2caffe import mapfile
from onnx2caffe.assembly import summary
from onnx2caffe.caffe.lower.lower import obstacles
from onnx2caffe.caffe.site import Site, Sites, of_net, read_sites
from onnx2caffe.canon import Shape
from onnx2caffe.errors import Blocked, NotConvertible, UnreadableFile, UsageError
from onnx2caffe.export import MAP_SUFFIX
from onnx2caffe.filekind import PROTOTXT, need
from onnx2caffe.frontend import load
from onnx2caffe.mapfile import CaffeSegment, ExportMap
from onnx2caffe.partition.plan import Wishes, partitioned
from onnx2caffe.passes import pipeline
from onnx2caffe.stages import blamed
from onnx2caffe.targets import by_name
from onnx2caffe.targets.base import Target
from onnx2caffe.targets.nnie.cfg import read_cfg
from onnx2caffe.targets.nnie.examine import examine
from onnx2caffe.targets.nnie.mapper_log import Names, read_log
from onnx2caffe.targets.nnie.rules import SEVERITIES, Finding, Rule, load_rules
from onnx2caffe.targets.nnie.segments import CPU, HP, REPORT
from onnx2caffe.targets.nnie.socs import soc_by_name
from onnx2caffe.targets.nnie.target import nnie
from onnx2caffe.textfile import read_text

__all__ = ["CheckOptions", "Report", "check"]

_NODE = Rule("node", "no legal form", "refused", source="the rules named in the text", strength="theirs")
_LAYER = Rule("layer", "layer the target does not have", "refused", source="Caffe's layer types", strength="Caffe")
_CAFFES = ("W30",)
"""Rules of the mapper's that Caffe gives it."""
_LOAD = Rule("net", "a net that does not load", "refused", source="Caffe's own checks", strength="Caffe")


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What a check may be told. Defaults are those of the command line."""

    target: str = "nnie"
    soc: str = ""
    cfg: Path | None = None
    rules: Path | None = None
    mapper_log: Path | None = None
    partition: bool | None = None
    input_shapes: Mapping[str, Shape] = field(default_factory=dict)
    recipes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """What a check found. `files`: what was looked at; `notes`: about the chip and the mapper's own check.

    Of a model in parts: `summary` says what runs where, `on_cpu` names the nodes that no net can have.
    """

    target: str
    files: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    summary: str = ""
    on_cpu: tuple[Blocked, ...] = ()

    def at_least(self, severity: str) -> list[Finding]:
        """The findings of this severity and worse ones.

        Raises:
            UsageError: no such severity.

        """
        if severity not in SEVERITIES:
            raise UsageError(f"no severity {severity!r}", f"one of {', '.join(SEVERITIES)}")
        lowest = SEVERITIES.index(severity)
        return [finding for finding in self.findings if SEVERITIES.index(finding.severity) >= lowest]

    @property
    def counts(self) -> dict[str, int]:
        """How many findings each severity has, the worst first."""
        counted = Counter(finding.severity for finding in self.findings)
        return {severity: counted[severity] for severity in reversed(SEVERITIES)}


def check(net: Path | None, options: CheckOptions) -> Report:
    """Check a prototxt (a cfg may name it) or an ONNX file, or read a mapper's log, or both.

    Raises:
        UsageError: nothing to check, or an option that does not fit.
        UnreadableFile: a file that is not what it should be.
        Unsupported: the ONNX file has something that stops every conversion.

    """
    target = by_name(options.target)
    if target.name != "nnie" and any((options.soc, options.cfg, options.rules, options.mapper_log)):
        raise UsageError("--soc, --cfg, --rules and --mapper-log are for target nnie", "leave them out")
    if net is None and options.cfg is not None:
        net = _net_of(options.cfg)
    if net is None and options.mapper_log is None:
        raise UsageError("nothing to check", "name a .prototxt or .onnx file, or give --cfg FILE or --mapper-log FILE")
    if net is not None and net.suffix == ".onnx" and options.cfg is not None:
        raise UsageError("--cfg needs the prototxt it names", "convert first, then check the prototxt")
    if options.partition is not None and (net is None or net.suffix != ".onnx"):
        raise UsageError("--partition and --no-partition are for an ONNX file", "leave them out")
    return _Checking(net, options, target).run()


def _net_of(path: Path) -> Path:
    """The prototxt that a cfg names.

    Raises:
        UsageError: it names none that is here.

    """
    cfg = read_cfg(path)
    name = cfg.value("prototxt_file", "")
    if not name:
        raise UsageError(f"{path} has no [prototxt_file]", "name the prototxt: check NET.prototxt --cfg FILE")
    found = cfg.files(name)
    if not found:
        raise UsageError(f"{path}: [prototxt_file] {name}: no such file", "name it: check NET.prototxt --cfg FILE")
    return found[0]


class _Checking:
    def __init__(self, net: Path | None, options: CheckOptions, target: Target) -> None:
        self._net, self._options = net, options
        self._rules = load_rules(options.rules)
        self._target = nnie(self._rules) if target.name == "nnie" else target
        self._names = Names()
        """Of the net's layers and blobs, as far as they are known."""
        self._summary = ""
        self._on_cpu: tuple[Blocked, ...] = ()

    def run(self) -> Report:
        notes = tuple(self._notes())
        findings: list[Finding] = []
        if self._net is not None:
            findings += self._model(self._net) if self._net.suffix == ".onnx" else self._prototxt(self._net)
        if self._options.mapper_log is not None:
            findings += self._log(self._options.mapper_log)
        files = [self._net, self._options.cfg, self._options.mapper_log]
        names = tuple(str(f) for f in files if f)
        return Report(self._target.name, names, tuple(findings), notes, self._summary, self._on_cpu)

    def _prototxt(self, path: Path) -> list[Finding]:
        need(path, PROTOTXT)
        sites = read_sites(path, REPORT if self._target.name == "nnie" else "")
        export = _map_beside(path.parent, path.name)
        nodes = _nodes(export)
        known = replace(sites, layers=[replace(site, nodes=tuple(nodes.get(site.name, ()))) for site in sites.layers])
        self._names = _names([known])
        return self._sites(known, path, _means(export))

    def _sites(self, sites: Sites, path: Path, means: Mapping[str, Sequence[float]] | None = None) -> list[Finding]:
        if self._target.name == "nnie":
            cfg = read_cfg(self._options.cfg, path, means) if self._options.cfg else None
            return examine(sites, self._rules, str(path), cfg)
        refused = [found for site in sites for found in _refusal(self._target, site, str(path))]
        return refused + examine(sites, {id: self._rules[id] for id in _CAFFES}, str(path))

    def _model(self, path: Path) -> list[Finding]:
        """What the rules say about the nets that `convert` would write, and what would stop it from writing any."""
        loaded = load(path, input_shapes=self._options.input_shapes)
        with blamed(loaded):
            return self._loaded(loaded.model, path)

    def _loaded(self, model: ir.Model, path: Path) -> list[Finding]:
        pipeline.run(model, pipeline.pipeline(self._target.exit))
        blocked, parts = tuple(obstacles(model, self._target, self._options.recipes).values()), self._partitions
        wishes = Wishes(self._tail, recipes=self._options.recipes, head=parts and self._target.exit == "nnie")
        refused = [] if parts else [_blocked(b, path) for b in blocked]
        try:
            plan = partitioned(model, self._target, wishes)
        except NotConvertible as problem:
            return [_blocked(b, path) for b in problem.blocked] if parts else refused
        if parts:
            self._summary, self._on_cpu = summary(plan, self._target.name), blocked
        nets = [of_net(net) for net in plan.nets]
        self._names = _names(nets)
        return refused + [found for net in nets for found in self._sites(net, path)]

    @property
    def _tail(self) -> str:
        """Where `convert` ends the nets when it is told nothing."""
        return "auto" if self._target.partition and self._partitions else "full"

    @property
    def _partitions(self) -> bool:
        chosen = self._options.partition
        return self._target.partition if chosen is None else chosen

    def _log(self, path: Path) -> list[Finding]:
        text = read_text(path, errors="replace")
        names = self._names if self._net else Names(_nodes(_map_beside(path.parent)))
        return read_log(text, self._rules, str(path), names)

    def _notes(self) -> list[str]:
        if self._target.name != "nnie":
            return []
        chip = soc_by_name(self._options.soc) if self._options.soc else None
        mapper = chip.mapper if chip else "nnie_mapper_11 or nnie_mapper_12"
        return [
            *([f"{self._options.soc}: {chip}"] if chip else []),
            f"the mapper itself checks a prototxt with `[is_check_prototxt] 1` in its cfg: {mapper} FILE.cfg; "
            "`onnx2caffe check NET.prototxt --mapper-log LOG` reads what it says",
        ]


def _blocked(blocked: Blocked, path: Path) -> Finding:
    text = f"{blocked.op}: {blocked.why}"
    names = tuple(name for name in blocked.node.split(", ") if name)
    remedy = "leave it to the CPU (--partition, the default of target nnie), or change the model"
    return Finding.of(_NODE, text, file=str(path), remedy=remedy, nodes=names)


def _refusal(target: Target, site: Site, file: str) -> list[Finding]:
    """What stops a layer on a plain Caffe."""
    rule, text = _LAYER, None
    if site.layer is not None and not site.problem:
        text = target.refuses(site.layer, site.shapes, site.top_shapes)
    elif site.type not in target.types:
        text = f"target {target.name} has no layer {site.type}"
    else:
        rule, text = _LOAD, site.problem
    if not text:
        return []
    return [Finding.of(rule, text, layer=site.name, file=file, line=site.line, nodes=site.nodes)]


def _names(nets: Sequence[Sites]) -> Names:
    """What a log about the nets may name: their layers, with marks too, and the blobs these make."""
    sites = [site for net in nets for site in net.layers]
    makers: dict[str, str] = {}
    for site in sites:
        for top in site.tops:
            makers.setdefault(top, site.name)
    return Names(_by_marked_names({site.name: site.nodes for site in sites}), makers)


def _map_beside(folder: Path, prototxt: str = "") -> ExportMap | None:
    """A map.json of ours in the folder that holds the prototxt (any, if "")."""
    for path in sorted(folder.glob(f"*{MAP_SUFFIX}")):
        try:
            export = mapfile.read(path)
        except UnreadableFile:
            continue
        if not prototxt or prototxt in export.files:
            return export
    return None


def _nodes(export: ExportMap | None) -> Mapping[str, Sequence[str]]:
    """Caffe layer -> the user's nodes."""
    return _by_marked_names(export.layers) if export else {}


def _means(export: ExportMap | None) -> Mapping[str, Sequence[float]]:
    """Blob -> what a head subtracts before it."""
    nets = [segment for segment in export.segments if isinstance(segment, CaffeSegment)] if export else []
    places = (place for net in nets for place in net.inputs.values())
    return {place.blob: place.mean for place in places if place.mean is not None}


def _by_marked_names(layers: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The layers under the names, too, that they have with marks."""
    marked = {name + mark: nodes for name, nodes in layers.items() for mark in (CPU, HP)}
    return {**marked, **layers}
