"""Diagnostics: what a language server has against a file, and the lines that a model reads of it.

Errors alone are told: a model that is shown warnings with every edit works on warnings. Asking a
server and waiting for it is not done here (location.workspace.language_server).

Invariant: whatever a server publishes, reading it never fails, and each diagnostic is one line of a
bounded length.
"""

import posixpath
from typing import Annotated, Final, Literal
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Meta

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.value import Value

_ERROR: Final = 1
_PLAIN: Final = "plaintext"
_LANGUAGES: Final = {
    ".c": "c",
    ".cc": "cpp",
    ".cjs": "javascript",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".cts": "typescript",
    ".ex": "elixir",
    ".exs": "elixir",
    ".h": "c",
    ".hpp": "cpp",
    ".hs": "haskell",
    ".js": "javascript",
    ".jsx": "javascriptreact",
    ".kt": "kotlin",
    ".md": "markdown",
    ".mjs": "javascript",
    ".ml": "ocaml",
    ".mts": "typescript",
    ".pl": "perl",
    ".py": "python",
    ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "shellscript",
    ".tf": "terraform",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".yml": "yaml",
}
"""Names that are not the extension itself."""


class Diagnostic(Value, kw_only=True):
    line: int
    """From 1, as editors count."""
    column: int
    message: str
    origin: str = ""
    """Who says so and under which code, as far as the server tells."""

    def told(self, where: str) -> str:
        words = " ".join(self.message.split())
        origin = f" [{self.origin}]" if self.origin else ""
        line = f"{where}:{self.line}:{self.column}: error: {words}{origin}"
        return line[: limits.DIAGNOSTICS_LINE_CHARS_MAX]


class Published(Value):
    """The errors of one file, as a server sees them now."""

    path: str
    version: int | None
    """Of the text that was looked at; None if the server does not say."""
    errors: tuple[Diagnostic, ...]


def parse_published(params: JsonValue) -> Published | None:
    """What a server published; None for what names no file."""
    try:
        said = codec.convert(_Publish, params)
    except msgspec.ValidationError:
        return None
    path = path_of(said.uri)
    if path is None:
        return None
    items: JsonValue = said.diagnostics
    listed = items[: limits.LSP_DIAGNOSTICS_READ_MAX] if jsonc.is_list(items) else []
    found = (_error(item) for item in listed)
    return Published(path, said.version, tuple(sorted(filter(None, found), key=_position)))


def uri_of(path: str) -> str:
    """The address of a file; a name need not be text."""
    return "file://" + quote(path.encode("utf-8", "surrogateescape"))


def path_of(uri: str) -> str | None:
    """The path of a file's address, however it is escaped."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    return posixpath.normpath(unquote(parts.path, errors="surrogateescape"))


def language_of(path: str) -> str:
    """What language servers call the language of a file with that name."""
    extension = posixpath.splitext(path)[1].lower()
    return _LANGUAGES.get(extension) or extension[1:] or _PLAIN


Count = Annotated[int, Meta(ge=0)]


class _Publish(Value):
    uri: str
    diagnostics: JsonValue
    version: int | None = None


class _Position(Value):
    line: Count
    character: Count


class _Range(Value):
    start: _Position


class _Diagnostic(Value):
    range: _Range
    message: str
    severity: Literal[1, 2, 3, 4] | None = None
    source: str | None = None
    code: int | str | None = None


def _error(item: JsonValue) -> Diagnostic | None:
    try:
        said = codec.convert(_Diagnostic, item)
    except msgspec.ValidationError:
        return None
    # Whoever does not say how bad it is means that it is an error.
    if said.severity not in {None, _ERROR}:
        return None
    at = said.range.start
    words = (said.source, None if said.code is None else str(said.code))
    return Diagnostic(
        line=at.line + 1,
        column=at.character + 1,
        message=said.message[: limits.DIAGNOSTICS_LINE_CHARS_MAX],
        origin=" ".join(" ".join(word.split()) for word in words if word),
    )


def _position(error: Diagnostic) -> tuple[int, int]:
    return error.line, error.column
