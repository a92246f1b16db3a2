"""All rules on a net, and on its cfg where there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from onnx2caffe.caffe.layers import Slice
from onnx2caffe.caffe.site import Site, Sites
from onnx2caffe.targets.nnie.cfg import CFG_RULES, Cfg, Setting
from onnx2caffe.targets.nnie.layer_rules import crops, paints
from onnx2caffe.targets.nnie.net_rules import NET_RULES
from onnx2caffe.targets.nnie.rules import Finding, Rule, see_layer

__all__ = ["examine"]

_CAFFE = "E18"
"""Caffe's own refusal: said only where no rule has told it better."""


def examine(net: Sites, rules: Mapping[str, Rule], file: str = "", cfg: Cfg | None = None) -> list[Finding]:
    """Every finding: those at layers in the net's order, then those about the net, then those about the cfg."""
    found = [finding for site in net.layers for finding in _layer(site, rules, file)]
    found += _net(net, rules, file)
    if cfg is not None:
        found += _cfg(net, rules, file, cfg)
    place = {site.name: number for number, site in enumerate(net.layers) if site.name}
    return sorted(found, key=lambda finding: place.get(finding.layer, len(place)))


def _layer(site: Site, rules: Mapping[str, Rule], file: str) -> Iterator[Finding]:
    refused = False
    for rule in rules.values():
        if rule.id == _CAFFE and refused:
            continue
        if text := see_layer(rule, site):
            refused = refused or rule.severity == "refused"
            yield _at(site, Finding.of(rule, text, file=file, option=_option(rule, site)))


def _option(rule: Rule, site: Site) -> str:
    """The rule's, or where it has one per type or use that of those; a Slice of channels is no crop."""
    by_type = rule.when.get("types")
    if "paints" in rule.when and paints(site):
        return str(rule.when["paints"])
    if "crops" in rule.when and crops(site):
        return str(rule.when["crops"])
    if not isinstance(by_type, dict) or (isinstance(site.layer, Slice) and site.layer.axis == 1):
        return rule.option
    return str(by_type.get(site.type, rule.option))


def _at(site: Site, finding: Finding) -> Finding:
    return replace(finding, layer=site.name, line=site.line, nodes=site.nodes)


def _net(net: Sites, rules: Mapping[str, Rule], file: str) -> Iterator[Finding]:
    for id in (id for id in rules if id in NET_RULES):
        for site, text in NET_RULES[id](rules[id], net):
            if rules[id].exempts(text, site.type if site else ""):
                continue
            finding = Finding.of(rules[id], text, file=file)
            yield finding if site is None else _at(site, finding)
    for name, line in net.unknown if "W23" in rules else ():
        yield Finding.of(rules["W23"], f"field {name} of the net", file=file, line=line)


def _cfg(net: Sites, rules: Mapping[str, Rule], file: str, cfg: Cfg) -> Iterator[Finding]:
    for id in (id for id in rules if id in CFG_RULES):
        for where, text in CFG_RULES[id](rules[id], net, cfg):
            if rules[id].exempts(text):
                continue
            if isinstance(where, Site):
                yield _at(where, Finding.of(rules[id], text, file=file))
            else:
                line = where.line if isinstance(where, Setting) else 0
                yield Finding.of(rules[id], text, file=str(cfg.path), line=line)
