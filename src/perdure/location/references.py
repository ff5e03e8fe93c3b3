"""The references of a Location: directories beside the project that go by a name.

A directory is listed as it was configured. A repository is listed once a copy of it lies where it
is expected; fetching one is not done here. The model is told of those that have a description.
"""

import os
from typing import Final

from msgspec import UNSET

from perdure.core import reference, system_context, tagged
from perdure.core.reference import ReferenceEntry
from perdure.core.system_context import ContextSource, Observation
from perdure.host.environment import Environment
from perdure.schema.codec import Record
from perdure.schema.reference import LocalReference, ReferenceInfo

KEY: Final = "core/reference-guidance"
_REPOSITORIES: Final = "repos"
"""Below the data directory."""


class References:
    def __init__(
        self, entries: tuple[ReferenceEntry, ...], *, directory: str, environment: Environment
    ) -> None:
        placed = ((entry, _path(entry, directory, environment)) for entry in entries)
        self._placed = tuple(sorted(placed, key=lambda item: item[0].name))

    def list(self) -> tuple[ReferenceInfo, ...]:
        """Those that are there now, in the order of their names."""
        return tuple(
            ReferenceInfo(
                name=entry.name,
                path=path,
                source=entry.source,
                description=entry.source.description,
                hidden=entry.source.hidden,
            )
            for entry, path in self._placed
            if isinstance(entry.source, LocalReference) or os.path.isdir(path)
        )


class ReferenceSummary(Record, frozen=True):
    name: str
    path: str
    description: str


ReferenceSummaries = tuple[ReferenceSummary, ...]


def _rendered(summaries: ReferenceSummaries) -> str:
    listed = "\n".join(
        "  <reference>\n"
        f"    {tagged.element('name', summary.name)}\n"
        f"    {tagged.element('path', summary.path)}\n"
        f"    {tagged.element('description', summary.description)}\n"
        "  </reference>"
        for summary in summaries
    )
    return (
        "References are directories outside the project that may help with it.\n"
        "Read in one when its description fits the task; do not change anything there.\n"
        f"<available_references>\n{listed}\n</available_references>"
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
    """One look; nothing when no reference has a description."""
    summaries = tuple(
        ReferenceSummary(info.name, info.path, tagged.one_line(info.description))
        for info in references.list()
        if info.description is not UNSET
    )
    return (system_context.make(REFERENCES, summaries),) if summaries else ()


def _path(entry: ReferenceEntry, directory: str, environment: Environment) -> str:
    if not isinstance(entry.source, LocalReference):
        below = reference.repository_directory(entry.source)
        return os.path.join(environment.data_dir, _REPOSITORIES, below)
    path = entry.source.path
    if path == "~" or path.startswith("~/"):
        path = environment.home + path[1:]
    return os.path.normpath(os.path.join(entry.directory or directory, path))
