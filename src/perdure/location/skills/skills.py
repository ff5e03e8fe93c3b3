"""The skills of a Location: from the program itself, from directories, and from the network.

In rising precedence: the built-in one; `skill` and `skills` in the user's config directory and in
each `.opencode` from the project's root to the Location; the `skills` entries of the configuration.
A skill of a later source replaces one of the same name. A project's files must be inside the
project by their real path: a link could otherwise show any file of this machine to a model.

Invariant: while nothing changed, listing reads no file and lists no directory.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Rules
from perdure.core.settings.settings import Settings, SkillEntry
from perdure.core.skills.index import SkillIndexError
from perdure.host.environment import Environment
from perdure.location.project import parent_directories
from perdure.location.skills.built_in import BuiltInSkills
from perdure.location.skills.downloads import SkillDownloads
from perdure.location.skills.files import SkillFiles
from perdure.ports import Clock
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

ACTION: Final = "skill"
"""The action of permission rules for skills; the resource is the skill's name."""


class SkillSource(Protocol):
    @property
    def is_known(self) -> bool:
        """Whether everything of the source could be looked at when it was last listed."""
        ...

    def list(self) -> tuple[SkillInfo, ...]:
        """The skills of the source; the same tuple object while nothing changes."""
        ...


class Skills:
    """The skills of all `sources`, which are in rising precedence."""

    def __init__(self, sources: Sequence[SkillSource]) -> None:
        self._sources = tuple(sources)
        self._listings: tuple[tuple[SkillInfo, ...], ...] = ()
        self._by_name: dict[str, SkillInfo] = {}
        self._all: tuple[SkillInfo, ...] = ()
        self._permitted: dict[Rules, tuple[SkillInfo, ...]] = {}

    @property
    def is_known(self) -> bool:
        """Whether everything could be looked at when the skills were last listed."""
        return all(source.is_known for source in self._sources)

    def list(self) -> tuple[SkillInfo, ...]:
        """The current skills, sorted by name."""
        listings = tuple(source.list() for source in self._sources)
        if len(listings) != len(self._listings) or any(map(_differs, listings, self._listings)):
            self._listings = listings
            self._by_name = _merge(listings)
            self._all = tuple(self._by_name[name] for name in sorted(self._by_name))
            self._permitted.clear()
        return self._all

    def permitted(self, rules: Rules) -> tuple[SkillInfo, ...]:
        """The current skills that the rules do not deny."""
        found = self.list()
        kept = self._permitted.get(rules)
        if kept is None:
            kept = tuple(s for s in found if permission.evaluate(rules, ACTION, s.name) != "deny")
            # One entry for each agent; entries of replaced rules are dropped with the rest.
            if len(self._permitted) >= limits.SKILL_RULESETS_KEPT_MAX:
                self._permitted.clear()
            self._permitted[rules] = kept
        return kept

    def get(self, name: str) -> SkillInfo | None:
        self.list()
        return self._by_name.get(name)


class SkillFolders:
    """The skills of directories. Kept while a Location is built anew: they stay known."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[tuple[str, str | None], SkillFiles] = {}

    def open(self, directory: str, *, within: str | None) -> SkillFiles:
        key = directory, within
        if key not in self._open:
            if len(self._open) >= limits.SKILL_DIRECTORIES_MAX:
                self._open.clear()
            self._open[key] = SkillFiles(directory, clock=self._clock, within=within)
        return self._open[key]


class SkillDirectories(Value, kw_only=True):
    """The directories and services for finding the skills of a Location."""

    directory: str
    root: str
    """The root of its project."""
    environment: Environment
    folders: SkillFolders
    downloads: SkillDownloads


def open_skills(directories: SkillDirectories, settings: Settings) -> Skills:
    """The skills of a Location. Nothing is read until they are listed."""
    return Skills(
        (BuiltInSkills(), *_conventional(directories), *_configured(directories, settings))
    )


def _conventional(directories: SkillDirectories) -> Iterator[SkillSource]:
    yield from _skill_folders(directories, directories.environment.config_dir, within=None)
    disabled = parent_directories.is_disabled(
        directories.environment.variables.get(parent_directories.DISABLE)
    )
    if not disabled and directories.directory != directories.environment.config_dir:
        for parent in parent_directories.list_downwards(directories.directory, directories.root):
            yield from _skill_folders(
                directories, os.path.join(parent, ".opencode"), within=_bounds(directories, parent)
            )


def _skill_folders(
    directories: SkillDirectories, parent: str, *, within: str | None
) -> Iterator[SkillSource]:
    for name in ("skill", "skills"):
        yield directories.folders.open(os.path.join(parent, name), within=within)


def _bounds(directories: SkillDirectories, parent: str) -> str:
    """The directory that must contain the skills of `parent`: the project, else `parent` itself."""
    return parent if directories.root == "/" else directories.root


def _configured(directories: SkillDirectories, settings: Settings) -> Iterator[SkillSource]:
    # Of equal entries the last one counts, since later sources have precedence.
    entries = {entry.text: entry for entry in reversed(settings.skills)}
    for entry in reversed(entries.values()):
        try:
            yield _source(directories, entry)
        except SkillIndexError as error:
            logger.warning("skills: an entry of `skills` is left out: the address %s", error)


def _source(directories: SkillDirectories, entry: SkillEntry) -> SkillSource:
    if entry.text.lower().startswith(("http://", "https://")):
        return directories.downloads.source(entry.text)
    text = entry.text
    if text == "~" or text.startswith("~/"):
        text = directories.environment.home + text[1:]
    directory = os.path.normpath(os.path.join(directories.directory, text))
    within = None if entry.trust == "user" else _bounds(directories, directories.directory)
    return directories.folders.open(directory, within=within)


def _differs(listing: tuple[SkillInfo, ...], before: tuple[SkillInfo, ...]) -> bool:
    return listing is not before


def _merge(listings: Iterable[tuple[SkillInfo, ...]]) -> dict[str, SkillInfo]:
    merged: dict[str, SkillInfo] = {}
    left_out: SkillInfo | None = None
    for listing in listings:
        for found in listing:
            if found.name in merged or len(merged) < limits.SKILLS_MAX:
                merged[found.name] = found
            else:
                left_out = found
    if left_out is not None:
        logger.warning(
            "skills: there are more than %d; %s and perhaps others are left out",
            limits.SKILLS_MAX,
            left_out.location,
        )
    return merged
