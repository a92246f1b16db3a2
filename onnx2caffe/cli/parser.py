"""The command line's grammar. Imports nothing heavy: `--version` and `--help` must answer at once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from onnx2caffe import __version__
from onnx2caffe.errors import UsageError

__all__ = ["make_parser"]

_TARGETS = ("nnie", "caffe", "bvlc")
_DIALECTS = ("relay", "relax")
_CAFFE_RUNTIMES = ("builtin", "pycaffe")
_SOCS = ("hi3516cv500", "hi3516dv300", "hi3516av300", "hi3519av100", "hi3559av100", "hi3559v200")
_MACHINES = ("host (default)", *_SOCS, "armhf", "aarch64", "opencl", "mali", "c")
_SEVERITIES = ("refused", "wrong", "unproven", "slow")
_EXIT_CODES = (
    "exit codes: 0 fine; 1 numbers differ or a requirement fails; 2 wrong usage, an unreadable file, no room to write; "
    "3 the model cannot be converted or onnxruntime cannot run it; 4 a runtime or layer type is missing; "
    "130, 143 interrupted"
)


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"`{self.prog} --help` shows the arguments")


class _Pairs(argparse.Action):
    """Gathers (key, value) pairs in a dict; a key given twice would silently mean one of its values."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Add one pair."""
        assert isinstance(values, tuple)
        key, value = values
        known = getattr(namespace, self.dest)
        if key in known:
            raise argparse.ArgumentError(self, f"{key!r} is given twice")
        setattr(namespace, self.dest, {**known, key: value})


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, colon, dims = text.rpartition(":")
    try:
        shape = tuple(int(d) for d in dims.split(",")) if dims else ()
    except ValueError:
        shape = (0,)
    if not (name and colon) or any(d < 1 for d in shape):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:1,3,416,416 (the last colon separates)")
    return name, shape


def _pair(text: str) -> tuple[str, str]:
    left, sign, right = text.partition("=")
    if not (left and sign and right):
        raise argparse.ArgumentTypeError(f"{text!r} is not LEFT=RIGHT")
    return left, right


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, or one per channel separated by commas") from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a name has at least one character")
    return text


def make_parser() -> argparse.ArgumentParser:
    """The parser; a parsed command has its name in `command`."""
    parser = _Parser(
        prog="onnx2caffe",
        description="ONNX to Caffe, every export proved by numbers.",
        epilog=_EXIT_CODES,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"onnx2caffe {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    _convert(commands.add_parser("convert", help="write prototxt, caffemodel and map.json", allow_abbrev=False))
    _tvm(commands.add_parser("tvm", help="write a TVM module: Relay or Relax", allow_abbrev=False))
    _compare(commands.add_parser("compare", help="hold any Caffe net, or TVM, against a model", allow_abbrev=False))
    _check(commands.add_parser("check", help="hold a net against what the mapper takes", allow_abbrev=False))
    _setup(commands.add_parser("setup", help="make a runtime: pycaffe, relay, relax", allow_abbrev=False))
    _doctor(commands.add_parser("doctor", help="list the runtimes of this machine", allow_abbrev=False))
    _ops(commands.add_parser("ops", help="list ONNX ops and what they become", allow_abbrev=False))
    _inspect(commands.add_parser("inspect", help="look at a model: what would stop it?", allow_abbrev=False))
    _completion(commands.add_parser("completion", help="print a completion script", allow_abbrev=False))
    return parser


def _common(parser: argparse.ArgumentParser, json: bool = True) -> None:
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--debug", action="store_true", help="show Python's traceback with an error")


def _input_shapes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input-shape",
        action=_Pairs,
        default={},
        type=_shape,
        metavar="NAME:1,3,416,416",
        help="fix an input's shape; the last colon separates",
    )


