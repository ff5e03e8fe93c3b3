"""The projects of this instance for clients: computed from its Sessions, not stored."""

from perdure.location.project.project import GLOBAL
from perdure.ports import Database
from perdure.runtime.locations.api import Locations
from perdure.schema.location import LocationRef, ProjectInfo, ProjectRef, ProjectTime
from perdure.store.tables import session_table
from perdure.store.tables.session_table import ProjectPlace


class ProjectList:
    def __init__(self, database: Database, locations: Locations, *, started: int) -> None:
        """`started`: when this instance did, in milliseconds since the epoch."""
        self._database = database
        self._locations = locations
        self._started = started

    async def list(self, ref: LocationRef) -> tuple[ProjectInfo, ...]:
        """The project of the Location and those that Sessions worked in, the newest first."""
        current = await self.current(ref)
        places = await self._database.read(session_table.list_places)
        by_id: dict[str, list[ProjectPlace]] = {}
        for place in places:
            by_id.setdefault(place.project_id, []).append(place)
        listed = [
            _describe(ProjectRef(found[0].project_id, found[0].root), found)
            for project_id, found in by_id.items()
            if project_id != current.id
        ]
        return (current, *sorted(listed, key=lambda it: -it.time.updated))

    async def current(self, ref: LocationRef) -> ProjectInfo:
        project = (await self._locations.info(ref)).project
        places = await self._database.read(
            lambda tx: session_table.list_places(tx, project_id=project.id)
        )
        if places:
            return _describe(project, places)
        time = ProjectTime(self._started, self._started)
        return _info(project, (project.directory,), time)


def _describe(project: ProjectRef, places: list[ProjectPlace]) -> ProjectInfo:
    time = ProjectTime(
        created=min(place.created for place in places),
        updated=max(place.updated for place in places),
    )
    newest = sorted(places, key=lambda place: -place.updated)
    roots = dict.fromkeys((project.directory, *(place.root for place in newest)))
    return _info(project, tuple(roots), time)


def _info(project: ProjectRef, directories: tuple[str, ...], time: ProjectTime) -> ProjectInfo:
    if project.id == GLOBAL.id:
        return ProjectInfo(project.id, GLOBAL.directory, (GLOBAL.directory,), time)
    return ProjectInfo(project.id, project.directory, directories, time, "git")
