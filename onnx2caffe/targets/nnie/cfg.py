"""The mapper's cfg file: lines `[key] value`, and the rules that need it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PureWindowsPath

from onnx2caffe.caffe.site import Site, Sites
from onnx2caffe.errors import UnreadableFile
from onnx2caffe.targets.nnie.rules import Rule
from onnx2caffe.textfile import read_text

__all__ = ["CFG_RULES", "Cfg", "CfgRule", "Setting", "parse_cfg", "read_cfg"]

_LINE = re.compile(r"\s*\[\s*(\w+)\s*\]\s*([^#]*?)\s*(?:#.*)?")


@dataclass(frozen=True)
class Setting:
    """One line of a cfg."""

    key: str
    value: str
    line: int


@dataclass(frozen=True)
class Cfg:
    """A cfg file; keys may come several times, one block per input.

    `net`: the prototxt it is checked with, if known; `means`: input blob of that -> what a head subtracts before it.
    """

    path: Path
    settings: tuple[Setting, ...]
    net: Path | None = None
    means: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def all(self, key: str) -> list[Setting]:
        """The settings of a key, in order."""
        return [s for s in self.settings if s.key == key]

    def value(self, key: str, default: str) -> str:
        """The last value of a key."""
        return next((s.value for s in reversed(self.settings) if s.key == key), default)

    def files(self, name: str) -> list[Path]:
        """What a file name may mean: the mapper takes it from where it runs, which is often the cfg's folder."""
        return [path for path in (self.path.parent / name, Path(name)) if _is_there(path)]


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def read_cfg(path: Path, net: Path | None = None, means: Mapping[str, Sequence[float]] | None = None) -> Cfg:
    """Read a cfg; `net`: the prototxt it is checked with; `means`: see `Cfg`.

    Raises:
        UnreadableFile: it cannot be read, or a line is neither a setting, a comment nor blank.

    """
    return replace(parse_cfg(read_text(path, errors="replace"), path, net), means=means or {})


def parse_cfg(text: str, path: Path = Path("cfg"), net: Path | None = None) -> Cfg:
    """The settings of a cfg's text."""
    settings = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip("\ufeff \t").startswith("#"):
            continue
        match = _LINE.fullmatch(line.lstrip("\ufeff"))
        if match is None:
            raise UnreadableFile(f"{path}, line {number}: {line.strip()!r} is not `[key] value`")
        settings.append(Setting(match[1], match[2], number))
    return Cfg(path, tuple(settings), net)


Seen = Iterator[tuple[Setting | Site | None, str]]
CfgRule = Callable[[Rule, Sites, Cfg], Seen]
CFG_RULES: dict[str, CfgRule] = {}
"""Rule id -> what is wrong: in which line of the cfg or at which layer (None: the cfg as a whole)."""


def _cfg_rule(id: str) -> Callable[[CfgRule], CfgRule]:
    def put(function: CfgRule) -> CfgRule:
        CFG_RULES[id] = function
        return function

    return put


