"""The skills of a Location: from the program itself, from directories, and from the network.

From low to high: the built-in one; `skill` and `skills` in the user's config directory and in each
`.opencode` from the project's root to the Location; the `skills` entries of the configuration. A
skill of a later source replaces one of the same name. Files of the project must lie in the project
by their real path: a link could otherwise show any file of this machine to a model.

Invariant: while nothing changed, a look reads no file and lists no directory.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.settings.settings import Settings, SkillEntry
from perdure.core.skills.index import SkillIndexError
from perdure.host.environment import Environment
from perdure.location.project import parent_directories
from perdure.location.skills.built_in import BuiltInSkills
from perdure.location.skills.downloads import SkillDownloads
from perdure.location.skills.files import SkillFiles
from perdure.ports import Clock
from perdure.schema.approval.permission import Ruleset
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

ACTION: Final = "skill"
"""What rules call the use of a skill. The resource is its name."""


class SkillSource(Protocol):
    @property
    def is_known(self) -> bool:
        """Whether a look has ever succeeded."""
        ...

    def look(self) -> tuple[SkillInfo, ...]:
        """The skills of the source; the same tuple as long as they stay the same."""
        ...


class Skills:
    """`sources` from low to high."""

    def __init__(self, sources: Sequence[SkillSource]) -> None:
        self._sources = tuple(sources)
        self._looks: tuple[tuple[SkillInfo, ...], ...] = ()
        self._by_name: dict[str, SkillInfo] = {}
        self._all: tuple[SkillInfo, ...] = ()
        self._permitted: dict[Ruleset, tuple[SkillInfo, ...]] = {}

    @property
    def is_known(self) -> bool:
        """Whether every source could be looked at since the Location opened."""
        return all(source.is_known for source in self._sources)

    def list(self) -> tuple[SkillInfo, ...]:
        """Those that are there now, in the order of their names."""
        looks = tuple(source.look() for source in self._sources)
        if len(looks) != len(self._looks) or any(map(_differs, looks, self._looks)):
            self._looks = looks
            self._by_name = _merged(looks)
            self._all = tuple(self._by_name[name] for name in sorted(self._by_name))
            self._permitted.clear()
        return self._all

    def permitted(self, rules: Ruleset) -> tuple[SkillInfo, ...]:
        """Those of `list` that the rules do not deny."""
        found = self.list()
        kept = self._permitted.get(rules)
        if kept is None:
            kept = tuple(s for s in found if permission.evaluate(rules, ACTION, s.name) != "deny")
            # One for each agent that works here. Rules that were replaced are forgotten some time.
            if len(self._permitted) >= limits.SKILL_RULESETS_KEPT_MAX:
                self._permitted.clear()
            self._permitted[rules] = kept
        return kept

    def get(self, name: str) -> SkillInfo | None:
        self.list()
        return self._by_name.get(name)


class SkillDirectories(Value, kw_only=True):
    """Where a Location looks for skills."""

    directory: str
    root: str
    """Where its project begins."""
    environment: Environment
    clock: Clock
    downloads: SkillDownloads


def find(place: SkillDirectories, settings: Settings) -> Skills:
    """The skills of a Location. Nothing is read yet."""
    return Skills((BuiltInSkills(), *_conventional(place), *_configured(place, settings)))


def _conventional(place: SkillDirectories) -> Iterator[SkillSource]:
    yield from _directories(place, place.environment.config_dir, within=None)
    disabled = parent_directories.is_disabled(
        place.environment.variables.get(parent_directories.DISABLE)
    )
    if not disabled and place.directory != place.environment.config_dir:
        for at in parent_directories.downwards(place.directory, place.root):
            yield from _directories(place, os.path.join(at, ".opencode"), within=_bounds(place, at))


def _directories(
    place: SkillDirectories, parent: str, *, within: str | None
) -> Iterator[SkillSource]:
    for name in ("skill", "skills"):
        yield SkillFiles(os.path.join(parent, name), clock=place.clock, within=within)


def _bounds(place: SkillDirectories, at: str) -> str:
    """What files of the project at `at` must lie within: where there is no project, just that."""
    return at if place.root == "/" else place.root


def _configured(place: SkillDirectories, settings: Settings) -> Iterator[SkillSource]:
    # The last entry of the same text counts, since later sources lie over earlier ones.
    entries = {entry.text: entry for entry in reversed(settings.skills)}
    for entry in reversed(entries.values()):
        try:
            yield _source(place, entry)
        except SkillIndexError as error:
            logger.warning("skills: an entry of `skills` is left out: the address %s", error)


def _source(place: SkillDirectories, entry: SkillEntry) -> SkillSource:
    if entry.text.lower().startswith(("http://", "https://")):
        return place.downloads.source(entry.text)
    text = entry.text
    if text == "~" or text.startswith("~/"):
        text = place.environment.home + text[1:]
    directory = os.path.normpath(os.path.join(place.directory, text))
    within = None if entry.trust == "user" else _bounds(place, place.directory)
    return SkillFiles(directory, clock=place.clock, within=within)


def _differs(look: tuple[SkillInfo, ...], before: tuple[SkillInfo, ...]) -> bool:
    return look is not before


def _merged(looks: Iterable[tuple[SkillInfo, ...]]) -> dict[str, SkillInfo]:
    merged: dict[str, SkillInfo] = {}
    left_out: SkillInfo | None = None
    for look in looks:
        for found in look:
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
