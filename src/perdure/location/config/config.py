"""Configuration of a Location: finds its documents and merges them into Settings.

In rising precedence: plugins; the user's config directory; each directory from the project's root
to the Location; the `.opencode` directory of each, in the same order; the file that
`OPENCODE_CONFIG` names; the text of `OPENCODE_CONFIG_CONTENT`; the managed directory of the
machine. In a directory `opencode.jsonc` overrides `opencode.json`, and the agent files of a config
directory override both. A relative path in `OPENCODE_CONFIG` is relative to the Location and
trusted no more than other files there.

core.settings.settings defines what a project's documents may do. Nothing is ever written.
"""

import logging
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from perdure.core import limits
from perdure.core.config_file.problem import Problem
from perdure.core.settings import settings
from perdure.core.settings.document import Document
from perdure.core.settings.settings import Settings
from perdure.core.settings.trust import TrustRequest
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.location.config import trust
from perdure.location.config.agent_files import AgentFiles
from perdure.location.config.files import DIRECTORY_NAME, DocumentFiles
from perdure.location.config.plugin_documents import PluginDocuments
from perdure.location.config.trust import Trust
from perdure.location.project import parent_directories
from perdure.schema.approval.permission import Rule, Ruleset
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

_FILE_NAMES: Final = ("opencode.json", "opencode.jsonc")
_ASK_ALL: Final[Ruleset] = (Rule("*", "*", "ask"),)
_INLINE: Final = "OPENCODE_CONFIG_CONTENT"
_EXTRA: Final = "OPENCODE_CONFIG"


class Configuration:
    """Reads documents, and reads them again only when they changed. One for the process."""

    def __init__(self, environment: Environment, plugins: PluginDocuments | None = None) -> None:
        self._environment = environment
        self._plugins = plugins or PluginDocuments()
        self._users = DocumentFiles(environment, "user")
        self._projects = DocumentFiles(environment, "project")
        self._managed = DocumentFiles(environment, "user", managed=True)
        self._users_agents = AgentFiles("user")
        self._projects_agents = AgentFiles("project")
        self.trust: Final = Trust(
            environment.data_dir, ahead=environment.variables.get(trust.VARIABLE, "")
        )
        self._candidates: dict[tuple[str, str], _ProjectCandidates] = {}
        self._reported: dict[str, frozenset[Problem]] = {}
        """Problems of each Location that were logged: each is logged once."""

    def load(self, directory: str, *, root: str, before: Settings | None = None) -> Settings:
        """The Settings of `directory`, whose project has the root `root`.

        Returns `before` itself when nothing changed since; new problems are logged.
        """
        found = self.read(directory, root=root, before=before)
        if found is not before:
            wishes = tuple(
                Problem(wish.path, _describe_untrusted(wish)) for wish in found.ungranted
            )
            self._report(directory, (*found.problems, *wishes))
        return found

    def read(self, directory: str, *, root: str, before: Settings | None = None) -> Settings:
        """As `load`, without logging."""
        if before is None or (directory, root) not in self._candidates:
            self._remember(directory, root)
        found = self._documents(directory, self._candidates[directory, root])
        documents = tuple(map(self.trust.with_grant, found))
        if before is not None and before.documents == documents:
            return before
        return settings.merge(documents)

    def _remember(self, directory: str, root: str) -> None:
        if len(self._candidates) >= limits.LOCATIONS_OPEN_MAX:
            self._candidates.clear()
        self._candidates[directory, root] = self._project_candidates(directory, root)

    def _project_candidates(self, directory: str, root: str) -> "_ProjectCandidates":
        home = self._environment.config_dir
        disabled = parent_directories.is_disabled(
            self._environment.variables.get(parent_directories.DISABLE)
        )
        if directory == home or disabled:
            return _ProjectCandidates((), ())
        parents = parent_directories.list_downwards(directory, root)
        chain = [parent for parent in parents if parent != home]
        return _ProjectCandidates(
            tuple(path for parent in chain for path in _candidates(parent)),
            tuple(os.path.join(parent, DIRECTORY_NAME) for parent in chain),
        )

    def _documents(self, directory: str, candidates: "_ProjectCandidates") -> Iterator[Document]:
        home = self._environment.config_dir
        yield from self._plugins.list()
        yield from _existing(self._users, _candidates(home))
        yield from self._users_agents.get(home)
        yield from _existing(self._projects, candidates.files)
        for config_directory in candidates.config_directories:
            if _may_exist(config_directory):
                yield from _existing(self._projects, _candidates(config_directory))
                yield from self._projects_agents.get(config_directory)
        yield from self._named_by_variables(directory)
        managed = self._environment.managed_dir
        if _may_exist(managed):
            yield from map(_asking_if_unusable, _existing(self._managed, _candidates(managed)))

    def _named_by_variables(self, directory: str) -> Iterator[Document]:
        variables = self._environment.variables
        if variables.get(_EXTRA):
            path = os.path.join(directory, variables[_EXTRA])
            files = self._users if os.path.isabs(variables[_EXTRA]) else self._projects
            missing = Problem(path, f"{_EXTRA} names this file, which does not exist")
            yield files.get(path) or Document(path=path, trust="user", problems=(missing,))
        if variables.get(_INLINE):
            data = variables[_INLINE].encode(errors="surrogateescape")
            yield self._users.inline(_INLINE, data, directory=directory)

    def _report(self, directory: str, problems: tuple[Problem, ...]) -> None:
        known = frozenset[Problem]().union(*self._reported.values())
        for problem in problems:
            if problem not in known:
                logger.warning("configuration: %s", problem)
        self._reported[directory] = frozenset(problems)


class _ProjectCandidates(Value):
    """Paths where documents of a Location's project may be, the lowest precedence first."""

    files: tuple[str, ...]
    config_directories: tuple[str, ...]


def _asking_if_unusable(document: Document) -> Document:
    """A managed document that cannot be used may deny anything: a person is asked about all."""
    unusable = bool(document.problems) and not document.written
    return replace(document, permissions=_ASK_ALL) if unusable else document


def _describe_untrusted(wish: TrustRequest) -> str:
    return f"would {wish.description}; that is off until you trust it: perdure trust"


@lru_cache(maxsize=limits.LOCATIONS_OPEN_MAX)
def _candidates(directory: str) -> tuple[str, ...]:
    return tuple(os.path.join(directory, name) for name in _FILE_NAMES)


def _existing(files: DocumentFiles, paths: tuple[str, ...]) -> Iterator[Document]:
    for path in paths:
        document = files.get(path)
        if document is not None:
            yield document


def _may_exist(path: str) -> bool:
    """Whether a path exists or cannot be looked at."""
    try:
        return cached_files.exists(path)
    except OSError:
        return True
