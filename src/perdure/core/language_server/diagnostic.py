"""Diagnostics: errors that a language server reports for a file, and their text for the model.

Only errors are reported, because a model that sees warnings with every edit works on warnings.
Asking a server and waiting for it is location.workspace.language_server.

Invariant: reading never fails, whatever a server publishes, and each diagnostic is one line of
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
"""Language ids that differ from the extension."""


class Diagnostic(Value, kw_only=True):
    line: int
    """Counted from 1."""
    column: int
    message: str
    origin: str = ""
    """Source and code, if the server names them."""

    def render(self, where: str) -> str:
        words = " ".join(self.message.split())
        origin = f" [{self.origin}]" if self.origin else ""
        line = f"{where}:{self.line}:{self.column}: error: {words}{origin}"
        return line[: limits.DIAGNOSTICS_LINE_CHARS_MAX]


class Published(Value):
    """The current errors of one file."""

    path: str
    version: int | None
    """Version of the checked text; None if the server does not say."""
    errors: tuple[Diagnostic, ...]


def parse_published(params: JsonValue) -> Published | None:
    """Parse published diagnostics; None if they are not for a file."""
    try:
        decoded = codec.convert(_Publish, params)
    except msgspec.ValidationError:
        return None
    path = path_of(decoded.uri)
    if path is None:
        return None
    items: JsonValue = decoded.diagnostics
    listed = items[: limits.LSP_DIAGNOSTICS_READ_MAX] if jsonc.is_list(items) else []
    found = (_error(item) for item in listed)
    return Published(path, decoded.version, tuple(sorted(filter(None, found), key=_position)))


def uri_of(path: str) -> str:
    """The URI of a file; its name need not be valid UTF-8."""
    return "file://" + quote(path.encode("utf-8", "surrogateescape"))


def path_of(uri: str) -> str | None:
    """The path of a file URI; None if it is not one."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    return posixpath.normpath(unquote(parts.path, errors="surrogateescape"))


def language_of(path: str) -> str:
    """The LSP language id of a file."""
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
        decoded = codec.convert(_Diagnostic, item)
    except msgspec.ValidationError:
        return None
    # A diagnostic without a severity counts as an error.
    if decoded.severity not in {None, _ERROR}:
        return None
    at = decoded.range.start
    words = (decoded.source, None if decoded.code is None else str(decoded.code))
    return Diagnostic(
        line=at.line + 1,
        column=at.character + 1,
        message=decoded.message[: limits.DIAGNOSTICS_LINE_CHARS_MAX],
        origin=" ".join(" ".join(word.split()) for word in words if word),
    )


def _position(error: Diagnostic) -> tuple[int, int]:
    return error.line, error.column
