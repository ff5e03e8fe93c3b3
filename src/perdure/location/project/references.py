"""The references of a Location: named directories outside the project, and their Context Source.

A directory is listed as configured. A repository is listed once a copy of it exists; see
location.project.repositories. The model is told of those that have a description. While a copy
cannot be looked at, it is listed and the Context Source is unavailable.
"""

import logging
import os
from typing import Final

from msgspec import UNSET

from perdure.core.context import system_context
from perdure.core.context.system_context import UNAVAILABLE, ContextSource, Observation
from perdure.core.settings.reference import ReferenceEntry
from perdure.core.text import xml_tags
from perdure.host.environment import Environment
from perdure.location.project.repositories import Repositories
from perdure.schema.codec import Record
from perdure.schema.settings.reference import LocalReference, ReferenceInfo

logger = logging.getLogger(__name__)

KEY: Final = "core/reference-guidance"


class References:
    def __init__(
        self,
        entries: tuple[ReferenceEntry, ...],
        *,
        directory: str,
        environment: Environment,
        repositories: Repositories,
    ) -> None:
        self._entries = tuple(sorted(entries, key=lambda entry: entry.name))
        self._directory = directory
        self._home = environment.home
        self._repositories = repositories

    def list(self) -> tuple[ReferenceInfo, ...]:
        """The current references, sorted by name."""
        paths = ((entry, self._likely_path(entry)) for entry in self._entries)
        return tuple(_info(entry, path) for entry, path in paths if path is not None)

    def look(self) -> tuple[ReferenceInfo, ...]:
        """As `list`. Raises OSError when a copy cannot be looked at."""
        paths = ((entry, self._path(entry)) for entry in self._entries)
        return tuple(_info(entry, path) for entry, path in paths if path is not None)

    def _likely_path(self, entry: ReferenceEntry) -> str | None:
        try:
            return self._path(entry)
        except OSError:
            source = entry.source
            return (
                None if isinstance(source, LocalReference) else self._repositories.directory(source)
            )

    def _path(self, entry: ReferenceEntry) -> str | None:
        if not isinstance(entry.source, LocalReference):
            return self._repositories.find_copy(entry.source)
        path = entry.source.path
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        return os.path.normpath(os.path.join(entry.directory or self._directory, path))


def _info(entry: ReferenceEntry, path: str) -> ReferenceInfo:
    return ReferenceInfo(
        name=entry.name,
        path=path,
        source=entry.source,
        description=entry.source.description,
        hidden=entry.source.hidden,
    )


class ReferenceSummary(Record, frozen=True):
    name: str
    path: str
    description: str


ReferenceSummaries = tuple[ReferenceSummary, ...]


def _rendered(summaries: ReferenceSummaries) -> str:
    listed = (
        {"name": one.name, "path": one.path, "description": one.description} for one in summaries
    )
    return (
        "References are directories outside the project that may help with it.\n"
        "Read in one when its description fits the task; do not change anything there.\n"
        + xml_tags.list_available("reference", listed)
    )


REFERENCES: ContextSource[ReferenceSummaries] = ContextSource(
    key=KEY,
    type=ReferenceSummaries,
    baseline=_rendered,
    update=lambda previous, current: (
        "The available references have changed. This list supersedes the earlier one.\n"
        + _rendered(current)
    ),
    removed=lambda previous: (
        "References are not available any more. The list given before no longer applies."
    ),
)


def observe(references: References) -> Observation:
    """Observe the references; empty when none has a description."""
    try:
        found = references.look()
    except OSError as error:
        logger.warning("references: %s", error)
        return (system_context.make(REFERENCES, UNAVAILABLE),)
    summaries = tuple(
        ReferenceSummary(info.name, info.path, xml_tags.one_line(info.description))
        for info in found
        if info.description is not UNSET
    )
    return (system_context.make(REFERENCES, summaries),) if summaries else ()
