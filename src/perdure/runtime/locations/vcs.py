"""The version control of Locations for clients: branch, status and diffs."""

from perdure.location.project.work_tree import WorkTrees
from perdure.location.registry import LocationRegistry
from perdure.runtime.locations.api import hide_denied
from perdure.schema.files.vcs import DiffBase, FileStatus, VcsInfo
from perdure.schema.location import LocationRef
from perdure.schema.session.session import FileDiff


class VersionControl:
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(self, locations: LocationRegistry, work_trees: WorkTrees) -> None:
        self._locations = locations
        self._work_trees = work_trees

    async def info(self, ref: LocationRef) -> VcsInfo:
        await self._locations.get(ref)
        return await self._work_trees.info(ref.directory)

    async def status(self, ref: LocationRef) -> tuple[FileStatus, ...]:
        await self._locations.get(ref)
        return await self._work_trees.status(ref.directory)

    async def diff(self, ref: LocationRef, base: DiffBase) -> tuple[FileDiff, ...]:
        location = await self._locations.get(ref)
        return await hide_denied(location, await self._work_trees.diff(ref.directory, base))