@_cfg_rule("E07")
def _high_precision(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    mode = cfg.value("compile_mode", "0")
    if mode != str(rule.when["compile_mode"]):
        for site in net:
            if site.name.endswith(rule.when["suffix"]):
                yield site, f"compile_mode is {mode}"


@_cfg_rule("E10")
def _pictures(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    when = rule.when
    low, high = when["size"]
    for (blob, _), setting in zip(net.inputs, cfg.all("image_type"), strict=False):
        shape, kind = net.shapes.get(blob, ()), setting.value
        if kind not in when["channels"]:
            continue
        if len(shape) != 4:
            yield setting, f"image_type {kind}: {blob!r} has {len(shape)} axes"
            continue
        _, channels, height, width = shape
        if channels not in when["channels"][kind]:
            yield setting, f"image_type {kind}: {blob!r} has {channels} channels"
        for what, size in (("height", height), ("width", width)):
            if not low <= size <= high:
                yield setting, f"image_type {kind}: {what} {size} of {blob!r} is not in {low} … {high}"
            if size % 2 and int(kind) in when[f"even_{what}"]:
                yield setting, f"image_type {kind}: {what} {size} of {blob!r} is odd"


@_cfg_rule("E11")
def _ranges(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    when = rule.when
    present = {setting.key for setting in cfg.settings}
    for key in when["required"]:
        if key not in present:
            yield None, f"[{key}] is missing"
    for setting in cfg.settings:
        if setting.key in when["choices"] and setting.value not in map(str, when["choices"][setting.key]):
            known = ", ".join(map(str, when["choices"][setting.key]))
            yield setting, f"[{setting.key}] {setting.value} is not one of {known}"
        if setting.key in when["ranges"] and not _within(setting.value, *when["ranges"][setting.key]):
            low, high = when["ranges"][setting.key]
            yield setting, f"[{setting.key}] {setting.value} is not in {low} … {high}"
        if setting.key == "instruction_name" and len(setting.value) >= when["name_length"]:
            yield setting, f"[instruction_name] has {len(setting.value)} characters, {when['name_length']} are too many"
    for kind, norm in zip(cfg.all("image_type"), cfg.all("norm_type"), strict=False):
        if kind.value == "0" and norm.value != str(when["free_norm"]):
            yield norm, f"[norm_type] {norm.value} with [image_type] 0"
    means = [setting.value for setting in cfg.all("mean_file")]
    for block, norm in enumerate(cfg.all("norm_type")):
        if norm.value in map(str, when["mean_norms"]) and means[block : block + 1] in ([], ["null"]):
            yield norm, f"[norm_type] {norm.value} needs a [mean_file]"
    for key in when["blocks"]:
        if key in present and len(cfg.all(key)) != len(net.inputs):
            yield None, f"{len(cfg.all(key))} [{key}] for {len(net.inputs)} inputs"


@_cfg_rule("E16")
def _net_type(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    wanted = rule.when["net_types"]
    needed = {site.type: wanted[site.type] for site in net if site.type in wanted}
    given = cfg.value("net_type", "0")
    setting = next(iter(cfg.all("net_type")), None)
    for type, kind in needed.items():
        if given != str(kind):
            yield setting, f"[net_type] {given} with {type}, which needs {kind}"
    if not needed and given in {"1", "2"}:
        yield setting, f"[net_type] {given} without such a layer"


@_cfg_rule("W17")
def _numbers(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    when = rule.when
    scaled = any(s.value in map(str, when["scaled"]) for s in cfg.all("norm_type"))
    for setting in cfg.all("data_scale") if scaled else ():
        value = _number(setting.value) or 0
        for meant, tolerance in when["scales"]:
            if when["rounding"] < abs(value / meant - 1) < tolerance:
                yield setting, f"[data_scale] {setting.value} is {abs(value / meant - 1):.2%} beside {meant}"
    if any(s.value == "1" for s in cfg.all("image_type")):
        for setting in cfg.all("RGB_order"):
            if setting.value == when["careful_order"]:
                yield setting, "[RGB_order] RGB: sources disagree on who swaps the planes of U8 pictures"


@_cfg_rule("W23")
def _unknown_keys(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    for setting in cfg.settings:
        if setting.key not in rule.when["cfg_keys"]:
            yield setting, f"key [{setting.key}]"


@_cfg_rule("W27")
def _missing(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    when = rule.when
    named = [setting for key in when["files"] for setting in cfg.all(key)]
    for mean, norm in zip(cfg.all("mean_file"), cfg.all("norm_type"), strict=False):
        named += [mean] if norm.value in map(str, when["mean_norms"]) else []
    for setting in sorted(named, key=lambda setting: setting.line):
        if not cfg.files(setting.value):
            yield setting, f"[{setting.key}] {setting.value}: no such file"


@_cfg_rule("W28")
def _other_net(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    if cfg.net is None:
        return
    for setting in cfg.all("prototxt_file"):
        meant = cfg.files(setting.value)
        same = [path.samefile(cfg.net) for path in meant] or [PureWindowsPath(setting.value).name == cfg.net.name]
        if not any(same):
            yield setting, f"[prototxt_file] {setting.value} is not {cfg.net}"


@_cfg_rule("W29")
def _other_mean(rule: Rule, net: Sites, cfg: Cfg) -> Seen:
    when = rule.when
    kinds, norms, files = (cfg.all(key) for key in ("image_type", "norm_type", "mean_file"))
    for number, ((blob, _), kind, norm) in enumerate(zip(net.inputs, kinds, norms, strict=False)):
        mean = cfg.means.get(blob)
        if mean is None or kind.value == "0":
            continue
        wanted = ", ".join(f"{each:.6g}" for each in mean)
        if norm.value in map(str, when["without"]):
            yield norm, f"[norm_type] {norm.value} subtracts nothing; the head before {blob!r} subtracts {wanted}"
        if norm.value in map(str, when["files"]) and (found := files[number : number + 1]):
            scale = _scale(cfg, str(when["default_scale"])) if norm.value in map(str, when["scaled"]) else 1.0
            given = [each * scale for each in _mean_of(cfg, found[0].value)]
            if given and not _are_near(given, mean, when["tolerance"]):
                each = ", ".join(f"{number:.6g}" for number in given)
                scaled = " times [data_scale]" if norm.value in map(str, when["scaled"]) else ""
                yield found[0], f"[mean_file]{scaled} is {each}; the head before {blob!r} subtracts {wanted}"


def _scale(cfg: Cfg, default: str) -> float:
    return _number(cfg.value("data_scale", default)) or 1.0


def _mean_of(cfg: Cfg, name: str) -> list[float]:
    """The numbers in a mean file, one per line; none where it is not there or holds something else."""
    for path in cfg.files(name):
        numbers = [_number(word) for word in read_text(path, errors="replace").split()]
        return [number for number in numbers if number is not None]
    return []


def _are_near(given: Sequence[float], wanted: Sequence[float], tolerance: float) -> bool:
    return len(given) == len(wanted) and all(map(partial(math.isclose, rel_tol=tolerance), given, wanted))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _within(text: str, low: float, high: float) -> bool:
    number = _number(text)
    return number is not None and low <= number <= high
