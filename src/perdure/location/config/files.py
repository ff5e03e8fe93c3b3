"""Configuration documents on disk, read again only when they changed.

A document also counts as changed when a file that one of its placeholders includes changed.
core.config_file.substitution decides where placeholders may be; this module resolves them. A file
that a project's document includes must be below the directory it configures, by its real path.

Invariant: a file that cannot be used is left out as a whole and reported, never half applied, and
the content of an included file leaves this module only inside its document. While a file cannot be
looked at, the document is as it was last read.
"""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Final

from msgspec import structs

from perdure.core import limits
from perdure.core.config_file import problem as config_problem
from perdure.core.config_file.problem import Problem
from perdure.core.config_file.substitution import Placeholder, Trust, Unresolved
from perdure.core.files.paths import is_within
from perdure.core.settings import document as config_document
from perdure.core.settings.document import Document
from perdure.core.text import jsonc
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.host.files.cached_files import FileTooLargeError, Signature
from perdure.schema.value import Value

DIRECTORY_NAME: Final = ".opencode"
"""Name of the config directory, which any directory of a project may have."""

_ABSENT_KEPT_MAX: Final = 4_096
_NEVER_CHANGES: Final[Signature] = (0, 0, 0)
_TIMEZONE: Final = ("experimental", "timezone")


class DocumentFiles:
    """The documents of one owner. Getting an unchanged one costs a stat."""

    def __init__(self, environment: Environment, trust: Trust, *, managed: bool = False) -> None:
        self._environment = environment
        self._trust: Trust = trust
        self._is_managed = managed
        self._kept: dict[str, _Kept] = {}
        self._absent: set[str] = set()
        """Paths where no file was at the last look."""

    def get(self, path: str) -> Document | None:
        """The document at `path`; None when there is no such file."""
        try:
            signature = cached_files.signature(path)
            if signature is None:
                self._kept.pop(path, None)
                if len(self._absent) >= _ABSENT_KEPT_MAX:
                    self._absent.clear()
                self._absent.add(path)
                return None
            self._absent.discard(path)
            return self._load(path, signature, os.path.dirname(path), partial(_read, path))
        except OSError as error:
            return self._last_known(path, error)

    def inline(self, name: str, data: bytes, *, directory: str) -> Document:
        """The document in a variable, which never changes; only the files it includes may."""
        key = f"{name} for {directory}"
        try:
            document = self._load(key, _NEVER_CHANGES, directory, partial(_decode, name, data))
        except OSError as error:
            return self._last_known(key, error)
        return document or Document(path=name, trust=self._trust)

    def _load(
        self, key: str, signature: Signature, directory: str, read: "_Read"
    ) -> Document | None:
        """The document as it is now. Raises OSError if it or a file it includes is unreadable."""
        kept = self._kept.get(key)
        if kept is not None and kept.is_current(signature):
            return kept.document
        placeholders = Placeholders(directory, self._trust, self._environment)
        document = read(self._trust, placeholders)
        if document is not None and self._is_managed:
            document = structs.replace(document, managed=True)
        if document is not None and placeholders.failed is not None:
            if kept is not None:
                raise placeholders.failed
            return structs.replace(document, unread=True)
        if document is not None:
            included = tuple(placeholders.included.items())
            self._kept[key] = _Kept(signature, document, included)
        return document

    def _last_known(self, key: str, error: OSError) -> Document:
        """The document as it was last read, marked as unread: it may have changed since."""
        reason = error.strerror or str(error)
        kept = self._kept.get(key)
        if kept is None:
            problem = Problem(key, f"cannot be read and is ignored: {reason}")
            return Document(
                path=key,
                trust=self._trust,
                managed=self._is_managed,
                problems=(problem,),
                unread=True,
                never_read=key not in self._absent,
            )
        problem = Problem(key, f"cannot be read and counts as it was last read: {reason}")
        problems = (*kept.document.problems, problem)
        return structs.replace(kept.document, problems=problems, unread=True)


