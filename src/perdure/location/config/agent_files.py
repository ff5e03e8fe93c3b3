"""Agents from Markdown files of a config directory: one document for each file.

`agent/` and `agents/` are searched to any depth; `mode/` and `modes/` hold primary agents and are
not. The name is the path below that folder without `.md`; the front matter holds the fields and
the body is the system text. Placeholders are plain text here. A project's file must be below the
directory it configures, by its real path: a link could otherwise show any file of this machine to
a model.

Invariant: folders are listed at every load and files read only when they changed; a file that
cannot be used is reported and left out alone.
"""

import itertools
import os
from collections.abc import Iterator
from typing import Final

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
from perdure.host.files.cached_files import Signature
from perdure.location.config.files import project_directory
from perdure.schema.codec import JsonObject

_SUFFIX: Final = ".md"
_FOLDERS: Final = ("agent", "agents", "mode", "modes")
_PRIMARY: Final = frozenset({"mode", "modes"})


class AgentFiles:
    """The agent files of all config directories with the same trust."""

    def __init__(self, trust: Trust) -> None:
        self._trust: Trust = trust
        self._kept: dict[str, dict[str, tuple[Signature, Document]]] = {}

    def get(self, config_directory: str) -> tuple[Document, ...]:
        """A document for each agent file, and for each problem with a folder."""
        before = self._kept.get(config_directory, {})
        kept: dict[str, tuple[Signature, Document]] = {}
        problems: list[Problem] = []
        for top in _tops(config_directory):
            for path in _markdown(top, problems):
                if len(kept) == limits.AGENT_FILES_MAX:
                    problems.append(Problem(top, f"has more than {len(kept)} agents"))
                    break
                signature = cached_files.signature(path)
                if signature is None:
                    continue
                known = before.get(path)
                if known is None or known[0] != signature:
                    known = signature, self._document(path, top)
                kept[path] = known
        self._kept[config_directory] = kept
        reports = (_unusable(problem, self._trust) for problem in problems)
        return (*(document for _, document in kept.values()), *reports)

    def _document(self, path: str, top: str) -> Document:
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


class _UnusableError(Exception):
    """The file is not an agent; the text says why."""


def _tops(config_directory: str) -> Iterator[str]:
    for folder in _FOLDERS:
        top = f"{config_directory}/{folder}"
        # Most do not exist, and this is the quickest check.
        if cached_files.exists(top):
            yield top


def _markdown(top: str, problems: list[Problem]) -> Iterator[str]:
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
            problems.append(Problem(folder, f"cannot be searched: {error.strerror or error}"))
            continue
        seen.add((status.st_dev, status.st_ino))
        if len(seen) > limits.AGENT_FOLDERS_MAX:
            problems.append(Problem(top, f"has more than {limits.AGENT_FOLDERS_MAX} folders"))
            return
        for entry in entries:
            if entry.name.endswith(_SUFFIX) and entry.name != _SUFFIX:
                yield entry.path
            elif deep and _is_folder(entry):
                waiting.append(entry.path)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        some = itertools.islice(listing, limits.AGENT_ENTRIES_MAX)
        return sorted(some, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself.
        return False


def _fields(path: str) -> JsonObject:
    """The agent's fields as in a document. Raises UnicodeError and _UnusableError."""
    try:
        data = cached_files.read(path, bytes_max=limits.AGENT_FILE_BYTES_MAX)
        text = (data or b"").decode("utf-8-sig")
        fields, body = front_matter.split(text)
    except OSError as error:
        raise _UnusableError(error.strerror or str(error)) from error
    except FrontMatterError as error:
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
