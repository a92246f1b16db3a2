"""Completion scripts for shells, made from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from onnx2caffe.cli.parser import make_parser

__all__ = ["script"]

_BASH = """_onnx2caffe() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    case "$word" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$word")) ;; esac
}}
complete -o filenames -F _onnx2caffe onnx2caffe"""


def script(shell: str) -> str:
    """The completion script for "bash", "zsh" or "fish"."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _commands() -> Mapping[str, argparse.ArgumentParser]:
    (subparsers,) = (a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    choices: Mapping[str, argparse.ArgumentParser] = subparsers.choices
    return choices


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """(long option, its help) pairs."""
    for action in parser._actions:
        for option in action.option_strings:
            if option.startswith("--"):
                yield option, action.help or ""


def _values(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The fixed words that a parser's arguments may be."""
    for action in parser._actions:
        yield from map(str, action.choices or ())


def _bash() -> str:
    cases = "\n".join(
        f'            {name}) words="{" ".join([*(o for o, _ in _options(parser)), *_values(parser)])}" ;;'
        for name, parser in _commands().items()
    )
    return _BASH.format(commands=" ".join(_commands()), cases=cases)


def _zsh() -> str:
    return f"#compdef onnx2caffe\nautoload -U +X bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    lines = [f"complete -c onnx2caffe -n __fish_use_subcommand -f -a '{' '.join(_commands())}'"]
    for name, parser in _commands().items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for option, help in _options(parser):
            described = help.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"complete -c onnx2caffe {seen} -l {option[2:]} -d '{described}'")
        if words := " ".join(_values(parser)):
            lines.append(f"complete -c onnx2caffe {seen} -a '{words}'")
    return "\n".join(lines)
