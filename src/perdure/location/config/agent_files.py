"""Agents from Markdown files of a config directory: one document for each file.

`agent/` and `agents/` are searched to any depth; `mode/` and `modes/` hold primary agents and are
not. The name is the path below that folder without `.md`; the front matter holds the fields and
the body is the system text. Placeholders are plain text here. A project's file must be below the
directory it configures, by its real path: a link could otherwise show any file of this machine to
a model.

Invariant: folders are listed at every load and files read only when they changed; a file that
cannot be used is reported and left out alone. What cannot be looked at is as it was last read.
"""

import itertools
import os
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from perdure.core import limits
from perdure.core.config_file import legacy
from perdure.core.config_file.problem import Problem
from perdure.core.config_file.substitution import Trust
from perdure.core.files.paths import is_within
from perdure.core.settings import document as config_document
from perdure.core.settings.document import Document
from perdure.core.text import front_matter
from perdure.core.text.front_matter import FrontMatterError
from perdure.host.files import cached_files
from perdure.host.files.cached_files import FileTooLargeError, Signature
from perdure.location.config.files import project_directory
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

_SUFFIX: Final = ".md"
_FOLDERS: Final = ("agent", "agents", "mode", "modes")
_PRIMARY: Final = frozenset({"mode", "modes"})


class AgentFiles:
    """The agent files of all config directories with the same trust."""

    def __init__(self, trust: Trust) -> None:
        self._trust: Trust = trust
        self._kept: dict[str, dict[str, _Kept]] = {}

    def get(self, config_directory: str) -> tuple[Document, ...]:
        """A document for each agent file, and for each problem with a folder."""
        before = self._kept.get(config_directory, {})
        kept: dict[str, _Kept] = {}
        search = _Search()
        for top in _tops(config_directory):
            for path in search.markdown(top):
                if len(kept) == limits.AGENT_FILES_MAX:
                    search.problems.append(Problem(top, f"has more than {len(kept)} agents"))
                    break
                found = self._file(path, top, before.get(path))
                if found is not None:
                    kept[path] = found
        reports = [_unusable(problem, self._trust) for problem in search.problems]
        for folder, problem in search.unreadable.items():
            kept |= {path: old for path, old in before.items() if is_within(path, folder)}
            reports.append(_unread(problem, self._trust))
        self._kept[config_directory] = kept
        return (*(known.document for known in kept.values()), *reports)

    def _file(self, path: str, top: str, known: "_Kept | None") -> "_Kept | None":
        """The file as it is, or as it was last read; None when it is absent."""
        try:
            signature = cached_files.signature(path)
            if signature is None:
                return None
            if known is not None and known.signature == signature:
                return known
            return _Kept(signature, self._document(path, top))
        except OSError as error:
            if known is not None:
                return _Kept(None, structs.replace(known.document, unread=True))
            problem = Problem(path, f"is ignored: {error.strerror or error}")
            return _Kept(None, _unread(problem, self._trust))

    def _document(self, path: str, top: str) -> Document:
        """Read an agent file. Raises OSError."""
        if self._trust == "project":
            tree = project_directory(os.path.dirname(top))
            if not is_within(os.path.realpath(path), tree):
                problem = Problem(path, "is ignored: it is a link that leads out of the project")
                return _unusable(problem, self._trust)
        name = path[len(top) + 1 : -len(_SUFFIX)]
        try:
            name.encode()
            fields = _fields(path)
        except UnicodeError:
            return _unusable(Problem(path, "is ignored: it is not UTF-8 text"), self._trust)
        except _UnusableError as error:
            return _unusable(Problem(path, f"is ignored: {error}"), self._trust)
        if os.path.basename(top) in _PRIMARY:
            fields["mode"] = "primary"
        directory = os.path.dirname(path)
        agents = {"agents": {name: fields}}
        return config_document.read(path, self._trust, agents, directory=directory)


class _Kept(Value):
    """The document of a file, and the signature at its reading; None if it must be read again."""

    signature: Signature | None
    document: Document


class _UnusableError(Exception):
    """The file is not an agent; the text says why."""


def _tops(config_directory: str) -> Iterator[str]:
    for folder in _FOLDERS:
        top = f"{config_directory}/{folder}"
        try:
            # Most do not exist, and this is the quickest check.
            if cached_files.exists(top):
                yield top
        except OSError:
            # The search reports why it cannot be looked at.
            yield top


class _Search:
    """One search through the folders of a config directory."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.unreadable: dict[str, Problem] = {}
        """Folders, or links that may lead to one, that could not be looked at."""

    def markdown(self, top: str) -> Iterator[str]:
        """The Markdown files below `top`, sorted by name; a linked folder is visited once."""
        deep = os.path.basename(top) not in _PRIMARY
        waiting, seen = [top], set[tuple[int, int]]()
        for folder in waiting:
            try:
                status = os.stat(folder)
                if (status.st_dev, status.st_ino) in seen:
                    continue
                entries = _entries(folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._report(folder, error)
                continue
            seen.add((status.st_dev, status.st_ino))
            if len(seen) > limits.AGENT_FOLDERS_MAX:
                most = limits.AGENT_FOLDERS_MAX
                self.problems.append(Problem(top, f"has more than {most} folders"))
                return
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and entry.name != _SUFFIX:
                    yield entry.path
                elif deep and self._is_folder(entry):
                    waiting.append(entry.path)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError as error:
            self._report(entry.path, error)
            return False

    def _report(self, folder: str, error: OSError) -> None:
        message = f"cannot be searched: {error.strerror or error}"
        self.unreadable[folder] = Problem(folder, message)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        some = itertools.islice(listing, limits.AGENT_ENTRIES_MAX)
        return sorted(some, key=lambda entry: entry.name)


def _fields(path: str) -> JsonObject:
    """The agent's fields as in a document. Raises OSError, UnicodeError and _UnusableError."""
    try:
        data = cached_files.read(path, bytes_max=limits.AGENT_FILE_BYTES_MAX)
        text = (data or b"").decode("utf-8-sig")
        fields, body = front_matter.split(text)
    except (FileTooLargeError, FrontMatterError) as error:
        raise _UnusableError(str(error)) from error
    if data is None:
        raise _UnusableError("it is not a file")
    if "\0" in text:
        raise _UnusableError("it is not text")
    if not fields.keys() <= legacy.AGENT_KEYS:
        fields = legacy.modern_agent(fields)
    return {**fields, "system": body} if body.strip() else dict(fields)


def _unusable(problem: Problem, trust: Trust) -> Document:
    return Document(path=problem.path, trust=trust, problems=(problem,))


def _unread(problem: Problem, trust: Trust) -> Document:
    return Document(path=problem.path, trust=trust, problems=(problem,), unread=True)