def _test_inputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("inputs of the comparison (default: seeded structured noise)")
    group.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE|VALUE",
        help="a .npy, .png or .jpg file, or numbers; pixels become (pixel * SCALE - MEAN) / STD",
    )
    group.add_argument("--mean", type=_numbers, default=(0.0,), help="one number, or one per channel")
    group.add_argument("--std", type=_numbers, default=(1.0,), help="one number, or one per channel")
    group.add_argument("--scale", type=float, default=1.0, help="factor on the pixels, e.g. 0.00392157")
    group.add_argument("--rgb", action="store_true", help="pixels in the order R, G, B (default: B, G, R)")


def _caffe_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where the comparison runs")
    group.add_argument("--caffe-python", metavar="PATH", help="a Python that has `caffe`")
    group.add_argument("--no-caffe-run", action="store_true", help="compare in the builtin runtime only")


def _convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", metavar="MODEL", help="ONNX file(s)")
    parser.add_argument("-o", "--output-dir", metavar="DIR", help="default: a folder named after the model")
    parser.add_argument("--name", type=_name, help="of the written files (default: the model's)")
    parser.add_argument("--target", choices=_TARGETS, default="nnie", help="default: nnie")
    _input_shapes(parser)
    parser.add_argument(
        "--output", action="append", default=[], metavar="TENSOR", help="end the net at this tensor (may be repeated)"
    )
    parser.add_argument("--keep-bn", action="store_true", help="keep BatchNorm layers")
    parser.add_argument(
        "--strip-qdq", action="store_true", help="keep real numbers where the model quantises; map.json has the ranges"
    )
    parser.add_argument(
        "--recipe", action=_Pairs, default={}, type=_pair, metavar="KEY=VARIANT", help="see `onnx2caffe ops`"
    )
    parser.add_argument(
        "--bgr",
        action="append",
        default=[],
        metavar="INPUT",
        help="let the net take B, G, R of this R, G, B input (repeatable)",
    )
    _partition(parser)
    _mapper(parser)
    parser.add_argument("--no-proof", action="store_true", help="write the files without running them")
    parser.add_argument(
        "--save-intermediate", metavar="DIR", help="keep the model as read, after every pass, at the end"
    )
    parser.add_argument("--force", action="store_true", help="write beside files that no export put there")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every compared tensor")
    _test_inputs(parser)
    _caffe_run(parser)
    _common(parser)


