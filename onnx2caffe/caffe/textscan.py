"""Protobuf's text format as a tree with line numbers: what protobuf's own parser does not tell.

No schema is needed: unknown fields are entries like all others. https://protobuf.dev/reference/protobuf/textformat-spec
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from onnx2caffe.errors import UnreadableFile

__all__ = ["Entry", "scan"]

_TOKEN = re.compile(
    r"""(?P<blank>[\s,;]+|\#[^\n]*)
    | (?P<name>[A-Za-z_]\w*|\[[A-Za-z_][\w./]*\](?=\s*[:{<]))
    | (?P<mark>[:{}<>\[\]])
    | (?P<value>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[-+]?[\w.]+(?:[-+]\d+)?)""",
    re.VERBOSE,
)
_CLOSING = {"{": "}", "<": ">"}
_DEEPEST = 64


@dataclass(frozen=True)
class Entry:
    """A field: its name, its line (from 1), where its text and its body lie, and the entries of a message."""

    name: str
    line: int
    start: int
    end: int
    body: tuple[int, int] = (0, 0)
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int
    line: int


def scan(text: str) -> tuple[Entry, ...]:
    """The fields of a message.

    Raises:
        UnreadableFile: not in text format; says the line.

    """
    return _Scanner(text).message("", 0)


class _Scanner:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def message(self, closing: str, depth: int) -> tuple[Entry, ...]:
        """Fields up to the closing mark, which is left standing."""
        entries = []
        while self._token.text != closing:
            if self._token.kind != "name" or depth > _DEEPEST:
                raise self._error("a field's name")
            entries.append(self._field(depth))
        return tuple(entries)

    def _field(self, depth: int) -> Entry:
        name = self._next()
        colon = self._skip(":")
        if self._token.text in _CLOSING:
            return self._body(name, depth)
        if not colon:
            raise self._error("':' or '{'")
        if self._skip("["):
            return self._list(name, depth)
        return Entry(name.text, name.line, name.start, self._scalar())

    def _body(self, name: _Token, depth: int) -> Entry:
        opening = self._next()
        entries = self.message(_CLOSING[opening.text], depth + 1)
        closing = self._next()
        return Entry(name.text, name.line, name.start, closing.end, (opening.end, closing.start), entries)

    def _list(self, name: _Token, depth: int) -> Entry:
        entries: list[Entry] = []
        while not self._skip("]"):
            if self._token.text in _CLOSING:
                entries += self._body(self._token, depth).entries
            else:
                self._scalar()
        return Entry(name.text, name.line, name.start, self._tokens[self._at - 1].end, entries=tuple(entries))

    def _scalar(self) -> int:
        """Skip a value (neighbouring strings are one); where it ends."""
        if self._token.kind not in {"name", "value"}:
            raise self._error("a value")
        token = self._next()
        while token.text[0] in "\"'" and self._token.text[:1] in {'"', "'"}:
            token = self._next()
        return token.end

    @property
    def _token(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._token
        self._at += 1
        return token

    def _skip(self, text: str) -> bool:
        found = self._token.text == text
        self._at += found
        return found

    def _error(self, wanted: str) -> UnreadableFile:
        found = repr(self._token.text) if self._token.text else "the end of the file"
        return UnreadableFile(f"line {self._token.line}: {wanted} expected, not {found}")


def _tokens(text: str) -> Iterator[_Token]:
    """The tokens, the last one empty."""
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnreadableFile(f"line {line}: {text[at]!r} has no meaning here")
        kind = match.lastgroup or ""
        if kind != "blank":
            yield _Token(kind, match.group(), at, match.end(), line)
        line += match.group().count("\n")
        at = match.end()
    yield _Token("end", "", at, at, line)
