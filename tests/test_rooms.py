"""Which room may import which: the table of docs/architecture.md, held by this test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "onnx2caffe"
EVERYWHERE = {"canon", "errors", "filekind", "nodeview", "ranges", "textfile", "__version__"}
MAY_IMPORT = {
    "__init__": {"api"},
    "__main__": {"cli"},
    "cli": {"api", "operators", "runtimes", "verify"},
    "api": {
        "checking",
        "comparison",
        "driver",
        "inventory",
        "operators",
        "runtimes",
        "targets",
        "tvm_driver",
        "verify",
    },
    "comparison": {"caffe", "export", "mapfile", "programs", "runtimes", "stages", "verify"},
    "checking": {
        "assembly",
        "caffe",
        "caffe.lower",
        "export",
        "frontend",
        "mapfile",
        "partition",
        "passes",
        "stages",
        "targets",
    },
    "inventory": {"assembly", "caffe.lower", "frontend", "partition", "passes", "stages", "targets"},
    "operators": set(),
    "cpu_parts": {"ccode", "mapfile", "stages", "tvm_driver", "verify"},
    "driver": {
        "assembly",
        "cpu_parts",
        "caffe",
        "caffe.lower",
        "export",
        "frontend",
        "mapfile",
        "partition",
        "passes",
        "runtimes",
        "stages",
        "targets",
        "verify",
    },
    "ccode": {"frontend", "runtimes", "stages", "tvm", "verify"},
    "programs": {"frontend", "passes", "runtimes", "stages", "tvm", "verify"},
    "tvm_driver": {"ccode", "export", "frontend", "mapfile", "programs", "runtimes", "stages", "tvm", "verify"},
    "stages": {"frontend", "runtimes", "verify"},
    "tvm": {"decompose", "frontend"},
    "assembly": {"caffe", "caffe.lower", "frontend", "mapfile", "partition", "targets"},
    "partition": {"caffe", "caffe.layers", "caffe.lower", "passes", "targets"},
    "export": {"mapfile", "tvm"},
    "mapfile": {"caffe"},
    "verify": {"caffe", "mapfile", "passes", "runtimes"},
    "runtimes": {"caffe", "caffe.layers", "targets"},
    "targets": {"caffe", "caffe.layers"},
    "caffe.lower": {"caffe", "caffe.layers", "decompose", "frontend"},
    "caffe": {"caffe.layers"},
    "caffe.layers": {"caffe"},
    "passes": {"decompose", "frontend"},
    "decompose": {"frontend"},
    "frontend": set(),
    "nodeview": set(),
    "ranges": set(),
    "canon": set(),
    "errors": set(),
    "filekind": set(),
    "textfile": set(),
}


def room(module: str) -> str:
    """The room of a dotted module name."""
    parts = module.split(".")
    if len(parts) > 2 and parts[1] == "caffe" and parts[2] in ("layers", "lower"):
        return f"caffe.{parts[2]}"
    return parts[1] if len(parts) > 1 else "__init__"


def imports(source: str) -> Iterator[str]:
    """The modules of this package that a source imports, wherever it does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            shallow = node.module in ("onnx2caffe", "onnx2caffe.caffe")
            yield from (f"{node.module}.{a.name}" for a in node.names) if shallow else [node.module]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_stay_in_the_table(path: Path) -> None:
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    own = room(module)
    used = {room(name) for name in imports(path.read_text()) if name.split(".")[0] == "onnx2caffe"}
    assert used - EVERYWHERE - {own} <= MAY_IMPORT[own]


def test_every_room_is_in_the_table() -> None:
    rooms = {room(f"onnx2caffe.{p.stem if p.is_file() else p.name}") for p in PACKAGE.iterdir() if _is_code(p)}
    assert rooms <= set(MAY_IMPORT)


def _is_code(path: Path) -> bool:
    return path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