def _partition(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what becomes Caffe, and what stays ONNX beside it")
    group.add_argument(
        "--partition",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="leave to ONNX what the target cannot have (default for nnie), or refuse it",
    )
    group.add_argument("--tail", choices=("auto", "none", "full"), default="", help="where the Caffe part ends")
    group.add_argument(
        "--cut", action="append", default=[], metavar="NAME", help="end it at this tensor, node or layer (repeatable)"
    )
    group.add_argument(
        "--rename", action=_Pairs, default={}, type=_pair, metavar="OLD=NEW", help="name an output's blob"
    )
    group.add_argument("--cpu-c", action="store_true", help="write what stays ONNX as C for the board too")
    group.add_argument("--require-segments", type=int, metavar="N", help="fail unless it becomes N Caffe nets")
    group.add_argument(
        "--min-nnie-macs", type=float, default=0.0, metavar="F", help="fail if a lesser share (0 … 1) of MACs is there"
    )


def _mapper(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("for nnie_mapper: a prototxt with marks beside the plain one")
    for option, what in (("cpu", "run it on the CPU"), ("report", "put it out"), ("hp", "compute it in 16 bits")):
        group.add_argument(
            f"--{option}", action="append", default=[], metavar="NAME", help=f"{what}: a tensor, node or layer"
        )
    group.add_argument("--single-wk", action="store_true", help="several nets as one prototxt too")
    group.add_argument("--rules", metavar="FILE", help="TOML that overrides or adds rules of what it takes")


def _tvm(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"docs/tvm.md goes from a model to a board; {_EXIT_CODES}"
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("-o", "--output-dir", metavar="DIR", help="default: a folder named after the model")
    parser.add_argument("--name", type=_name, help="of the written files (default: the model's)")
    parser.add_argument("--dialect", choices=_DIALECTS, default="relay", help="default: relay")
    parser.add_argument("--target", default="host", help=f"TVM's own words: 'llvm -mcpu=…', or {', '.join(_MACHINES)}")
    parser.add_argument(
        "--cc", default="", metavar="PATH", help="link the library for the target here, with this compiler"
    )
    _input_shapes(parser)
    parser.add_argument(
        "--output", action="append", default=[], metavar="TENSOR", help="end the module at this tensor (repeatable)"
    )
    parser.add_argument("--opt-level", type=int, choices=range(5), default=3, help="of the library; default: 3")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True, help="build a library")
    parser.add_argument(
        "--compare", action=argparse.BooleanOptionalAction, default=True, help="run it against the model first"
    )
    parser.add_argument(
        "--save-intermediate", metavar="DIR", help="keep the model as read, after every pass, at the end"
    )
    parser.add_argument("--force", action="store_true", help="write beside files that no export put there")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every compared tensor")
    _test_inputs(parser)
    _common(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("prototxt", nargs="?", metavar="NET.prototxt")
    parser.add_argument("caffemodel", nargs="?", metavar="NET.caffemodel")
    parser.add_argument(
        "--runtime",
        action="append",
        default=[],
        choices=(*_CAFFE_RUNTIMES, *_DIALECTS, "all"),
        help="run it there (repeatable); relay and relax need no NET; all: side by side, what is here",
    )
    parser.add_argument(
        "--map", action=_Pairs, default={}, type=_pair, metavar="BLOB=TENSOR", help="which blob is which tensor"
    )
    parser.add_argument("--runs", type=int, metavar="N", help="how many seeded inputs (default 3)")
    parser.add_argument(
        "--save-inputs",
        metavar="DIR",
        help="write what goes into each net: the mapper's calibration data ([image_type] 0)",
    )
    parser.add_argument("--all", action="store_true", help="go on after the first layer that differs")
    _input_shapes(parser)
    _test_inputs(parser)
    _caffe_run(parser)
    _common(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("net", nargs="?", metavar="NET.prototxt|MODEL.onnx", help="a model is converted in memory")
    parser.add_argument("--target", choices=_TARGETS, default="nnie", help="default: nnie")
    parser.add_argument("--soc", metavar="CHIP", help=f"one of {', '.join(_SOCS)}")
    parser.add_argument(
        "--cfg", metavar="FILE", help="the mapper's cfg, for the rules that need it; it may name the prototxt"
    )
    parser.add_argument("--rules", metavar="FILE", help="TOML that overrides or adds rules")
    parser.add_argument(
        "--fail-on", choices=_SEVERITIES, default="wrong", help="exit 1 at findings as bad as this; default: wrong"
    )
    parser.add_argument("--mapper-log", metavar="FILE", help="read what the mapper said, with or without its net")
    parser.add_argument(
        "--recipe", action=_Pairs, default={}, type=_pair, metavar="KEY=VARIANT", help="for MODEL.onnx; see `ops`"
    )
    parser.add_argument(
        "--partition",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="MODEL.onnx as `convert` would write it (default for nnie), or with nodes for the CPU as refused",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="name every layer of findings that say the same")
    _input_shapes(parser)
    _common(parser)


def _setup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runtimes", nargs="+", metavar="RUNTIME", help="pycaffe, relay, relax")
    parser.add_argument(
        "--apt", choices=("auto", "yes", "no"), default="auto", help="install missing Debian packages (auto: as root)"
    )
    parser.add_argument("--jobs", type=_positive, metavar="N", help="compilers at a time")
    parser.add_argument("--force", action="store_true", help="make it again")
    _common(parser, json=False)


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--caffe-python", metavar="PATH", help="a Python that has `caffe`")
    _common(parser)


def _ops(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="OP", help="an op or recipe; all if none is named")
    _common(parser)


def _inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("--target", choices=_TARGETS, default="nnie", help="default: nnie")
    _input_shapes(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="show the shape of every tensor")
    _common(parser)


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    _common(parser, json=False)
