"""The chips with an NNIE, and which mapper is theirs (nnie §10, §13, §18.12)."""

from __future__ import annotations

from dataclasses import dataclass

from onnx2caffe.errors import UsageError

__all__ = ["SOCS", "Soc", "soc_by_name"]

_SUCCESSORS = ("ss928", "ss927", "ss626", "sd3403", "hi3403")
"""Beginnings of the names of chips whose tool (ATC) takes ONNX."""


@dataclass(frozen=True)
class Soc:
    """A chip: its NNIE's version and cores, its mapper, the ABI of its SDK's libraries."""

    nnie: str
    mapper: str
    cores: int
    abi: str

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' * (self.cores > 1)}"
        return f"NNIE {self.nnie}, {cores}; {self.mapper} alone makes its .wk; libraries are {self.abi}"


_HIMIX200 = "arm-himix200, softfp"

SOCS = {
    "hi3516cv500": Soc("1.2", "nnie_mapper_12", 1, _HIMIX200),
    "hi3516dv300": Soc("1.2", "nnie_mapper_12", 1, _HIMIX200),
    "hi3516av300": Soc("1.2", "nnie_mapper_12", 1, _HIMIX200),
    "hi3519av100": Soc("1.2", "nnie_mapper_12", 1, _HIMIX200),
    "hi3559av100": Soc("1.1", "nnie_mapper_11", 2, "aarch64-himix100"),
    "hi3559v200": Soc("1.2", "nnie_mapper_12", 1, "arm-himix100, softfp"),
}


def soc_by_name(name: str) -> Soc:
    """The chip of this name.

    Raises:
        UsageError: it has no NNIE.

    """
    plain = name.lower().replace("-", "")
    if plain in SOCS:
        return SOCS[plain]
    if plain.startswith(_SUCCESSORS):
        raise UsageError(f"{name} has no NNIE of version 1.1 or 1.2", "its tool, ATC, takes ONNX files directly")
    raise UsageError(f"no chip {name!r}", f"known: {', '.join(SOCS)}")
