"""Configuration of a Location: which documents there are, and the Settings they add up to.

From low to high: the user's config directory; each directory from the project's root to the
Location; the `.opencode` directory of each, in the same order; the file that `OPENCODE_CONFIG`
names; the text of `OPENCODE_CONFIG_CONTENT`. In a directory `opencode.jsonc` lies over
`opencode.json`. Nothing is ever written. What a project's documents may do stands in
core.settings.

Invariant: a file that cannot be used is left out as a whole and reported, never half applied.
"""

import logging
import os
from collections.abc import Iterator
from typing import Final

from perdure.core import config_document, jsonc, limits, settings
from perdure.core.config_document import Document, Problem, Trust
from perdure.core.settings import Settings
from perdure.host import small_files
from perdure.host.environment import Environment
from perdure.host.small_files import SmallFiles
from perdure.location import ancestry

logger = logging.getLogger(__name__)

_FILE_NAMES: Final = ("opencode.json", "opencode.jsonc")
_INLINE: Final = "OPENCODE_CONFIG_CONTENT"
_EXTRA: Final = "OPENCODE_CONFIG"


class Configuration:
    """Reads documents, and reads them again only when they changed. One for the process."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._users = SmallFiles(lambda path: _read(path, "user"))
        self._projects = SmallFiles(lambda path: _read(path, "project"))

    def load(self, directory: str, *, root: str) -> Settings:
        """The Settings in force at `directory`, whose project begins at `root`."""
        result = settings.merge(tuple(self._documents(directory, root)))
        for problem in result.problems:
            logger.warning("configuration: %s", problem)
        return result

    def _documents(self, directory: str, root: str) -> Iterator[Document]:
        yield from _existing(self._users, [self._environment.config_dir])
        if directory != self._environment.config_dir:
            chain = ancestry.downwards(directory, root)
            yield from _existing(self._projects, chain)
            yield from _existing(self._projects, [os.path.join(at, ".opencode") for at in chain])
        yield from self._named_by_variables(directory)

    def _named_by_variables(self, directory: str) -> Iterator[Document]:
        variables = self._environment.variables
        if variables.get(_EXTRA):
            path = os.path.join(directory, variables[_EXTRA])
            missing = Problem(path, f"{_EXTRA} names this file, which does not exist")
            yield self._users.get(path) or Document(path=path, trust="user", problems=(missing,))
        if variables.get(_INLINE):
            yield _decode(_INLINE, "user", variables[_INLINE].encode(errors="surrogateescape"))


def _existing(files: SmallFiles[Document], directories: list[str]) -> Iterator[Document]:
    for directory in directories:
        for name in _FILE_NAMES:
            document = files.get(os.path.join(directory, name))
            if document is not None:
                yield document


def _read(path: str, trust: Trust) -> Document:
    try:
        data = small_files.read(path, bytes_max=limits.CONFIG_FILE_BYTES_MAX)
    except OSError as error:
        problem = Problem(path, f"cannot be read and is ignored: {error.strerror or error}")
        return Document(path=path, trust=trust, problems=(problem,))
    return Document(path=path, trust=trust) if data is None else _decode(path, trust, data)


def _decode(path: str, trust: Trust, data: bytes) -> Document:
    try:
        value = jsonc.decode(data)
    except jsonc.JsoncError as error:
        message = f"is not JSON and is ignored: {error.message}, column {error.column}"
        problem = Problem(path, message, line=error.line)
        return Document(path=path, trust=trust, problems=(problem,))
    return config_document.read(path, trust, value)