class Placeholders:
    """Resolves the placeholders of one document. A core.config_file.substitution.Resolve."""

    def __init__(self, directory: str, trust: Trust, environment: Environment) -> None:
        self.directory = directory
        self._environment = environment
        self._tree = None if trust == "user" else project_directory(directory)
        self._found: dict[str, str | Unresolved] = {}
        self.included: dict[str, Signature | None] = {}
        """Signatures of the files that placeholders name; None for a missing file."""
        self.failed: OSError | None = None
        """Why a file that a placeholder names cannot be looked at."""

    def __call__(self, placeholder: Placeholder) -> str | Unresolved:
        name = placeholder.name
        if placeholder.kind == "env":
            return self._environment.variables.get(name, "")
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._file(name)
        return found

    def _file(self, name: str) -> str | Unresolved:
        below_home = name.startswith("~/")
        path = os.path.join(
            self._environment.home if below_home else self.directory,
            name[2:] if below_home else name,
        )
        try:
            real = os.path.realpath(path)
        except ValueError:
            return Unresolved("is not a path")
        try:
            self.included[path] = cached_files.signature(path)
            if self._tree is not None and not is_within(real, self._tree):
                return Unresolved("lies outside of the project's directory")
            return _content(real)
        except FileTooLargeError:
            return Unresolved(f"is larger than {limits.CONFIG_FILE_BYTES_MAX} bytes")
        except OSError as error:
            self.failed = error
            return Unresolved(f"cannot be read: {error.strerror or 'it failed'}")


def project_directory(config_directory: str) -> str:
    """The real path of the directory that documents in `config_directory` configure."""
    parent, name = os.path.split(config_directory)
    return os.path.realpath(parent if name == DIRECTORY_NAME else config_directory)


class _Kept(Value):
    signature: Signature
    document: Document
    included: tuple[tuple[str, Signature | None], ...]

    def is_current(self, signature: Signature) -> bool:
        same = (cached_files.signature(path) == before for path, before in self.included)
        return self.signature == signature and all(same)


_Read = Callable[[Trust, Placeholders], Document | None]


def _read(path: str, trust: Trust, placeholders: Placeholders) -> Document | None:
    """Read a document; None when there is no such file. Raises OSError."""
    try:
        data = cached_files.read(path, bytes_max=limits.CONFIG_FILE_BYTES_MAX)
    except FileTooLargeError as error:
        problem = Problem(path, f"cannot be read and is ignored: {error}")
        return Document(path=path, trust=trust, problems=(problem,))
    return None if data is None else _decode(path, data, trust, placeholders)


def _decode(path: str, data: bytes, trust: Trust, placeholders: Placeholders) -> Document:
    """Decode a document. Raises OSError."""
    try:
        value = jsonc.decode(data)
    except jsonc.JsoncError as error:
        message = f"is not JSON and is ignored: {error.message}"
        problem = Problem(path, message, line=error.line, column=error.column)
        return Document(path=path, trust=trust, problems=(problem,))
    document = config_document.read(
        path, trust, value, directory=placeholders.directory, text=data, resolve=placeholders
    )
    return _with_known_timezone(document)


def _content(path: str) -> str | Unresolved:
    """The text of an included file. Raises OSError."""
    data = cached_files.read(path, bytes_max=limits.CONFIG_FILE_BYTES_MAX)
    if data is None:
        return Unresolved("is not a file")
    try:
        return data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return Unresolved("is not UTF-8 text")


def _with_known_timezone(document: Document) -> Document:
    if document.timezone is None or _is_timezone(document.timezone):
        return document
    message = (
        f"`{config_problem.format_address(_TIMEZONE)}` is ignored: this machine knows no such zone"
    )
    found = config_problem.with_positions(
        [Problem(document.path, message, at=_TIMEZONE)], document.text
    )
    return structs.replace(document, timezone=None, problems=(*document.problems, *found))


def _is_timezone(name: str) -> bool:
    # Imported late: few name a zone, and the package is as slow to import as this whole layer.
    zones = import_module("zoneinfo")
    try:
        zones.ZoneInfo(name)
    except (KeyError, ValueError, IsADirectoryError, NotADirectoryError):
        # Unknown, not a valid name, or a folder of the zone files.
        return False
    return True
