"""The command files of a Location, as they are or as they were last read.

A file or folder that cannot be looked at (no permission, a loop of links, a directory in its place)
is not taken for a missing one: what it held is still offered. Only what is seen to be absent is
gone.

Invariant: a file that cannot be used is logged once and left out.
"""

import itertools
import logging
import os
from collections.abc import Iterator
from typing import Final

import msgspec

from perdure.core import limits
from perdure.core.config_file.entries import CommandEntry
from perdure.core.config_file.substitution import Trust as Owner
from perdure.core.files.paths import is_within
from perdure.core.settings.document import Document
from perdure.core.text import front_matter
from perdure.core.text.front_matter import FrontMatterError
from perdure.host.files import cached_files
from perdure.host.files.cached_files import FileTooLargeError
from perdure.schema import codec
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".md"


class CommandFolder(Value):
    """A folder of commands, and the directory that must contain its files, if any."""

    path: str
    within: str | None


class CommandFiles:
    """Kept while its Location is built anew, so that what was read is known afterwards."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Document]] = {}
        """By folder and path."""
        self._reported: set[tuple[str, str]] = set()

    def documents_in(self, folder: CommandFolder) -> tuple[Document, ...]:
        """A document for each command file below the folder, in the order of their paths."""
        before = self._kept.get(folder.path, {})
        found: dict[str, Document] = {}
        unreadable: dict[str, OSError] = {}
        for path in itertools.islice(_markdown(folder.path, unreadable), limits.COMMAND_FILES_MAX):
            try:
                found[path] = _read(path, folder)
            except _UnusableError as error:
                self._report(path, f"is ignored: {error}")
            except OSError as error:
                unreadable[path] = error
        for path, error in unreadable.items():
            known = {below: old for below, old in before.items() if is_within(below, path)}
            counts = "counts as it was last read" if known else "is ignored"
            self._report(path, f"{counts}: {error.strerror or error}")
            found |= known
        self._kept[folder.path] = found
        return tuple(found[path] for path in sorted(found))

    def _report(self, path: str, problem: str) -> None:
        if (path, problem) not in self._reported:
            self._reported.add((path, problem))
            logger.warning("commands: %s %s", path, problem)


class _UnusableError(Exception):
    """The file is not a command; the text says why."""


def _markdown(top: str, unreadable: dict[str, OSError]) -> Iterator[str]:
    """The Markdown files below `top`; a linked folder is visited once."""
    waiting, seen = [top], set[str]()
    for folder in waiting:
        real = os.path.realpath(folder)
        if real in seen or len(seen) >= limits.COMMAND_FOLDERS_MAX:
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as listing:
                some = list(itertools.islice(listing, limits.COMMAND_ENTRIES_MAX))
        except (FileNotFoundError, NotADirectoryError):
            # Most of these folders do not exist.
            continue
        except OSError as error:
            unreadable[folder] = error
            continue
        for entry in sorted(some, key=lambda entry: entry.name):
            if entry.name.endswith(_SUFFIX) and entry.name != _SUFFIX:
                yield entry.path
            elif _is_folder(entry, unreadable):
                waiting.append(entry.path)


def _is_folder(entry: os.DirEntry[str], unreadable: dict[str, OSError]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        unreadable[entry.path] = error
        return False


def _read(path: str, folder: CommandFolder) -> Document:
    """Raises _UnusableError, and OSError for what cannot be looked at."""
    within = folder.within
    if within is not None and not is_within(os.path.realpath(path), within):
        raise _UnusableError("it is a link that leads out of the project")
    owner: Owner = "user" if within is None else "project"
    name = path[len(folder.path) + 1 : -len(_SUFFIX)]
    try:
        data = cached_files.read(path, bytes_max=limits.COMMAND_FILE_BYTES_MAX)
        if data is None:
            raise _UnusableError("it is not there any more")
        name.encode()
        fields, body = front_matter.split(data.decode("utf-8-sig"))
        fields = {"template": body, **fields}
        entry = codec.convert(CommandEntry, fields)
    except UnicodeError as error:
        raise _UnusableError("it is not UTF-8 text") from error
    except (FileTooLargeError, FrontMatterError, msgspec.ValidationError) as error:
        raise _UnusableError(str(error)) from error
    if not entry.template.strip() or "\0" in entry.template:
        raise _UnusableError("it holds no text")
    written = {"commands": {name: fields}}
    return Document(path=path, trust=owner, commands=((name, entry),), written=written)
