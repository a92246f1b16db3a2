"""Where the mapper cuts a net: after every layer that runs on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx2caffe.caffe.site import Site, Sites

__all__ = ["CPU", "HP", "MARKS", "REPORT", "Segment", "segments"]

CPU = "_cpu"
"""Ends the name of a layer that the user runs himself."""
REPORT = "_report"
"""Ends the name of a top that shall be put out."""
HP = "_hp"
"""Ends the name of a layer that computes in 16 bits (compile_mode 2)."""
MARKS = (CPU, HP, REPORT)

_ENDS = frozenset({"Custom", "Proposal"})


@dataclass
class Segment:
    """One piece of a net that runs on the NNIE: its layers and the blobs it takes and gives, in order."""

    layers: list[Site] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def segments(net: Sites) -> list[Segment]:
    """The segments in order; Custom, Proposal and layers marked `_cpu` end one."""
    level: dict[str, int] = {}
    found: dict[int, Segment] = {}
    for site in net:
        own = max((level.get(blob, 0) for blob in site.bottoms), default=0)
        cut = _is_cut(site)
        level.update(dict.fromkeys(site.tops, own + cut))
        if not cut and site.type != "Input":
            found.setdefault(own, Segment()).layers.append(site)
    for segment in found.values():
        _border(segment, net)
    return [found[key] for key in sorted(found)]


def _is_cut(site: Site) -> bool:
    return site.type in _ENDS or site.name.endswith(CPU)


def _border(segment: Segment, net: Sites) -> None:
    inside = {id(site) for site in segment.layers}
    made = dict.fromkeys(top for site in segment.layers for top in site.tops)
    read_inside = dict.fromkeys(blob for site in segment.layers for blob in site.bottoms)
    read_outside = {blob for site in net if id(site) not in inside for blob in site.bottoms}
    read = {blob for site in net for blob in site.bottoms if blob not in site.tops}
    segment.inputs += [blob for blob in read_inside if blob not in made]
    segment.outputs += [b for b in made if b not in read or b in read_outside or b.endswith(REPORT)]
